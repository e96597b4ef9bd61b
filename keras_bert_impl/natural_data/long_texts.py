"""What is done with texts that are longer than a row: cut, without their middle, or in windows."""

import numpy as np

from keras_bert_impl.batching import Rows, predict_rows
from keras_bert_impl.natural_data.class_sets import refuse_several, rows_of_zeros_and_ones
from keras_bert_impl.natural_data.labels import RowSizes, require_labels
from keras_bert_impl.natural_data.row_maker import RowMaker
from keras_bert_impl.natural_data.splits_and_weights import weights_of_rows
from keras_bert_impl.natural_data.texts import is_texts, to_strings
from keras_bert_impl.natural_data.windows import windows_of

LONG_TEXTS = ("cut", "head_and_tail", "windows")


class LongTextRows(RowMaker):
    """Rows of single texts, that hold more of a long text than fits into one, as the head's `long_texts` says.

    "cut" keeps the beginning. "head_and_tail" keeps a quarter of a row from the beginning and the rest from the end of
    the text, the best of Sun et al. 2019, "How to Fine-Tune BERT for Text Classification?", section 5.3.1. "windows"
    computes the whole text in windows that overlap by half: the outputs of a text are the mean of its windows', and in
    training each window is a row with the text's label, whose weight is divided among them. `evaluate` and validation
    are of texts, by their mean outputs, as `predict` gives them. Pairs are always cut.
    """

    def judged(self, batches):
        """Texts, by the mean outputs of their windows."""
        rows, counts = batches.rows, batches.rows.source
        if self.head.long_texts != "windows" or counts is None:
            return None
        outputs = self.of_texts(rows, np.stack(predict_rows(self.head, batches)))
        begins = np.cumsum(counts) - counts
        weights = None if rows.weights is None else rows.weights[begins] * counts  # they were divided among the windows
        return outputs, rows.labels[begins], weights, {}

    def unlabelled(self, texts):
        if self.head.long_texts == "cut" or not is_texts(texts):
            return super().unlabelled(texts)
        room = self.room
        ids = self.tokenizer.ids_batch(to_strings(texts))
        if self.head.long_texts == "head_and_tail":
            return Rows([head_and_tail(one, room) for one in ids], num_cut=sum(len(one) > room for one in ids))
        begins, windows = windows_of(ids, room)
        return Rows(windows, source=np.array(list(map(len, begins))))

    def labelled(self, texts, labels, weights):
        if self.head.long_texts != "windows" or not is_texts(texts):
            return super().labelled(texts, labels, weights)
        rows = self.rows_of(texts)
        counts = rows.source
        sizes = RowSizes(np.ones(len(counts), "int32"), 1)
        require_labels(labels, len(counts), self.head.label_rule(sizes))
        labels, weights = self.checked(sizes, labels, weights)
        owner = np.repeat(np.arange(len(counts)), counts)
        rows.labels = labels[owner]
        if weights is not None or counts.max() > 1:
            rows.weights = (np.ones(len(counts), "float32") if weights is None else weights)[owner] / counts[owner]
        return rows

    def with_class_weights(self, class_weight, rows):
        if self.head.long_texts != "windows" or rows.source is None:
            return super().with_class_weights(class_weight, rows)
        # A text counts once, however many windows it has.
        begins = np.cumsum(rows.source) - rows.source
        of_texts = weights_of_rows(class_weight, rows.labels[begins], None)
        return np.repeat(of_texts, rows.source) * (1 if rows.weights is None else rows.weights)

    def of_texts(self, rows, outputs):
        if rows.source is None:
            return outputs
        begins = np.cumsum(rows.source) - rows.source
        return np.add.reduceat(outputs, begins, axis=0) / rows.source[:, None]

    def converted(self, batch, random, pad_to):
        if self.head.long_texts == "windows" and is_texts(batch if self.is_natural(batch) else batch[0]):
            raise ValueError(
                "long_texts='windows' needs all texts in memory, since a dataset has one row for each text: pass "
                "lists, or build the model with long_texts='head_and_tail'."
            )
        return super().converted(batch, random, pad_to)


class ClassRows(LongTextRows):
    """Rows of texts with a class each, or with several, if the head is `multi_label`."""

    def checked(self, sizes, labels, weights):
        if not self.head.multi_label:
            refuse_several(labels)
            return super().checked(sizes, labels, weights)
        labels = None if labels is None else rows_of_zeros_and_ones(labels, self.class_names)
        labels, weights = super().checked(sizes, labels, weights)
        if weights is not None and weights.ndim > 1:
            # Keras takes the mean over the classes before it multiplies by the weights.
            raise ValueError(
                f"sample_weight has shape {weights.shape}, expected ({len(labels)},), one for each text: the classes "
                "of a text share its weight."
            )
        return labels, weights


def checked_long_texts(long_texts):
    """`long_texts`. Raises ValueError if it is none of LONG_TEXTS."""
    if long_texts not in LONG_TEXTS:
        raise ValueError(f"long_texts {long_texts!r} is unknown; known are {', '.join(LONG_TEXTS)}.")
    return long_texts


def head_and_tail(ids, room):
    """At most `room` ids: if there are more, a quarter from the beginning and the rest from the end."""
    head = room // 4
    return ids if len(ids) <= room else [*ids[:head], *ids[len(ids) - (room - head) :]]
