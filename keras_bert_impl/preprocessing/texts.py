"""Texts as `fit`, `evaluate` and `predict` take them: recognised, read, and converted from other libraries' forms.

Columns and arrays become lists and arrays; what yields batches (`tf.data`, PyTorch's `DataLoader`, Keras' `PyDataset`)
becomes a BatchSource.
"""

import collections.abc
import dataclasses
import itertools
import math
import typing

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
            raise ValueError(f"text {index} is {repr(words)[:60]}, but other texts are lists of words.")
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
                    f"element {index} is {repr(row)[:60]}, expected a string or a tuple. Pairs of texts are a tuple of "
                    "columns, (firsts, seconds), or a list of tuples, [(first, second), ...]."
                )
        columns = zip(*x, strict=True)
    else:
        return None
    return list(map(to_strings, columns))


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


def is_empty(x):
    """Whether there are no texts: a column without values, or several of them. Reads no values."""
    columns = x if isinstance(x, tuple) else (x,)
    return all(_is_column(column) and len(column) == 0 for column in columns)


def _is_column(values):
    if isinstance(values, str | bytes):
        return False
    kinds = collections.abc.Sequence, np.ndarray
    return isinstance(values, kinds) or hasattr(values, "to_list") or hasattr(values, "to_pylist")


def in_order_of_classes(labels, names):
    """Labels; of a table with a column for each class, the columns in the order of the model's classes."""
    columns = getattr(labels, "columns", None)
    if columns is None or not names:
        return labels
    found = [str(column) for column in columns]
    if len(found) > 1 and sorted(found) != sorted(names):
        raise ValueError(f"The columns of the labels are {found}, but the classes are {list(names)}.")
    return np.asarray(labels if len(found) < 2 else labels[[columns[found.index(name)] for name in names]])


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


@dataclasses.dataclass(frozen=True)
class BatchSource:
    """Batches of texts that can be read again from the start.

    Args:
        open: function that returns an iterator over the batches, as NumPy arrays, lists and tuples.
        num_batches: their number; math.inf if endless, None if it is unknown until they are read.
    """

    open: typing.Callable
    num_batches: float | None


def source_of_dataset(dataset):
    """The BatchSource of a `tf.data.Dataset`."""
    size = int(dataset.cardinality())
    return BatchSource(lambda: map(_as_arrays, dataset), {-1: math.inf, -2: None}.get(size, size))


def _as_arrays(batch):
    """A batch as arrays, and ragged tensors as lists of lists: in an array, class numbers of texts that happen to have
    equally many would look like columns of 0 and 1."""
    return keras.tree.map_structure(lambda part: part.to_list() if hasattr(part, "to_list") else part.numpy(), batch)


def is_text_loader(x):
    """Whether `x` is a torch DataLoader whose first batch holds texts."""
    names = [f"{kind.__module__}.{kind.__name__}" for kind in type(x).__mro__]
    return "torch.utils.data.dataloader.DataLoader" in names and is_text_batch(next(iter(x), None))


def source_of_loader(loader):
    """The BatchSource of a `torch.utils.data.DataLoader`."""
    is_default = getattr(loader.collate_fn, "__name__", "") == "default_collate"

    def batches():
        return map(_collated if is_default else _tuple_of, iter(loader))

    try:
        return BatchSource(batches, len(loader))
    except TypeError:  # over an IterableDataset
        return BatchSource(batches, None)


def source_of_py_dataset(dataset):
    """The BatchSource of a `keras.utils.PyDataset` of texts, whose `on_epoch_end` is called before it is read again."""
    reads = itertools.count()
    size = dataset.num_batches

    def batches():
        if next(reads):
            dataset.on_epoch_end()
        return (_tuple_of(dataset[index]) for index in (itertools.count() if size is None else range(size)))

    return BatchSource(batches, math.inf if size is None else size)


def is_text_batch(batch):
    """Whether a batch holds texts: alone, before labels, or in the columns of a dict."""
    if isinstance(batch, collections.abc.Mapping):
        return "token_ids" not in batch and any(map(is_texts, batch.values()))
    if is_texts(batch):
        return True
    return isinstance(batch, (list, tuple)) and bool(len(batch)) and is_text_batch(batch[0])


def _tuple_of(batch):
    """Converts a list of parts, such as [texts, labels], to a tuple; a list of texts, or of pairs of texts as tuples,
    stays as it is."""
    if not isinstance(batch, list) or is_texts(batch):
        return batch
    is_pairs = all(isinstance(part, tuple) and is_texts(part) for part in batch)
    return batch if is_pairs else tuple(batch)


def _collated(batch):
    """What torch's default_collate makes of examples, with the parts of an example in a tuple.

    default_collate returns a list where examples are tuples or lists. Such a list in the first place is a pair of
    columns of texts; in another place it was a list in each example, such as several labels, and becomes a list for
    each row again.
    """
    if not isinstance(batch, list) or is_texts(batch) or not batch:
        return batch
    first, *others = batch
    return (_collated(first), *(_rows_of(part) if isinstance(part, list) else part for part in others))


def _rows_of(columns):
    columns = [column if is_texts(column) else np.asarray(column).tolist() for column in columns]
    return [list(row) for row in zip(*columns, strict=True)]
