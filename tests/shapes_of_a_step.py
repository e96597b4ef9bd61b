"""The sizes of all arrays that an encoder's step computes, gradients included."""

import keras
import numpy as np


def check_step(encoder, rows, length):
    """Asserts that in a step of the sum of an encoder's outputs for rows of so many tokens, on the backend in use, no
    array is of length x length, or has as many numbers."""
    shapes = [tuple(shape) for shape in STEPS[keras.backend.backend()](encoder, rows)]
    assert any(length in shape for shape in shapes)
    largest = max(shapes, key=np.prod)
    assert np.prod(largest) < length * length / 8, largest
    assert all(shape.count(length) < 2 for shape in shapes)


def _in_jax(encoder, rows):
    import jax.extend

    weights = [
        [weight.value for weight in group] for group in (encoder.trainable_variables, encoder.non_trainable_variables)
    ]

    def loss(trainable, others, rows):
        outputs, _ = encoder.stateless_call(trainable, others, rows, training=True)
        return outputs["sequence_output"].sum()

    def shapes(jaxpr):
        for equation in jaxpr.eqns:
            yield from (variable.aval.shape for variable in equation.outvars)
            for inner in jax.extend.core.jaxprs_in_params(equation.params):
                yield from shapes(inner)

    return shapes(jax.make_jaxpr(jax.grad(loss))(*weights, rows).jaxpr)


def _in_tensorflow(encoder, rows):
    import tensorflow as tf

    @tf.function
    def gradients(rows):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(encoder(rows, training=True)["sequence_output"])
        return tape.gradient(loss, [weight.value for weight in encoder.trainable_variables])

    rows = {name: tf.constant(array) for name, array in rows.items()}
    graph = gradients.get_concrete_function(rows).graph
    outputs = [output for operation in graph.get_operations() for output in operation.outputs]
    assert not [output for output in outputs if output.shape.rank is None and output.dtype.is_floating]
    return ([axis or 1 for axis in output.shape] for output in outputs if output.shape.rank is not None)


def _in_torch(encoder, rows):
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    shapes = []

    class Seen(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, arguments=(), options=None):
            found = function(*arguments, **(options or {}))
            tensors = found if isinstance(found, tuple | list) else [found]
            shapes.extend(tensor.shape for tensor in tensors if isinstance(tensor, torch.Tensor))
            return found

    with Seen():
        encoder(rows, training=True)["sequence_output"].sum().backward()
    return shapes


STEPS = {"tensorflow": _in_tensorflow, "jax": _in_jax, "torch": _in_torch}
