"""Data of other libraries, as `fit`, `evaluate` and `predict` take them, converted to lists, arrays and batches."""

import collections.abc

import keras
import numpy as np

from keras_bert_impl.preprocessing.batch_sources import (
    is_text_batch,
    is_text_loader,
    source_of_dataset,
    source_of_loader,
    source_of_py_dataset,
)
from keras_bert_impl.preprocessing.texts import is_text_dataset, is_texts


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
    """
    x = in_memory(_columns_of_pair(x) if is_pair else x)
    if is_text_dataset(x):
        return source_of_dataset(x)
    if is_text_loader(x):
        return source_of_loader(x)
    if isinstance(x, keras.utils.PyDataset) and not hasattr(x, "start_epoch") and is_text_batch(x[0]):  # not ours
        return source_of_py_dataset(x)
    return x


def _columns_of_pair(x):
    """A table of two columns of texts as a tuple of these; anything else as it is."""
    names = getattr(x, "column_names", getattr(x, "columns", ()))
    if isinstance(x, dict) or len(names) != 2:
        return x
    columns = tuple(in_memory(x[name]) for name in names)
    return columns if all(map(is_texts, columns)) else x
