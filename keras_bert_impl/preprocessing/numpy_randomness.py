"""The draws of `randomness`, bit for bit, in NumPy: for writing rows, and for reading them without TensorFlow."""

import enum

import numpy as np

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


def random_keys(stream, seed, *counters):
    """The hash of a stream, a seed and further counters: the starting states of independent sequences of draws.

    Args:
        stream: member of `Stream`.
        seed: integer scalar, of any sign.
        counters: integers or arrays of integers, for instance the epoch and then `example_index`; they broadcast.

    Returns: uint64, of the broadcast shape of the counters.
    """
    keys = _uint64(stream)
    with np.errstate(over="ignore"):  # wrapping around is part of the hash
        for counter in (seed, *counters):
            # Mixing between counters makes their order matter: epoch 1 of example 2 is not epoch 2 of example 1.
            keys = _mix((keys ^ _uint64(counter)) + np.uint64(GOLDEN_GAMMA))
    return keys


def uniforms(keys, positions):
    """Uniform numbers in [0, 1).

    Args:
        keys: uint64 from `random_keys`.
        positions: integers, the index of the wanted draw in each sequence; broadcast against `keys`.

    Returns: float32 of the broadcast shape, multiples of 2**-24, the finest grid that float32 holds up to 1.
    """
    return (random_bits(keys, positions) >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-24)


def uniform_integers(keys, positions, bound):
    """Uniform integers in [0, bound).

    Args:
        keys: uint64 from `random_keys`.
        positions: integers, the index of the wanted draw in each sequence; broadcast against `keys`.
        bound: integers from 1 to 2**31, broadcast against `keys`.

    Returns: int64 of the broadcast shape. Some values are likelier than others by at most bound / 2**32.
    """
    top_bits = random_bits(keys, positions) >> np.uint64(32)
    # Multiply and shift instead of a remainder: no division, and no floating point to round up to `bound`.
    return (top_bits * _uint64(bound) >> np.uint64(32)).astype(np.int64)


def random_bits(keys, positions):
    """64 random bits each: uint64 of the broadcast shape of `keys`, from `random_keys`, and `positions`."""
    with np.errstate(over="ignore"):
        # Exactly splitmix64: the sequence of a key is the finalizer over an arithmetic progression that starts there.
        return _mix(keys + (_uint64(positions) + np.uint64(1)) * np.uint64(GOLDEN_GAMMA))


def _mix(bits):
    bits = bits ^ (bits >> np.uint64(30))
    bits *= np.uint64(0xBF58476D1CE4E5B9)
    bits ^= bits >> np.uint64(27)
    bits *= np.uint64(0x94D049BB133111EB)
    bits ^= bits >> np.uint64(31)
    return bits


def _uint64(integers):
    return np.asarray(integers, np.int64).astype(np.uint64)  # negatives wrap
