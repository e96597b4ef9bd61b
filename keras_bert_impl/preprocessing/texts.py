"""Recognises texts among the inputs of `fit`, `evaluate` and `predict`, and reads them."""

import collections.abc

import keras
import numpy as np


def is_text_input(x):
    """Whether `x` is texts or pairs of texts in memory, even if wrongly arranged, which `texts_of` then reports."""
    if is_text_dataset(x):
        return False
    return is_texts(x) or is_text_pair(x) or (isinstance(x, list) and any(map(is_texts, x)))


def is_texts(x):
    """Whether `x` is a list, tuple or one-dimensional array of strings (or a tensor of them).

    One string is enough, so that `to_strings` can report a missing text among them.
    """
    if isinstance(x, (list, tuple)):
        return any(isinstance(text, (str, bytes)) for text in x)
    if isinstance(x, np.ndarray):
        return x.ndim == 1 and x.dtype.kind in "OSUT" and is_texts(x.tolist())
    # A pandas Series, a tf.Tensor of strings.
    return hasattr(x, "dtype") and str(x.dtype) in _TEXT_DTYPES and is_texts(np.asarray(x, dtype=object))


_TEXT_DTYPES = ("object", "str", "string", "<dtype: 'string'>")


def is_text_pair(x):
    """Whether `x` is a tuple of two columns of strings."""
    return isinstance(x, tuple) and len(x) == 2 and is_texts(x[0]) and is_texts(x[1])


def texts_of(x):
    """The first and second texts of `x` as lists of str; for single texts, the second is None.

    Pairs are a tuple of two columns, `(questions, contexts)`, or a list with a 2-tuple for each pair.

    Raises: ValueError for a text that is not a string, or a list whose elements are neither strings nor 2-tuples.
    """
    columns = columns_of(x)
    if columns is None:
        return to_strings(x), None
    first, second = columns
    return first, second


def is_word_lists(x):
    """Whether `x` is texts that are split into words: a list or column of lists of strings, of which some may be
    empty. Tuples are pairs of texts."""
    if isinstance(x, tuple | str) or keras.ops.is_tensor(x) or not hasattr(x, "__len__"):
        return False
    rows = [row for row in x if isinstance(row, list | np.ndarray)]
    return bool(rows) and any(map(is_texts, rows))


def to_word_lists(x):
    """A list of lists of str. Raises ValueError naming the text that is not a list of words."""
    for index, words in enumerate(x):
        if not isinstance(words, list | np.ndarray):
            raise ValueError(f"text {index} is {repr(words)[:60]}, but others are lists of words.")
    return list(map(to_strings, x))


def to_strings(texts):
    """A list of str; bytes are decoded as UTF-8, leaving out undecodable ones, as in Google's tokenizer.

    Raises: ValueError naming the first element that is neither str nor bytes.
    """
    texts = list(texts) if isinstance(texts, collections.abc.Sequence) else np.asarray(texts, dtype=object).tolist()
    for index, text in enumerate(texts):
        if not isinstance(text, (str, bytes)):
            raise ValueError(f"text {index} is {repr(text)[:60]}, not a string: leave it out, or write '' for it.")
    return [text.decode("utf-8", errors="ignore") if isinstance(text, bytes) else text for text in texts]


def is_text_dataset(x):
    """Whether `x` is a `tf.data.Dataset` whose elements begin with strings, or with a dict of columns among them."""
    spec = getattr(x, "element_spec", None)
    while isinstance(spec, tuple) and spec:
        spec = spec[0]
    columns = spec.values() if isinstance(spec, dict) else [spec]
    return any(getattr(getattr(column, "dtype", None), "name", None) == "string" for column in columns)


def has_columns(x):
    """Whether `x` is a tuple of two or more columns of texts, or a table of texts."""
    if getattr(x, "ndim", None) == 2:
        return is_texts(np.asarray(x, dtype=object)[:, 0]) if len(x) else False
    return isinstance(x, tuple) and len(x) > 1 and all(is_texts(column) for column in x)


def columns_of(x):
    """The columns of rows of texts, each a list of str; None if `x` is single texts.

    Raises: ValueError naming the row that is no tuple: two lists of strings may be two columns, two rows, or two texts
        that are split into words.
    """
    if has_columns(x):
        columns = list(np.asarray(x, dtype=object).T) if hasattr(x, "ndim") else x
    elif isinstance(x, list) and any(map(is_texts, x)):
        for index, row in enumerate(x):
            if not isinstance(row, tuple):
                raise ValueError(
                    f"row {index} is {repr(row)[:60]}, neither a string nor a tuple: give a tuple of columns, (firsts, "
                    "seconds), or a list of tuples, [(first, second), ...]."
                )
        columns = zip(*x, strict=True)
    else:
        return None
    return list(map(to_strings, columns))
