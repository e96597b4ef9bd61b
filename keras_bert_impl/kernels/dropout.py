"""Dropout of one array: Keras' own, or with cheaper random bits on backends where that is faster."""

import functools
import math

import keras
import numpy as np
from keras import ops

CHOICES = 1 << 16  # values of a unit's sixteen random bits; the share dropped is the rate to within 1 / 131,072
ODD = np.uint32(0x9E3779B9)  # of Knuth's multiplicative hashing: 2 ** 32 divided by the golden ratio


def drop(inputs, rate, seed):
    """`inputs` with units dropped and the others divided by 1 - rate, by the current backend's kernel."""
    return KERNELS.get(keras.backend.backend(), drop_by_keras)(inputs, rate, seed)


def drop_by_keras(inputs, rate, seed):
    """The plain form. TensorFlow keeps it: with sixteen bits, XLA draws them again for each use."""
    return keras.random.dropout(inputs, rate, seed=seed)


def dropped_choices(rate):
    """How many of the CHOICES drop a unit; never all."""
    return min(round(rate * CHOICES), CHOICES - 1)


def _drop_in_jax(inputs, rate, seed):
    return _rehashing_in_jax(rate)(inputs, ops.cast(seed.next(), "uint32"))


@functools.cache
def _rehashing_in_jax(rate):
    """Dropout of (inputs, key) whose gradient computes the mask again, so that none is kept in memory."""
    import jax

    def masked(inputs, key):
        kept = random_words(key, inputs.shape) >= np.uint32(dropped_choices(rate) << 16)
        return ops.where(kept, inputs / (1 - rate), ops.zeros_like(inputs))

    def backward(key, upstream):
        # Behind the barrier XLA does not see that it has computed the mask before, and does not keep it.
        return masked(upstream, jax.lax.optimization_barrier(key)), None

    dropped = jax.custom_vjp(masked)
    dropped.defvjp(lambda inputs, key: (masked(inputs, key), key), backward)
    return dropped


def random_words(key, shape):
    """An array of uint32 of this shape on JAX, a function of the key, (2,) uint32, and of each element's number.

    It is a hash of the number, as in Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3", with a quarter
    of the operations of JAX's threefry: enough for dropout, not for cryptography. XLA computes it where it is used, and
    on a mesh each device computes its own part of it, the same for any number of devices.
    """
    import jax

    # Keras counts the second word of a key up by one a step; mixed, the keys of two steps have nothing in common.
    first = mixed(key[0] ^ mixed(key[1] + ODD))
    second = mixed(first + key[1] * ODD)
    number = np.uint32(0)
    for axis, size in enumerate(shape):
        number = number * np.uint32(size) + jax.lax.broadcasted_iota("uint32", shape, axis)
    words = mixed(number ^ first) + second
    if math.prod(shape) > 1 << 32:  # then numbers of 32 bits repeat, but not within so many rows
        rows = np.uint32((1 << 32) // math.prod(shape[1:]))
        words = words + jax.lax.broadcasted_iota("uint32", shape, 0) // rows * ODD
    return mixed(words)


def mixed(words):
    """A bijection of uint32 in which each input bit changes each output bit half of the time ("lowbias32" of Wellons
    2018, found by search)."""
    words = (words ^ (words >> 16)) * np.uint32(0x7FEB352D)
    words = (words ^ (words >> 15)) * np.uint32(0x846CA68B)
    return words ^ (words >> 16)


def _drop_in_torch(inputs, rate, seed):
    import torch

    if inputs.device.type != "cpu" or seed._initial_seed is not None or torch.compiler.is_compiling():
        # One kernel on a GPU, none of its own where compiled; the given seed's numbers otherwise.
        return keras.random.dropout(inputs, rate, seed=seed)
    count = inputs.numel()
    words = torch.randint(-(1 << 63), (1 << 63) - 1, ((count + 3) // 4,), dtype=torch.int64)  # four units a word
    bits = words.view(torch.int16)[:count].view(inputs.shape)
    kept = bits >= dropped_choices(rate) - CHOICES // 2
    return inputs * kept.to(inputs.dtype).mul_(1 / (1 - rate))


KERNELS = {"jax": _drop_in_jax, "torch": _drop_in_torch}
