"""How a head makes rows of natural data: a part that it holds, one for each kind of data."""

import numpy as np

from keras_bert_impl.batching import LengthBatches, Rows, SortedBatches, drawn_seed, means_of_texts, padded_length
from keras_bert_impl.losses import NO_LABEL
from keras_bert_impl.preprocessing.labels import (
    Positions,
    checked_labels,
    ignored_labels,
    is_of_keras,
    of_width,
    sizes_of_arrays,
    sizes_of_texts,
)
from keras_bert_impl.preprocessing.other_libraries import received
from keras_bert_impl.preprocessing.splits_and_weights import weights_of_rows
from keras_bert_impl.preprocessing.texts import is_text_input, is_texts, texts_of
from keras_bert_impl.text.tokenizers.rows import ROW_MULTIPLE, pack_rows, warn_of_cut

WITHOUT_LABELS = "The texts have no labels: pass (texts, labels), as validation_data, too."


class RowMaker:
    """Makes rows of texts and of pairs of texts, and checks labels and sample weights.

    Args:
        head: the model: it has `tokenizer`, `sequence_length`, `label_rule`, `takes_class_numbers` and, once it is
            compiled, `loss`; `pair_columns`, the names of both columns, if it takes only pairs; and `class_names`, if
            it has classes. They are read when they are needed, since a user may replace them.
    """

    def __init__(self, head):
        self.head = head

    @property
    def tokenizer(self):
        return self.head.tokenizer

    @property
    def sequence_length(self):
        return self.head.sequence_length

    @property
    def room(self):
        """The tokens of a single text that a row holds."""
        return self.sequence_length - self.tokenizer.template.num_control(is_pair=False)

    @property
    def class_names(self):
        return getattr(self.head, "class_names", None) or ()

    @property
    def length_multiple(self):
        """What lengths are rounded up to: where every new shape is compiled, few different ones are faster."""
        return ROW_MULTIPLE if self.head.jit_compile else 8

    def received(self, x, labels=None):
        """What a user gave as inputs, beside these labels, in a form that is known; see `other_libraries.received`."""
        return received(x, is_pair=labels is not None or bool(getattr(self.head, "pair_columns", None)))

    def is_natural(self, x):
        """Whether `x` is natural data in memory, without labels; anything else is a dataset, or for Keras."""
        return is_text_input(x)

    def unlabelled(self, texts):
        """The `batching.Rows` of texts; the number of those that were cut is in them."""
        return Rows.from_texts(self.tokenizer, *self.columns_of(texts), self.sequence_length)

    def columns_of(self, texts):
        """The first and second texts as `texts_of` gives them, for a head that takes only pairs never without the
        second."""
        first, second = texts_of(texts)
        names = getattr(self.head, "pair_columns", None)
        if names and second is None:
            raise ValueError(
                f"{type(self.head).__name__} got single texts: pass a tuple of two columns, ({', '.join(names)})."
            )
        return first, second

    def rows_of(self, texts):
        """As `unlabelled`; a warning says how many were cut."""
        return self.told(self.fitting(self.unlabelled(texts)))

    def warn_of_cut(self, rows):
        """Warns, if any texts of these Rows had to be cut."""
        warn_of_cut(rows.num_cut, len(rows.first), self.sequence_length)

    def fitting(self, rows):
        """Rows as they are. Raises ValueError if the encoder cannot take them, naming the first."""
        self.head.encoder.check_texts(rows.first, rows.second, self.tokenizer.template)
        return rows

    def labelled(self, texts, labels, weights):
        """The Rows of texts with their labels and weights, checked."""
        rows = self.fitting(self.unlabelled(texts))
        sizes = sizes_of_texts(rows, self.tokenizer.template, self.sequence_length)
        rule = self.head.label_rule(sizes)
        if rule is not None and labels is None:
            raise ValueError(WITHOUT_LABELS)
        rows.labels, rows.weights = self.checked(sizes, labels, weights)
        rows.per_token = rule is not None and rule.per_token
        return rows

    def told(self, rows):
        """The same Rows; a warning says how many texts were cut, after all errors in them."""
        self.warn_of_cut(rows)
        return rows

    def checked(self, sizes, labels, weights):
        """Labels and weights of rows of these `labels.RowSizes`, as arrays. Raises ValueError naming the first that is
        wrong."""
        if labels is None or isinstance(labels, dict):
            return labels, weights
        loss = getattr(self.head, "loss", None)
        rule = self.head.label_rule(sizes)
        if rule is not None and rule.limit is not None and not self.head.takes_class_numbers(loss):
            if rule.names and len(labels) and (is_texts(labels) or (is_of_keras(loss) and np.ndim(labels) == 1)):
                raise ValueError(
                    "The labels are classes, but the loss takes a number for each class of a row: compile with "
                    "'sparse_categorical_crossentropy'."
                )
            rule = None
        return checked_labels(labels, weights, rule, sizes, ignored_labels(loss))

    def checked_beside(self, x, labels, weights):
        """Labels and weights of arrays of ids; those of batches that were made before are checked in place."""
        if isinstance(x, LengthBatches) and not isinstance(x.rows.labels, dict | None):
            sizes = sizes_of_texts(x.rows, x.tokenizer.template, x.sequence_length)
            self.checked(sizes, np.asarray(x.rows.labels).view(Positions), x.rows.weights)
        sizes = None if labels is None else sizes_of_arrays(x)
        return (labels, weights) if sizes is None else self.checked(sizes, labels, weights)

    def packed(self, rows, pad_to=None):
        """The input arrays of Rows, each as long as `pad_to`, or as the longest rounded up to a multiple of 32."""
        rows = self.fitting(rows)
        return rows.of_examples(pack_rows(self.tokenizer, rows.first, rows.second, self.sequence_length, pad_to))

    def to_train(self, texts, labels, weights, batch_size, shuffle):
        """Batches of labelled rows of about the same length."""
        return self.batches_of(self.told(self.labelled(texts, labels, weights)), batch_size, shuffle, seed=None)

    def to_judge(self, texts, labels, weights, batch_size):
        """(x, y, sample_weight) as `keras.Model.evaluate` takes them."""
        # The same batches each time, so that a figure of the same weights is the same to the last bit.
        rows = self.told(self.labelled(texts, labels, weights))
        return self.batches_of(rows, batch_size, kind=SortedBatches, seed=None), None, None

    def batches_of(self, rows, batch_size, shuffle=True, kind=LengthBatches, seed=0):
        """The LengthBatches of Rows, or another kind of them; a `seed` of None is drawn."""
        length = self.sequence_length
        return kind(self.tokenizer, self.fitting(rows), batch_size or 32, length, shuffle, seed, self.length_multiple)

    def validation(self, data):
        """`validation_data` as (x, y) or (x, y, sample_weight), or what yields batches."""
        return data

    def seed(self):
        """Of the order of data and of what is drawn for them."""
        return drawn_seed()

    def with_class_weights(self, class_weight, rows):
        """The weights of Rows, with those of their classes."""
        return weights_of_rows(class_weight, rows.labels, rows.weights)

    def judged(self, batches):
        """Where the rows of SortedBatches are not what is judged, but what they are made of: (outputs, labels, sample
        weights or None, further figures by name), computed from these batches. None where each row is judged."""
        return None

    def texts_of_source(self, batches):
        """The texts, labels and weights of an iterator over a dataset's batches, in memory, where its outputs are not
        those of its rows; otherwise None."""
        return None

    def rows_of_source(self, source, arrange, class_weight):
        """What a dataset is trained on: the same BatchSource, or where a text has several rows, one of Rows, with the
        weights of classes in them.

        Args:
            source: the BatchSource of a dataset.
            arrange: function from one of its batches to texts, (texts, labels) or (texts, labels, weights).
            class_weight: weights by the numbers of classes, or None.
        """
        return source

    def of_texts(self, rows, outputs):
        """The outputs of texts, from those of their rows."""
        return outputs if rows.windows is None else means_of_texts(outputs, rows.windows)

    def converted(self, batch, random, pad_to):
        """An element of a dataset, texts, (texts, labels) or (texts, labels, weights), as Keras takes it.

        `random` is a NumPy generator for what is drawn for each batch; `pad_to` the length of its rows, or None for
        that of the longest, rounded up by `padded_length`.

        Returns: the converted batch, and (the number of texts that were cut, the number of texts).
        """
        is_alone = self.is_natural(batch)
        rows = self.unlabelled(batch) if is_alone else self.labelled(*(*batch, None)[:3])
        width = pad_to or self.length_of_batch(rows)
        inputs, cut = self.packed(rows, width), (rows.num_cut, len(rows.first))
        if is_alone:
            return inputs, cut
        labels, weights = rows.labels, rows.weights
        if rows.per_token:
            labels, weights = (
                of_width(array, width, padding) if np.ndim(array) == 2 else array
                for array, padding in ((labels, NO_LABEL[0]), (weights, 0))
            )
        return (inputs, labels) if weights is None else (inputs, labels, weights), cut

    def length_of_batch(self, rows):
        """The length of the rows of a batch of a dataset."""
        return padded_length(rows.lengths(self.tokenizer.template).max(initial=1), self.sequence_length)
