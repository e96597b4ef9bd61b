"""Batches of texts that `tf.data`, PyTorch's `DataLoader` and Keras' `PyDataset` yield, in one form."""

import collections.abc
import dataclasses
import itertools
import math
import typing

import keras
import numpy as np

from keras_bert_impl.preprocessing.labels import Positions, numbers_of_names
from keras_bert_impl.preprocessing.texts import is_text_pair, is_texts, to_strings

LABELS = ("label", "labels")


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
    return BatchSource(
        lambda: map(_without_ragged, dataset.as_numpy_iterator()), {-1: math.inf, -2: None}.get(size, size)
    )


def _without_ragged(batch):
    """A batch with lists of lists in place of ragged tensors."""
    return keras.tree.map_structure(lambda part: part.to_list() if hasattr(part, "to_list") else part, batch)


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


def arranged(batch, preprocessor, with_labels):
    """A batch of a BatchSource as texts, (texts, labels) or (texts, labels, weights).

    Two columns of strings are texts and the names of their classes in `fit` and `evaluate`, for a model that has
    classes; otherwise they are pairs of texts.

    Args:
        batch: an element of the source.
        preprocessor: of the model, which has `class_names`, None for a model without classes, and names of columns.
        with_labels: whether the caller needs labels.

    Raises: ValueError if the names of classes stand where `predict` expects texts, or if the columns of a dict have
        neither the preprocessor's names nor "text", "text_pair" and "label".
    """
    class_names = preprocessor.class_names

    def parts(columns):
        names = preprocessor.names_of_columns
        return parts_of_columns(columns, *(names if {*preprocessor.columns} <= {*columns} else ()))

    if isinstance(batch, collections.abc.Mapping):
        texts, labels = parts(batch)
        batch = (texts,) if labels is None else (texts, labels)
    elif isinstance(batch, tuple) and isinstance(batch[0], collections.abc.Mapping):
        batch = (parts(batch[0])[0], *batch[1:])
    if class_names and is_text_pair(batch):
        if with_labels:
            return batch[0], np.array(numbers_of_names(batch[1], class_names)).view(Positions)
        if set(to_strings(batch[1])) <= set(class_names):
            raise ValueError(
                "The second strings of each batch are names of classes, but predict takes texts alone: leave them out, "
                "or, if they are the second texts of pairs, let the dataset yield ((first, second),)."
            )
    return batch[0] if isinstance(batch, tuple) and len(batch) == 1 and not is_texts(batch) else batch


def parts_of_columns(columns, needed=("text",), optional="text_pair", targets=LABELS):
    """(inputs, labels or None) of a dict of columns: of each of `needed`, and of one of `targets` if it is there."""
    found = [name for name in (*needed, optional) if name in columns]
    labels = [name for name in targets if name in columns]
    if not {*needed} <= {*found} or len(found) + len(labels) < len(columns) or len(labels) > 1:
        expected = ", ".join(filter(None, (*needed, optional, *targets[:1])))
        raise ValueError(
            f"Got the columns {', '.join(columns)}, expected {expected}: let the data be (inputs, labels)."
        )
    inputs = tuple(columns[name] for name in found)
    return inputs if len(found) > 1 else inputs[0], columns[labels[0]] if labels else None
