"""Counter-based random numbers: a draw depends only on its own counters, never on the draws before it.

With a stateful generator an example would depend on the batch it is in, and a resumed run would have to
replay everything before step N. Here a draw is a hash of counters, (stream, seed, epoch, example index, position),
so any example of any epoch can be made alone, in any order, in any batch. `tf.random.stateless_uniform` takes one
seed per call, hence one per batch; these functions take one per row.

The hash is splitmix64 (Steele, Lea and Flood 2014, "Fast Splittable Pseudorandom Number Generators"; finalizer
constants from Vigna's reference implementation). Integer operations only: the same numbers on every machine.
"""

from keras_bert_impl.preprocessing.numpy_randomness import GOLDEN_GAMMA, Stream
from keras_bert_impl.text_graphs.quiet_tensorflow import tf

__all__ = ["Stream", "random_keys", "uniform_integers", "uniforms"]


def random_keys(stream, seed, *counters):
    """The hash of a stream, a seed and further counters: the starting states of independent sequences of draws.

    Args:
        stream: member of `Stream`.
        seed: integer scalar, of any sign.
        counters: integer scalars or tensors, for instance the epoch and then `example_index`; they broadcast.

    Returns: uint64, of the broadcast shape of the counters.
    """
    keys = _uint64(stream)
    for counter in (seed, *counters):
        # Mixing between counters makes their order matter: epoch 1 of example 2 is not epoch 2 of example 1.
        keys = _mix(tf.bitwise.bitwise_xor(keys, _uint64(counter)) + _uint64_constant(GOLDEN_GAMMA))
    return keys


def uniforms(keys, positions):
    """Uniform numbers in [0, 1).

    Args:
        keys: uint64 from `random_keys`.
        positions: integers, the index of the wanted draw in each sequence; broadcast against `keys`.

    Returns: float32 of the broadcast shape, multiples of 2**-24, the finest grid that float32 holds up to 1.
    """
    top_bits = tf.bitwise.right_shift(_hash(keys, positions), _uint64_constant(40))
    return tf.cast(top_bits, tf.float32) * 2.0**-24


def uniform_integers(keys, positions, bound):
    """Uniform integers in [0, bound).

    Args:
        keys: uint64 from `random_keys`.
        positions: integers, the index of the wanted draw in each sequence; broadcast against `keys`.
        bound: integers from 1 to 2**31, broadcast against `keys`.

    Returns: int64 of the broadcast shape. Some values are likelier than others by at most bound / 2**32.
    """
    top_bits = tf.bitwise.right_shift(_hash(keys, positions), _uint64_constant(32))
    # Multiply and shift instead of a remainder: no division, and no floating point to round up to `bound`.
    return tf.cast(tf.bitwise.right_shift(top_bits * _uint64(bound), _uint64_constant(32)), tf.int64)


def _hash(keys, positions):
    # Exactly splitmix64: the sequence of a key is the finalizer over an arithmetic progression that starts there.
    return _mix(keys + (_uint64(positions) + _uint64_constant(1)) * _uint64_constant(GOLDEN_GAMMA))


def _mix(bits):
    bits = tf.bitwise.bitwise_xor(bits, tf.bitwise.right_shift(bits, _uint64_constant(30)))
    bits *= _uint64_constant(0xBF58476D1CE4E5B9)
    bits = tf.bitwise.bitwise_xor(bits, tf.bitwise.right_shift(bits, _uint64_constant(27)))
    bits *= _uint64_constant(0x94D049BB133111EB)
    return tf.bitwise.bitwise_xor(bits, tf.bitwise.right_shift(bits, _uint64_constant(31)))


def _uint64(integers):
    # Through int64, because TensorFlow reads a Python integer as int32 unless told otherwise; negatives wrap.
    if not tf.is_tensor(integers):
        integers = tf.constant(integers, tf.int64)
    return tf.cast(integers, tf.uint64)


def _uint64_constant(value):
    return tf.constant(value, tf.uint64)
