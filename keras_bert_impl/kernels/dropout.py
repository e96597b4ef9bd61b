"""Dropout of one array: Keras' own, or with sixteen random bits per unit on backends where that is faster."""

import keras
from keras import ops

CHOICES = 1 << 16  # values of a unit's sixteen random bits; the share dropped is the rate to within 1 / 131,072


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
    import jax

    bits = jax.random.bits(ops.cast(seed.next(), "uint32"), inputs.shape, "uint16")
    return ops.where(bits >= dropped_choices(rate), inputs / (1 - rate), ops.zeros_like(inputs))


def _drop_in_torch(inputs, rate, seed):
    import torch

    if inputs.device.type != "cpu" or seed._initial_seed is not None:
        return keras.random.dropout(inputs, rate, seed=seed)  # one kernel on a GPU; the given seed's numbers otherwise
    count = inputs.numel()
    words = torch.randint(-(1 << 63), (1 << 63) - 1, ((count + 3) // 4,), dtype=torch.int64)  # four units a word
    bits = words.view(torch.int16)[:count].view(inputs.shape)
    kept = bits >= dropped_choices(rate) - CHOICES // 2
    return inputs * kept.to(inputs.dtype).mul_(1 / (1 - rate))


KERNELS = {"jax": _drop_in_jax, "torch": _drop_in_torch}
