"""Rows of different lengths in NumPy, as `tf.RaggedTensor` has them: all values in one array, and the lengths."""

import itertools
from typing import NamedTuple

import numpy as np


class Ragged(NamedTuple):
    """Rows of different lengths, one after the other.

    `values`: (values of all rows,), or again a `Ragged`: of sentences, for instance, if the rows are documents.
    `lengths`: integers (rows,).
    """

    values: "np.ndarray | Ragged"
    lengths: np.ndarray

    @property
    def flat_values(self):
        """The innermost values."""
        return self.values.flat_values if isinstance(self.values, Ragged) else self.values

    @property
    def offsets(self):
        """Where each row begins in `values`, and the end of the last one: int64 (rows + 1,)."""
        return np.concatenate([[0], np.cumsum(self.lengths, dtype=np.int64)])


def of_lists(rows):
    """Lists of numbers as a `Ragged` of int32."""
    lengths = np.array([len(row) for row in rows], np.int64)
    return Ragged(np.fromiter(itertools.chain.from_iterable(rows), np.int32, lengths.sum()), lengths)


def places(starts, lengths):
    """The integers of all ranges, one after the other: (sum of the lengths,)."""
    starts, lengths = np.ravel(starts), np.ravel(lengths)
    ends = np.cumsum(lengths)
    return np.repeat(starts - ends + lengths, lengths) + np.arange(ends[-1] if len(ends) else 0)


def take(rows, index):
    """The rows with these numbers, (index,), of an array or a `Ragged` of arrays."""
    if not isinstance(rows, Ragged):
        return rows[index]
    lengths = rows.lengths[index]
    return Ragged(rows.values[places(rows.offsets[:-1][index], lengths)], lengths)


def concatenated(parts):
    """The rows of several arrays, or of several `Ragged` of arrays, one after the other."""
    if not isinstance(parts[0], Ragged):
        return np.concatenate(parts)
    return Ragged(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
