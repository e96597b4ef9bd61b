"""The sizes of all arrays that an encoder's step computes on torch, gradients included."""

import numpy as np


def check_step(encoder, rows, length):
    """Asserts that in a step of the sum of an encoder's outputs for rows of so many tokens no array is of length x
    length, or has as many numbers."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    shapes = []

    class Seen(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, arguments=(), options=None):
            found = function(*arguments, **(options or {}))
            tensors = found if isinstance(found, tuple | list) else [found]
            shapes.extend(tuple(tensor.shape) for tensor in tensors if isinstance(tensor, torch.Tensor))
            return found

    with Seen():
        encoder(rows, training=True)["sequence_output"].sum().backward()
    assert any(length in shape for shape in shapes)
    largest = max(shapes, key=np.prod)
    assert np.prod(largest) < length * length / 8, largest
    assert all(shape.count(length) < 2 for shape in shapes)
