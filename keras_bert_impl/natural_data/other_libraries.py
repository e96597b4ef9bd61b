"""Data of other libraries, as `fit`, `evaluate` and `predict` take them, converted to lists, arrays and batches."""

import collections.abc
import itertools
import types

import keras
import numpy as np

from keras_bert_impl.natural_data.batch_sources import (
    is_text_batch,
    is_text_loader,
    source_of_dataset,
    source_of_loader,
    source_of_py_dataset,
)
from keras_bert_impl.natural_data.texts import is_text_dataset, is_texts, refuse_bytes


def in_memory(values):
    """A column of pandas, polars, PyArrow or Hugging Face `datasets`, or an array of objects, as a list or array of
    numbers; the parts of a tuple likewise. Anything else is returned as it is."""
    if isinstance(values, tuple):
        return values if is_texts(values) else tuple(map(in_memory, values))
    if isinstance(values, np.ndarray) and values.dtype == object and values.ndim == 1:
        return values.tolist()  # such as lists of different lengths
    if isinstance(values, collections.abc.Sequence) and not isinstance(values, (str, bytes, list, range)):
        # A Column of `datasets`: reading it at once is hundreds of times as fast as value by value.
        part = values[:]
        return list(values) if isinstance(part, type(values)) else in_memory(part)
    if hasattr(values, "to_pylist"):  # PyArrow
        return values.to_pylist()
    if not hasattr(values, "to_list"):
        return values
    dtype = getattr(values, "dtype", None)
    is_numeric = isinstance(dtype, np.dtype) and dtype.kind in "biuf" and hasattr(values, "to_numpy")
    return values.to_numpy() if is_numeric else values.to_list()


def received(x, is_pair=False):
    """Converts the inputs given to a model to a form that it knows: lists and arrays of texts, a BatchSource of texts,
    or what Keras takes.

    Args:
        x: the inputs.
        is_pair: whether a table of two columns of texts can only be a pair of texts, such as beside labels.

    Raises: ValueError for what holds no text and no array, for one text in bytes, for a whole table, for which a column
        must be chosen, and for a generator of texts.
    """
    x = _columns_of_pair(x) if is_pair else x
    _refuse_table(x)
    refuse_bytes(x)
    x = in_memory(x)
    if _is_nothing(x) or (isinstance(x, (list, tuple)) and x and all(map(_is_nothing, x))):
        raise ValueError(
            f"Got {repr(x)[:60]} where texts were expected: pass a list of texts, or a dict of arrays with token_ids, "
            "segment_ids and padding_mask."
        )
    if is_text_dataset(x):
        return source_of_dataset(x)
    if is_text_loader(x):
        return source_of_loader(x)
    if isinstance(x, keras.utils.PyDataset) and not hasattr(x, "start_epoch") and is_text_batch(x[0]):  # not ours
        return source_of_py_dataset(x)
    return _without_texts(x) if isinstance(x, types.GeneratorType) else x


def _columns_of_pair(x):
    """A table of two columns of texts as a tuple of these; anything else as it is."""
    names = getattr(x, "column_names", getattr(x, "columns", ()))
    if isinstance(x, dict) or len(names) != 2:
        return x
    columns = tuple(in_memory(x[name]) for name in names)
    return columns if all(map(is_texts, columns)) else x


def _is_nothing(x):
    return x is None or isinstance(x, (int, float, np.number))


def without_columns(x):
    """`x`, which Keras takes. Raises ValueError for an array of strings of more than one dimension."""
    if isinstance(x, np.ndarray) and x.ndim > 1 and x.dtype.kind in "OSUT":
        raise ValueError(
            f"The texts have shape {x.shape}: pass one column, x[:, 0], or pairs as a tuple of two, (x[:, 0], x[:, 1])."
        )
    return x


def _refuse_table(x):
    """Raises ValueError for several columns where one is wanted."""
    if isinstance(x, dict):
        if any(hasattr(value, "column_names") for value in x.values()):
            raise ValueError(f"Got the splits {', '.join(x)}: choose one and its columns, as in data['train']['text'].")
        columns = x if any(is_texts(in_memory(value)) for value in x.values()) else None
    else:
        columns = getattr(x, "column_names", getattr(x, "columns", None))
    if columns is not None:
        raise ValueError(
            f"Got a {type(x).__name__} with the columns {', '.join(map(str, columns))}: pass the column of the texts "
            "and that of the labels, as in fit(data['text'], data['label']); a pair of texts is a tuple of two columns."
        )


def _without_texts(generator):
    """The generator of ids, from its beginning. Raises ValueError if it yields texts."""
    first = next(generator, None)
    if is_text_batch(first):
        raise ValueError(
            "A generator of texts can be read only once, but Keras looks at the first batches before it trains: pass "
            "lists, a keras.utils.PyDataset, a torch DataLoader, or tf.data.Dataset.from_generator(...)."
        )
    begin = () if first is None else (first,)
    return (batch for batch in itertools.chain(begin, generator))
