"""Counter-based random numbers: a draw depends only on its own counters, never on the draws before it.

With a stateful generator an example would depend on the batch it is in, and a resumed run would have to
replay everything before step N. Here a draw is a hash of counters, (stream, seed, epoch, example index, position),
so any example of any epoch can be made alone, in any order, in any batch. `tf.random.stateless_uniform` takes one
seed per call, hence one per batch; these functions take one per row.

The hash is splitmix64 (Steele, Lea and Flood 2014, "Fast Splittable Pseudorandom Number Generators"; finalizer
constants from Vigna's reference implementation). Integer operations only: the same numbers on every machine, in NumPy
and, with the arrays of `tensorflow_arrays`, in a tf.data graph.
"""

import enum

from keras_bert_impl.text.rows import numpy_arrays

GOLDEN_GAMMA = 0x9E3779B97F4A7C15


@enum.unique
class Stream(enum.IntEnum):
    """Every use of random draws in the library. Two uses must not share a number, or their draws would be equal."""

    MASK_POSITION = 1
    MASK_TREATMENT = 2
    MASK_REPLACEMENT = 3
    TRUNCATE_FIRST = 4
    TRUNCATE_SECOND = 5
    SHORT_DOCUMENT = 6
    SHORT_LENGTH = 7
    SEGMENT_SPLIT = 8
    NEXT_SENTENCE = 9
    OTHER_DOCUMENT = 10
    OTHER_SENTENCE = 11
    SENTENCE_ORDER = 12
    SPAN_LENGTH = 13
    FILE_ORDER = 14
    ROW_ORDER = 15
    ORDER_IN_FILE = 16
    SPAN_PLACE = 17


def random_keys(stream, seed, *counters, arrays=numpy_arrays):
    """The hash of a stream, a seed and further counters: the starting states of independent sequences of draws.

    Args:
        stream: member of `Stream`.
        seed: integer scalar, of any sign.
        counters: integers or arrays of integers, for instance the epoch and then `example_index`; they broadcast.
        arrays: the module of the array operations.

    Returns: uint64, of the broadcast shape of the counters.
    """
    keys = _uint64(stream, arrays)
    with arrays.wrapping():  # wrapping around is part of the hash
        for counter in (seed, *counters):
            # Mixing between counters makes their order matter: epoch 1 of example 2 is not epoch 2 of example 1.
            keys = _mix((keys ^ _uint64(counter, arrays)) + arrays.constant(GOLDEN_GAMMA, arrays.uint64), arrays)
    return keys


def uniforms(keys, positions, arrays=numpy_arrays):
    """Uniform numbers in [0, 1).

    Args:
        keys: uint64 from `random_keys`.
        positions: integers, the index of the wanted draw in each sequence; broadcast against `keys`.
        arrays: the module of the array operations.

    Returns: float32 of the broadcast shape, multiples of 2**-24, the finest grid that float32 holds up to 1.
    """
    bits = arrays.shift_right(random_bits(keys, positions, arrays), 40)
    return arrays.cast(bits, arrays.float32) * arrays.constant(2.0**-24, arrays.float32)


def uniform_integers(keys, positions, bound, arrays=numpy_arrays):
    """Uniform integers in [0, bound).

    Args:
        keys: uint64 from `random_keys`.
        positions: integers, the index of the wanted draw in each sequence; broadcast against `keys`.
        bound: integers from 1 to 2**31, broadcast against `keys`.
        arrays: the module of the array operations.

    Returns: int64 of the broadcast shape. Some values are likelier than others by at most bound / 2**32.
    """
    top_bits = arrays.shift_right(random_bits(keys, positions, arrays), 32)
    # Multiply and shift instead of a remainder: no division, and no floating point to round up to `bound`.
    return arrays.cast(arrays.shift_right(top_bits * _uint64(bound, arrays), 32), arrays.int64)


def random_bits(keys, positions, arrays=numpy_arrays):
    """64 random bits each: uint64 of the broadcast shape of `keys`, from `random_keys`, and `positions`."""
    one, gamma = arrays.constant(1, arrays.uint64), arrays.constant(GOLDEN_GAMMA, arrays.uint64)
    with arrays.wrapping():
        # Exactly splitmix64: the sequence of a key is the finalizer over an arithmetic progression that starts there.
        return _mix(keys + (_uint64(positions, arrays) + one) * gamma, arrays)


def _mix(bits, arrays):
    bits = bits ^ arrays.shift_right(bits, 30)
    bits = bits * arrays.constant(0xBF58476D1CE4E5B9, arrays.uint64)
    bits = bits ^ arrays.shift_right(bits, 27)
    bits = bits * arrays.constant(0x94D049BB133111EB, arrays.uint64)
    return bits ^ arrays.shift_right(bits, 31)


def _uint64(integers, arrays):
    return arrays.cast(arrays.constant(integers, arrays.int64), arrays.uint64)  # negatives wrap
