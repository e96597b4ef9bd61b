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
    if is_text_pair(x):
        first, second = x
    elif isinstance(x, list) and any(map(is_texts, x)):
        first, second = _columns_of(x)
    else:
        first, second = x, None
    return to_strings(first), None if second is None else to_strings(second)


def _columns_of(pairs):
    """The two columns of a list of pairs."""
    for index, pair in enumerate(pairs):
        # Two lists of strings may be two columns, two pairs or two texts split into words: it is not clear which.
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise ValueError(
                f"text {index} is {repr(pair)[:60]}, neither a string nor a pair. Pairs are a tuple of two columns, "
                "(first_texts, second_texts), or a list of tuples, [(first, second), ...]; join a text that is split "
                "into words with ' '.join(words)."
            )
    return zip(*pairs, strict=True)


def is_word_lists(x):
    """Whether `x` is texts that are split into words: a list or column of lists of strings, of which some may be
    empty. Tuples are pairs of texts."""
    if isinstance(x, tuple | str) or keras.ops.is_tensor(x) or not hasattr(x, "__len__"):
        return False
    rows = [row for row in x if isinstance(row, list | np.ndarray)]
    return bool(rows) and any(map(is_texts, rows))


def to_word_lists(x):
    """A list of lists of str.

    Raises: ValueError naming the text that is not a list of words, or the word that is not a string.
    """
    rows = []
    for index, words in enumerate(x):
        if not isinstance(words, list | np.ndarray):
            raise ValueError(
                f"text {index} is {repr(words)[:60]}, but others are lists of words: pass one or the other."
            )
        try:
            rows.append(to_strings(words))
        except ValueError as error:
            raise ValueError(f"In the words of text {index}, {str(error).replace('text', 'word', 1)}") from None
    return rows


def to_strings(texts):
    """A list of str; bytes are decoded as UTF-8, leaving out undecodable ones, as in Google's tokenizer.

    Raises: ValueError naming the first element that is neither str nor bytes, or holds half of a surrogate pair.
    """
    refuse_bytes(texts)
    texts = list(texts) if isinstance(texts, collections.abc.Sequence) else np.asarray(texts, dtype=object).tolist()
    for index, text in enumerate(texts):
        if not isinstance(text, (str, bytes)):
            raise ValueError(f"text {index} is {repr(text)[:60]}, not a string: leave it out, or write '' for it.")
    decoded = [text.decode("utf-8", errors="ignore") if isinstance(text, bytes) else text for text in texts]
    for index, text in enumerate(decoded):
        if not text.isascii():
            _refuse_surrogates(text, index)
    return decoded


def refuse_bytes(x):
    """Raises ValueError for one text in bytes, which would be read as a list of numbers."""
    if isinstance(x, bytes):
        raise ValueError(f"Got {repr(x)[:60]}, which is bytes: one text is a string, text.decode('utf-8').")


def _refuse_surrogates(text, index):
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"text {index} has the lone surrogate {text[error.start]!a} at character {error.start}, which is no "
            "character: text.encode('utf-8', 'replace').decode() replaces it."
        ) from None


def is_text_dataset(x):
    """Whether `x` is a `tf.data.Dataset` whose inputs are strings."""
    return hasattr(x, "element_spec") and getattr(getattr(first_spec(x), "dtype", None), "name", None) == "string"


def first_spec(dataset):
    """The `tf.TensorSpec` of the first part of a dataset's elements: of the texts, or of the first of a pair; if the
    elements are dicts of columns, of the first column of strings, or None."""
    spec = dataset.element_spec
    while isinstance(spec, tuple):
        spec = spec[0]
    if isinstance(spec, dict):
        return next((column for column in spec.values() if column.dtype.name == "string"), None)
    return spec


def has_columns(x):
    """Whether `x` is a tuple of two or more columns of texts, or a table of texts."""
    if getattr(x, "ndim", None) == 2:
        return is_texts(np.asarray(x, dtype=object)[:, 0]) if len(x) else False
    return isinstance(x, tuple) and len(x) > 1 and all(is_texts(column) for column in x)


def columns_of(x):
    """The columns of rows of texts, each a list of str; None if `x` is single texts.

    Raises: ValueError naming the row that has no text or another number of texts.
    """
    if has_columns(x):
        columns = list(np.asarray(x, dtype=object).T) if hasattr(x, "ndim") else x
    elif isinstance(x, list) and any(map(is_texts, x)):
        for index, row in enumerate(x):
            # Two lists of strings may be two columns or two rows: it is not clear which.
            if not isinstance(row, tuple) or len(row) != len(x[0]):
                raise ValueError(
                    f"row {index} is {repr(row)[:60]}, but row 0 is {repr(x[0])[:60]}: give a tuple of columns, "
                    "(anchors, positives), or a list of tuples, [(anchor, positive), ...], all of the same length."
                )
        columns = zip(*x, strict=True)
    else:
        return None
    return checked_columns(columns)


def checked_columns(columns):
    """Columns of texts as lists of str. Raises ValueError naming the column and the row that is wrong."""
    found = []
    for number, column in enumerate(columns):
        try:
            found.append(to_strings(column))
        except ValueError as error:
            raise ValueError(f"Column {number}: {error}") from None
    for number, column in enumerate(found):
        if len(column) != len(found[0]):
            raise ValueError(
                f"Column {number} has {len(column):,} texts, but column 0 has {len(found[0]):,}: each row needs a text "
                "in every column."
            )
    return found
