"""Serializes rows as `tf.train.Example` messages, by https://protobuf.dev/programming-guides/encoding.

A feature's values are encoded for all rows at once; the bytes before them in a row depend only on their size.
"""

import functools
import itertools

import numpy as np
import tensorflow as tf

# The fields of tensorflow.Feature.
FLOAT_LIST, INT64_LIST = 2, 3


def serialize_rows(columns):
    """Rows as serialized `tf.train.Example`, a list of bytes; four times as fast as building each message.

    Args:
        columns: dict of feature name to integers or floats, (rows,), (rows, values) or RaggedTensor (rows, values).
    """
    # Sorted: a map has no order of its own, and the same row must give the same bytes.
    entries = [_map_entries(name, columns[name]) for name in sorted(columns)]
    return [_field(1, b"".join(row)) for row in zip(*entries, strict=True)]  # Example.features


def _map_entries(name, values):
    """The entry of one feature in the map of each row, serialized: a list of bytes."""
    if isinstance(values, tf.RaggedTensor):
        lengths, values = values.row_lengths().numpy(), values.flat_values.numpy()
    else:
        values = np.asarray(values)
        lengths, values = np.full(len(values), values[:1].size), values.reshape(-1)
    if values.dtype.kind == "f":
        kind, data, sizes = FLOAT_LIST, values.astype("<f4").tobytes(), 4
    else:
        kind, (data, sizes) = INT64_LIST, _varints(values)
    ends = np.cumsum(np.broadcast_to(sizes, len(values)), dtype=np.int64)
    ends = np.concatenate([[0], ends])[np.concatenate([[0], np.cumsum(lengths)])].tolist()  # of the rows, in bytes
    return [_entry_head(name, kind, end - start) + data[start:end] for start, end in itertools.pairwise(ends)]


@functools.lru_cache(maxsize=100_000)
def _entry_head(name, kind, size):
    """The bytes before the packed values, themselves `size` bytes, in an entry of the map in tensorflow.Features."""
    head = b""
    for number in (1, kind, 2):  # FloatList or Int64List.value, Feature.kind, the entry's value
        head = _field_head(number, len(head) + size) + head
    key = _field(1, name.encode())
    return _field_head(1, len(key) + len(head) + size) + key + head  # Features.feature


def _field(number, content):
    return _field_head(number, len(content)) + content


@functools.lru_cache(maxsize=100_000)
def _field_head(number, size):
    """Tag and length of a field of bytes."""
    return bytes([number << 3 | 2]) + _varints(np.array([size]))[0]


def _varints(values):
    """Integers in groups of seven bits, lowest first: the bytes of all, and the number of bytes of each, (values,)."""
    rest = values.astype(np.uint64)  # a negative one has ten bytes
    rest = rest.astype(np.uint32) if rest.max(initial=0) < 2**32 else rest
    groups, is_used = [], [np.ones(len(values), bool)]
    while is_used[-1].any():
        groups.append((rest & 127).astype(np.uint8))
        rest = rest >> 7
        is_used.append(rest != 0)
        groups[-1] |= is_used[-1].astype(np.uint8) << 7
    is_used.pop()
    sizes = sum(used.astype(np.uint8) for used in is_used)
    return np.stack(groups, axis=1)[np.stack(is_used, axis=1)].tobytes(), sizes
