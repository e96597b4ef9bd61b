"""What is done with texts that are longer than a row: cut, without their middle, or in windows."""

import math

import numpy as np

from keras_bert_impl.batching import Rows, predict_rows
from keras_bert_impl.preprocessing.batch_sources import BatchSource
from keras_bert_impl.preprocessing.class_sets import rows_of_zeros_and_ones
from keras_bert_impl.preprocessing.labels import RowSizes
from keras_bert_impl.preprocessing.row_maker import RowMaker
from keras_bert_impl.preprocessing.splits_and_weights import weights_of_rows
from keras_bert_impl.preprocessing.texts import is_texts, to_strings
from keras_bert_impl.preprocessing.windows import windows_of

LONG_TEXTS = ("cut", "head_and_tail", "windows")


class LongTextRows(RowMaker):
    """Rows of single texts, that hold more of a long text than fits into one, as the head's `long_texts` says.

    "cut" keeps the beginning. "head_and_tail" keeps a quarter of a row from the beginning and the rest from the end of
    the text, the best of Sun et al. 2019, "How to Fine-Tune BERT for Text Classification?", section 5.3.1. "windows"
    computes the whole text in windows that overlap by half: the outputs of a text are the mean of its windows', and in
    training each window is a row with the text's label. The weight of the text is divided among them, and the loss is
    the mean over texts. `evaluate` and validation are of texts, by their mean outputs, as `predict` gives them. A
    dataset is trained on as a stream of windows, whose loss is so for each of its batches, and read into memory to be
    evaluated or predicted. Pairs are always cut.
    """

    def judged(self, batches):
        """Texts, by the mean outputs of their windows."""
        rows = batches.rows
        if rows.windows is None:
            return None
        # `share_labels` has divided the weights among the windows, whose number it has made their mean.
        whole = rows.windows / rows.windows.mean()
        weights = None if rows.weights is None else rows.of_texts(rows.weights) * whole
        return predict_rows(self.head, batches), rows.of_texts(rows.labels), weights, {}

    def unlabelled(self, texts):
        if self.head.long_texts == "cut" or not is_texts(texts):
            return super().unlabelled(texts)
        return rows_of_long_texts(self.tokenizer.ids_batch(to_strings(texts)), self.room, self.head.long_texts)

    def labelled(self, texts, labels, weights):
        if self.head.long_texts != "windows" or not is_texts(texts):
            return super().labelled(texts, labels, weights)
        rows = self.rows_of(texts)
        share_labels(rows, *self.checked(RowSizes(np.ones(len(rows.windows), "int32"), 1), labels, weights))
        return rows

    def with_class_weights(self, class_weight, rows):
        if rows.windows is None:
            return super().with_class_weights(class_weight, rows)
        # A text counts once, however many windows it has.
        of_texts = weights_of_rows(class_weight, rows.of_texts(rows.labels), None)
        return np.repeat(of_texts, rows.windows) * (1 if rows.weights is None else rows.weights)

    def texts_of_source(self, batches):
        texts, parts = [], []
        for batch in batches:
            if self.head.long_texts != "windows" or not is_texts(batch if self.is_natural(batch) else batch[0]):
                return None
            of_batch, *more = (batch,) if self.is_natural(batch) else batch
            texts += to_strings(of_batch)
            parts.append(more)
        joined = [joined_batches(column) for column in zip(*parts, strict=True)]
        return (texts, *joined, None, None)[:3] if texts else None

    def rows_of_source(self, source, arrange, class_weight):
        if self.head.long_texts != "windows":
            return source
        first = next(iter(source.open()), None)
        first = None if first is None else arrange(first)
        if first is None or self.is_natural(first) or not is_texts(first[0]):
            return source
        num_batches = math.inf if source.num_batches == math.inf else None
        return BatchSource(lambda: self._stream(source.open(), arrange, class_weight, len(first[0])), num_batches)

    def _stream(self, batches, arrange, class_weight, size):
        """Windows of a stream of labelled texts as Rows, `size` at a time."""
        waiting = []
        for batch in batches:
            rows = self.labelled(*(*arrange(batch), None)[:3])
            weights = np.ones(len(rows), "float32") if rows.weights is None else rows.weights
            if class_weight is not None:
                weights = weights_of_rows(class_weight, rows.labels, weights)
            waiting += zip(rows.first, rows.labels, weights, strict=True)
            while len(waiting) >= size:
                yield _rows(waiting[:size])
                del waiting[:size]
        if waiting:
            yield _rows(waiting)

    def converted(self, batch, random, pad_to):
        if not isinstance(batch, Rows):
            return super().converted(batch, random, pad_to)
        inputs = self.packed(batch, pad_to or self.length_of_batch(batch))
        return (inputs, batch.labels, batch.weights), (0, len(batch))


class ClassRows(LongTextRows):
    """Rows of texts with a class each, or with several, if the head is `multi_label`."""

    def checked(self, sizes, labels, weights):
        if not self.head.multi_label:
            return super().checked(sizes, labels, weights)
        labels = None if labels is None else rows_of_zeros_and_ones(labels, self.class_names)
        labels, weights = super().checked(sizes, labels, weights)
        if weights is not None and weights.ndim > 1:
            # Keras takes the mean over the classes before it multiplies by the weights.
            raise ValueError(f"sample_weight has shape {weights.shape}, expected one for each text, ({len(labels)},).")
        return labels, weights


def joined_batches(parts):
    """The labels or weights of batches, arrays or lists, as those of one."""
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts).view(type(parts[0]))
    return [row for part in parts for row in (part.tolist() if isinstance(part, np.ndarray) else part)]


def _rows(windows):
    first, labels, weights = zip(*windows, strict=True)
    return Rows(list(first), labels=np.array(labels), weights=np.array(weights, "float32"))


def rows_of_long_texts(ids, room, long_texts):
    """The Rows of texts, lists of ids, of which a row holds `room`, as "head_and_tail" or "windows" of LongTextRows."""
    if long_texts == "head_and_tail":
        return Rows([head_and_tail(one, room) for one in ids], num_cut=sum(len(one) > room for one in ids))
    begins, windows = windows_of(ids, room)
    return Rows(windows, windows=np.array(list(map(len, begins))))


def share_labels(rows, labels, weights=None):
    """Gives each window the label of its text, and divides the weight of the text, 1 for None, among them. The loss,
    which Keras divides by the number of windows, shall be that of texts: hence times as many windows as a text has on
    average."""
    counts = rows.windows
    owner = np.repeat(np.arange(len(counts)), counts)
    rows.labels = labels[owner]
    if weights is not None or counts.max() > 1:
        of_texts = np.ones(len(counts), "float32") if weights is None else weights
        rows.weights = of_texts[owner] * (counts.mean() / counts[owner]).astype("float32")


def checked_long_texts(long_texts):
    """`long_texts`. Raises ValueError if it is none of LONG_TEXTS."""
    if long_texts not in LONG_TEXTS:
        raise ValueError(f"long_texts {long_texts!r} is unknown; known are {', '.join(LONG_TEXTS)}.")
    return long_texts


def head_and_tail(ids, room):
    """At most `room` ids: if there are more, a quarter from the beginning and the rest from the end."""
    head = room // 4
    return ids if len(ids) <= room else [*ids[:head], *ids[len(ids) - (room - head) :]]
