"""Zeros beside an array. `keras.ops.pad` makes an object at each call, which torch's compiler cannot follow."""

import keras
from keras import ops


def padded(array, before, after, axis=1):
    """The array with so many zeros before and after it along an axis."""
    if keras.backend.backend() == "torch":
        import torch

        return torch.nn.functional.pad(array, [0, 0] * (array.ndim - 1 - axis % array.ndim) + [before, after])
    widths = [(0, 0)] * len(array.shape)
    widths[axis] = (before, after)
    return ops.pad(array, widths)
