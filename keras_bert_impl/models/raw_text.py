"""`fit`, `evaluate` and `predict` on raw text, for models that hold a tokenizer."""

import warnings

import keras
import numpy as np

from keras_bert_impl.batching import LengthBatches, Rows, SortedBatches, drawn_seed, evaluate_outputs, padded_length
from keras_bert_impl.distribution import in_scope_of_model, is_shared, needs_equal_shapes
from keras_bert_impl.losses import NO_LABEL
from keras_bert_impl.models.batch_sources import BatchSource, arranged
from keras_bert_impl.models.data_sources import in_memory, received, received_validation, without_columns
from keras_bert_impl.models.fit_arguments import in_order_of_classes, split_rows, weights_by_number, weights_of_rows
from keras_bert_impl.models.labels import (
    Positions,
    checked_labels,
    ignored_labels,
    of_width,
    refuse_numbers_as_names,
    require_labels,
    sizes_of_arrays,
    sizes_of_texts,
    takes_class_numbers,
)
from keras_bert_impl.models.text_batches import TextBatches
from keras_bert_impl.models.text_inputs import is_text_input, is_texts, texts_of
from keras_bert_impl.tokenizers.rows import ROW_MULTIPLE, TextsCutWarning, pack_rows, warn_of_cut


class RawTextMixin:
    """Lets a model's `fit`, `evaluate` and `predict` take texts wherever they take ids.

    Texts are a list or array of strings, or a column of pandas, polars, PyArrow or Hugging Face `datasets`; sentence
    pairs are a tuple of two such columns, `(questions, contexts)`, or a list with a 2-tuple for each pair. A
    `tf.data.Dataset` or PyTorch `DataLoader` yields batches of them: texts, (texts, labels) or (texts, labels,
    weights), or dicts with the columns "text", "text_pair" and "label"; such a batch is padded to the next of a few
    lengths, `batching.padded_length`, or to `sequence_length` where all batches must have the same shape. Anything else
    is passed to Keras. The model has the attributes `tokenizer` and `sequence_length`: longer texts are cut, and a
    warning gives their number.

    Labels and sample weights are arrays, lists, tuples or columns. On every backend, their number, shape and range are
    checked: for those in memory before training, for a dataset of texts batch by batch; those of a dataset of ids are
    left to Keras. -1 and -100 mean that there is no label: a token without a label is ignored, a row without one is
    refused.
    """

    pair_columns = None  # names of both columns, for a model that takes only pairs

    @in_scope_of_model
    def fit(
        self,
        x=None,
        y=None,
        batch_size=None,
        epochs=1,
        verbose="auto",
        callbacks=None,
        validation_split=0.0,
        validation_data=None,
        shuffle=True,
        class_weight=None,
        sample_weight=None,
        **arguments,
    ):
        """`keras.Model.fit`, with texts or ids for `x` and in `validation_data`; by default in batches of 32.

        Lists of texts are tokenized once and batched by length (`batching.LengthBatches`), in a new order each epoch;
        with shuffle=False in the order given. `validation_split` takes the last part of the texts, before shuffling;
        `class_weight` has the names or numbers of classes as keys, or is "balanced". With `callbacks.ExactResume` among
        the callbacks, an interrupted `fit` resumes where it was.
        """
        x, y, sample_weight = received(x), self._labels_in_memory(y), in_memory(sample_weight)
        _refuse_beside_batches(x, y, sample_weight, validation_split)
        if isinstance(validation_data, tuple) and len(validation_data) > 1:
            validation_data = (validation_data[0], self._labels_in_memory(validation_data[1]), *validation_data[2:])
        validation_data = received_validation(validation_data)
        class_weight = weights_by_number(class_weight, self)
        if validation_split and validation_data is None and self._is_text_input(x):
            (x, y, sample_weight), validation_data = split_rows((x, y, sample_weight), validation_split)
            validation_split = 0.0
        validation_batch_size = arguments.get("validation_batch_size") or batch_size
        validation_data = self._validation(validation_data, validation_batch_size, arguments.get("validation_steps"))
        is_ours = self._is_text_input(x) or isinstance(x, (BatchSource, LengthBatches))
        if self._is_text_input(x):
            x, y, sample_weight = self._training_data(x, y, sample_weight, batch_size, shuffle), None, None
            if class_weight is not None:  # Keras takes them only of rows without weights of their own
                x.rows.weights, class_weight = self._with_class_weights(class_weight, x.rows), None
        x = self._to_inputs(x, arguments.get("steps_per_epoch"), with_labels=True)
        y, sample_weight = self._checked(x, y, sample_weight)
        if class_weight is not None and y is not None:
            sample_weight, class_weight = weights_of_rows(class_weight, y, sample_weight), None
        if class_weight == "balanced":
            raise ValueError("class_weight='balanced' needs labels in memory: count those of the dataset yourself.")
        self._build_variables(x)
        return super().fit(
            x,
            y,
            batch_size=batch_size,
            epochs=epochs,
            verbose=verbose,
            callbacks=callbacks,
            validation_split=validation_split,
            validation_data=validation_data,
            shuffle=shuffle and not is_ours,  # these have their own order; Keras would permute the batches
            class_weight=class_weight,
            sample_weight=sample_weight,
            **arguments,
        )

    @in_scope_of_model
    def evaluate(self, x=None, y=None, batch_size=None, verbose="auto", sample_weight=None, steps=None, **arguments):
        """`keras.Model.evaluate`, with texts or ids for `x`."""
        x, y, sample_weight = received(x), self._labels_in_memory(y), in_memory(sample_weight)
        _refuse_beside_batches(x, y, sample_weight)
        if self._is_text_input(x):
            x, y, sample_weight = self._test_data(x, y, sample_weight, batch_size)
        if isinstance(x, SortedBatches) and (judged := self._judged(x)) is not None:
            outputs, labels, weights, figures = judged
            verbose = 0 if arguments.get("_use_cached_eval_dataset") else verbose  # `fit` prints for its validation
            return_dict = arguments.get("return_dict", False)
            return evaluate_outputs(self, outputs, labels, weights, x.batch_size, verbose, return_dict, **figures)
        x = self._to_inputs(x, steps, with_labels=True)
        y, sample_weight = self._checked(x, y, sample_weight)
        return super().evaluate(
            x, y, batch_size=batch_size, verbose=verbose, sample_weight=sample_weight, steps=steps, **arguments
        )

    @in_scope_of_model
    def predict(self, x, batch_size=None, verbose="auto", steps=None, **arguments):
        """`keras.Model.predict`, with texts or ids for `x`; one string is one text.

        Lists of texts are computed in batches of about the same length; the outputs are in the order of the texts.
        If there is an output for each token, all rows are as long as the longest.
        """
        arguments = {"verbose": verbose, **arguments}
        x = [x] if isinstance(x, str) else received(x)
        if not self._is_text_input(x) or any(None in output.shape[1:] for output in self.outputs):
            return super().predict(self._to_inputs(x, steps), batch_size=batch_size, steps=steps, **arguments)
        if steps is not None:
            raise ValueError(f"steps={steps} is for datasets: of a list of texts, pass only those that you want.")
        rows = self._text_rows(x)
        batches = SortedBatches(
            self.tokenizer,
            rows,
            batch_size=batch_size or 32,
            sequence_length=self.sequence_length,
            # Every new shape would be compiled: few different ones are faster.
            multiple=ROW_MULTIPLE if self.jit_compile else 1,
        )
        return self._of_texts(rows, batches.restore(super().predict(batches, **arguments)))

    def rows(self, texts, pad_to=None):
        """The input arrays of `texts`, shape (batch, length).

        The length is `pad_to`, or that of the longest text rounded up to a multiple of 32.
        """
        return self._packed(self._text_rows(in_memory(texts)), pad_to)

    def label_rule(self, sizes):
        """The `labels.LabelRule` for rows of these `labels.RowSizes`; None allows any labels."""
        return None

    def _judged(self, batches):
        """Where the rows of SortedBatches are not what is judged, but what they are made of: (outputs, labels, sample
        weights or None, further figures by name), computed from these batches. None where each row is judged."""
        return None

    def _labels_in_memory(self, labels):
        return in_memory(in_order_of_classes(labels, getattr(self, "class_names", ())))

    def _is_text_input(self, x):
        return is_text_input(x)

    def _text_rows(self, texts):
        """The `batching.Rows` of texts; a warning says how many were cut."""
        rows = self._rows_of(texts)
        warn_of_cut(rows.num_cut, len(rows.first), self.sequence_length)
        return rows

    def _rows_of(self, texts):
        return Rows.from_texts(self._require_tokenizer(), *self._columns_of(texts), self.sequence_length)

    def _columns_of(self, texts):
        """The first and second texts as `texts_of` gives them, for a model that takes only pairs never without the
        second."""
        first, second = texts_of(texts)
        if self.pair_columns and second is None:
            names = " and ".join(self.pair_columns)
            raise ValueError(
                f"{type(self).__name__} takes {names}, but got single texts: pass a tuple of two columns, "
                f"({', '.join(self.pair_columns)}), or a list of tuples."
            )
        return first, second

    def _of_texts(self, rows, outputs):
        """The outputs of texts, from those of their rows."""
        return outputs

    def _packed(self, rows, pad_to=None):
        return pack_rows(self.tokenizer, rows.first, rows.second, self.sequence_length, pad_to)

    @property
    def _length_multiple(self):
        """What lengths are rounded up to: where every new shape is compiled, few different ones are faster."""
        return ROW_MULTIPLE if self.jit_compile else 8

    def _training_data(self, texts, labels, weights, batch_size, shuffle, kind=LengthBatches):
        """Texts and labels as Keras trains on them: batches of rows of about the same length."""
        return kind(
            self.tokenizer,
            self._labelled_rows(texts, labels, weights),
            batch_size=batch_size or 32,
            sequence_length=self.sequence_length,
            shuffle=shuffle,
            seed=None,  # drawn
            multiple=self._length_multiple,
        )

    def _labelled_rows(self, texts, labels, weights):
        """The Rows of texts with their labels and weights, checked."""
        rows = self._text_rows(texts)
        sizes = sizes_of_texts(rows, self.tokenizer.template, self.sequence_length)
        rule = self.label_rule(sizes)
        require_labels(labels, len(rows), rule)
        rows.labels, rows.weights = self._checked_against(sizes, labels, weights)
        rows.per_token = rule is not None and rule.per_token
        return rows

    def _with_class_weights(self, class_weight, rows):
        """The weights of `batching.Rows`, with those of their classes."""
        return weights_of_rows(class_weight, rows.labels, rows.weights)

    def _build_variables(self, x):
        """Creates the variables of the optimizer and the metrics before `fit`, from the first batch.

        Where they are created while TensorFlow traces the training step, it has to trace the step a second time, which
        takes a third of the time that the first `fit` of a small model takes to begin.
        """
        is_in_memory = isinstance(x, keras.utils.PyDataset) and not isinstance(x, TextBatches)
        if is_in_memory and self.compiled and not self.optimizer.built and not is_shared():
            self._symbolic_build(data_batch=keras.utils.unpack_x_y_sample_weight(x[0]))

    def _test_data(self, texts, labels, weights, batch_size):
        """Inputs, labels and weights for Keras to evaluate on."""
        # The same batches each time, so that a figure of the same weights is the same to the last bit.
        return self._training_data(texts, labels, weights, batch_size, True, SortedBatches), None, None

    def _validation(self, data, batch_size, steps):
        """`validation_data` with its texts converted to what Keras takes."""
        if is_texts(data):
            raise ValueError("validation_data holds texts without labels: pass (texts, labels).")
        if not isinstance(data, (list, tuple)):
            return None if data is None else self._to_inputs(data, steps, with_labels=True)
        if self._is_text_input(data[0]):
            return self._test_data(*data, *[None] * (3 - len(data)), batch_size)
        x, y, weights = (*data, None, None)[:3]
        return x, *self._checked(x, y, weights)

    def _checked(self, x, y, weights):
        """Labels and weights of arrays of ids, checked and as arrays; those of batches are checked in place."""
        if isinstance(x, LengthBatches) and not isinstance(x.rows.labels, dict | None):
            sizes = sizes_of_texts(x.rows, x.tokenizer.template, x.sequence_length)
            self._checked_against(sizes, np.asarray(x.rows.labels).view(Positions), x.rows.weights)
        sizes = None if y is None else sizes_of_arrays(x)
        return (y, weights) if sizes is None else self._checked_against(sizes, y, weights)

    def _checked_against(self, sizes, labels, weights):
        if labels is None or isinstance(labels, dict):
            return labels, weights
        loss = getattr(self, "loss", None)
        rule = self.label_rule(sizes)
        if rule is not None and rule.limit is not None and not self._takes_class_numbers(loss):
            if rule.names and is_texts(labels):
                raise ValueError(
                    "The labels are names of classes, but the loss takes a number for each class of a row: compile "
                    "with 'sparse_categorical_crossentropy'."
                )
            rule = None
        return checked_labels(labels, weights, rule, sizes, ignored_labels(loss))

    def _takes_class_numbers(self, loss):
        return takes_class_numbers(loss)

    def _to_inputs(self, x, steps=None, with_labels=False):
        if isinstance(x, str):
            raise ValueError("Got one string where texts were expected: pass a list of strings.")
        if isinstance(x, (list, tuple)) and not x:
            raise ValueError("Got no texts: the list is empty.")
        if isinstance(x, BatchSource):
            self._require_tokenizer()
            class_names = getattr(self, "class_names", ())

            # The outputs of tokens, which `predict` joins, are as long as the longest row.
            is_joined = not with_labels and any(None in output.shape[1:] for output in self.outputs)
            whole = self.sequence_length if is_joined or needs_equal_shapes() else None

            def convert(batch, random, pad_to):
                batch = arranged(batch, self._is_text_input, class_names, with_labels)
                return self._convert_batch(batch, random, whole or pad_to)

            batches = TextBatches(x, convert, self.sequence_length, steps, self._seed_of_data())
            batches.check_first()
            return batches
        if with_labels and not isinstance(x, dict | LengthBatches) and not self._is_text_input(x):
            refuse_numbers_as_names(getattr(self, "class_names", ()))
        return self.rows(x) if self._is_text_input(x) else without_columns(x)

    def _seed_of_data(self):
        return drawn_seed()

    def _convert_batch(self, batch, random, pad_to):
        """Converts an element of a dataset for Keras: texts, (texts, labels) or (texts, labels, weights).

        `random` is a NumPy generator for models that draw something for each batch; `pad_to` the length of its rows, or
        None for that of the longest, rounded up by `padded_length`.

        Returns: the converted batch, and (the number of texts that were cut, the number of texts).
        """
        is_alone = self._is_text_input(batch)
        texts, labels, weights = (batch, None, None) if is_alone else (*batch, None)[:3]
        if not len(texts):
            raise ValueError("it holds no text.")
        if not is_alone and self._are_in_words(texts, labels):
            return self._converted_rows(texts, labels, weights, pad_to)
        rows = self._rows_of(texts)
        width = pad_to or self._length_of_batch(rows)
        inputs, cut = self._packed(rows, width), (rows.num_cut, len(rows.first))
        if is_alone:
            return inputs, cut
        sizes = sizes_of_texts(rows, self.tokenizer.template, self.sequence_length)._replace(width=width)
        labels, weights = self._checked_against(sizes, labels, weights)
        return (inputs, labels) if weights is None else (inputs, labels, weights), cut

    def _are_in_words(self, texts, labels):
        """Whether `_labelled_rows` makes the labels of tokens, or the rows, from labels in words."""
        return False

    def _length_of_batch(self, rows):
        return padded_length(rows.lengths(self._require_tokenizer().template).max(initial=1), self.sequence_length)

    def _converted_rows(self, texts, labels, weights, pad_to):
        """As `_convert_batch`, for labels in words, from which `_labelled_rows` makes those of tokens."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TextsCutWarning)  # they are counted over all batches
            rows = self._labelled_rows(texts, labels, weights)
        width = pad_to or self._length_of_batch(rows)
        inputs, cut = self._packed(rows, width), (rows.num_cut, len(rows))
        labels, weights = rows.labels, rows.weights
        if rows.per_token:
            labels = of_width(labels, width, NO_LABEL[0])
            weights = weights if np.ndim(weights) < 2 else of_width(weights, width, 0)
        return (inputs, labels) if weights is None else (inputs, labels, weights), cut

    def _require_tokenizer(self):
        if self.tokenizer is None:
            raise ValueError(
                f"{type(self).__name__} was given text but has no tokenizer: build it with "
                "tokenizer=WordPieceTokenizer('vocab.txt'), or another one, or pass ids."
            )
        return self.tokenizer


def _refuse_beside_batches(x, labels, weights, validation_split=0):
    """Raises ValueError for arguments that Keras would refuse beside a dataset, in words of its own classes."""
    if not isinstance(x, BatchSource):
        return
    if labels is not None or weights is not None:
        raise ValueError("The data are a dataset of batches: it has to yield (texts, labels), and y is left out.")
    if validation_split:
        raise ValueError("validation_split is for lists: of a dataset, pass a part of it as validation_data.")
