"""What is done with texts that are longer than a row, as a model's `long_texts` says; pairs are always cut.

"cut" keeps the beginning. "head_and_tail" keeps a quarter of a row from the beginning and the rest from the end of the
text, the best of Sun et al. 2019, "How to Fine-Tune BERT for Text Classification?", section 5.3.1. "windows" computes
the whole text in windows that overlap by half: the outputs of a text are the mean of its windows', and in training each
window is a row with the text's label. The weight of the text is divided among them, and the loss is the mean over
texts. `evaluate` and validation are of texts, by their mean outputs, as `predict` gives them. A dataset is trained on
as a stream of windows, whose loss is so for each of its batches, and read into memory to be evaluated or predicted.
"""

import numpy as np

from keras_bert_impl.batching import Rows
from keras_bert_impl.preprocessing.splits_and_weights import weights_of_rows
from keras_bert_impl.preprocessing.texts import is_texts, to_strings
from keras_bert_impl.suggestions import one_of

LONG_TEXTS = ("cut", "head_and_tail", "windows")


def texts_of_batches(batches, takes):
    """The texts, labels and weights of a dataset's batches as those of one; None if they are no single texts.

    `takes` is a function that tells texts from a batch of them with labels.
    """
    texts, parts = [], []
    for batch in batches:
        of_batch, *more = (batch,) if takes(batch) else batch
        if not is_texts(of_batch):
            return None
        texts += to_strings(of_batch)
        parts.append(more)
    joined = [joined_batches(column) for column in zip(*parts, strict=True)]
    return (texts, *joined, None, None)[:3] if texts else None


def stream_of_windows(batches, rows_of, class_weight):
    """Windows of batches of labelled texts as Rows, as many at a time as the first batch has texts.

    Args:
        batches: an iterator over (texts, labels) or (texts, labels, weights).
        rows_of: the function that makes Rows of a batch.
        class_weight: weights by the numbers of classes, or None.
    """
    waiting, size = [], None
    for batch in batches:
        size = size or len(batch[0])
        rows = rows_of(*(*batch, None)[:3])
        weights = np.ones(len(rows), "float32") if rows.weights is None else rows.weights
        if class_weight is not None:
            weights = weights_of_rows(class_weight, rows.labels, weights)
        waiting += zip(rows.first, rows.labels, weights, strict=True)
        while len(waiting) >= size:
            yield _rows(waiting[:size])
            del waiting[:size]
    if waiting:
        yield _rows(waiting)


def joined_batches(parts):
    """The labels or weights of batches, arrays or lists, as those of one."""
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts).view(type(parts[0]))
    return [row for part in parts for row in (part.tolist() if isinstance(part, np.ndarray) else part)]


def _rows(windows):
    first, labels, weights = zip(*windows, strict=True)
    return Rows(list(first), labels=np.array(labels), weights=np.array(weights, "float32"))


def rows_of_long_texts(ids, room, long_texts):
    """The Rows of texts, lists of ids, of which a row holds `room`, as "head_and_tail" or "windows"."""
    if long_texts == "head_and_tail":
        return Rows([head_and_tail(one, room) for one in ids], num_cut=sum(len(one) > room for one in ids))
    begins, windows = windows_of(ids, room)
    return Rows(windows, windows=np.array(list(map(len, begins))))


def share_labels(rows):
    """Rows of windows that share the labels and weights of their texts. The loss, which Keras divides by the number of
    windows, shall be that of texts: hence times as many windows as a text has on average."""
    counts, weights = rows.windows, rows.weights
    if rows.labels is not None:
        owner = np.repeat(np.arange(len(counts)), counts)
        rows.labels = rows.labels[owner]
        if weights is not None or counts.max() > 1:
            of_texts = np.ones(len(counts), "float32") if weights is None else weights
            rows.weights = of_texts[owner] * (counts.mean() / counts[owner]).astype("float32")
    return rows


def checked_long_texts(long_texts):
    """`long_texts`. Raises ValueError if it is none of LONG_TEXTS."""
    return one_of("long_texts", long_texts, LONG_TEXTS)


def arguments_of(long_texts):
    """Those of a TextPreprocessor that does with long texts as a model's `long_texts` says."""
    return {} if long_texts == "cut" else {"truncate": long_texts}


def head_and_tail(ids, room):
    """At most `room` ids: if there are more, a quarter from the beginning and the rest from the end."""
    head = room // 4
    return ids if len(ids) <= room else [*ids[:head], *ids[len(ids) - (room - head) :]]


def window_begins(count, room, stride):
    """The first token of each window over `count` tokens, `room` at a time; the last window reaches the end."""
    step = min(stride, room)  # a larger one would skip tokens
    return list(range(0, max(count - room, 0) + step, step))


def windows_of(texts, room):
    """Windows of `room` ids that overlap by half, for lists of ids: a list as `window_begins` gives it for each text,
    and the ids of all windows, those of a text one after the other."""
    begins = [window_begins(len(ids), room, max(1, room // 2)) for ids in texts]
    windows = [ids[begin : begin + room] for ids, of_text in zip(texts, begins, strict=True) for begin in of_text]
    return begins, windows
