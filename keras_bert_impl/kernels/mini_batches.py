"""A large batch in the memory of a small one: its rows are computed a few at a time, and again for their gradients.

As in Gao et al. 2021, "Scaling deep contrastive learning batch size under memory limited setup" (GradCache), whose
gradients are those of the whole batch: the loss sees all outputs, and no more than a mini-batch's activations are kept.
"""

import keras
from keras import ops


def in_mini_batches(function, rows, size):
    """What `function` gives for all rows, (rows, width), computed for `size` rows at a time.

    Args:
        function: from rows, a dict of arrays (size, ...), and the number of the mini-batch, int32, to (size, width); it
            has no state. Rows of zeros fill the last mini-batch on TensorFlow and JAX.
        rows: dict of arrays (rows, ...).
        size: rows of a mini-batch.
    """
    return KERNELS[keras.backend.backend()](function, rows, size)


def _in_torch(function, rows, size):
    import torch

    if torch.compiler.is_compiling():  # which would write out each mini-batch
        torch._dynamo.graph_break("mini-batches are computed one after the other")
    count = next(iter(rows.values())).shape[0]
    parts = [{name: array[start : start + size] for name, array in rows.items()} for start in range(0, count, size)]
    # torch restores the state of its generators for the second time.
    return ops.concatenate([keras.remat(function)(part, number) for number, part in enumerate(parts)])


def _in_jax(function, rows, size):
    import jax

    count = next(iter(rows.values())).shape[0]
    num_parts = -(-count // size)

    def divided(array):
        filled = jax.numpy.pad(array, [(0, num_parts * size - count), *[(0, 0)] * (array.ndim - 1)])
        # Each mini-batch takes rows from the whole batch, since devices share the first axis.
        return filled.reshape(size, num_parts, *array.shape[1:]).swapaxes(0, 1)

    parts = {name: divided(array) for name, array in rows.items()}
    numbers = jax.numpy.arange(num_parts, dtype="int32")
    outputs = jax.lax.map(lambda part: jax.checkpoint(function)(*part), (parts, numbers))
    return outputs.swapaxes(0, 1).reshape(-1, outputs.shape[-1])[:count]


def _in_tensorflow(function, rows, size):
    import tensorflow as tf

    count = tf.shape(next(iter(rows.values())))[0]
    num_parts = -(-count // size)

    def divided(array):
        filled = tf.pad(array, [(0, num_parts * size - count), *[(0, 0)] * (len(array.shape) - 1)])
        return tf.reshape(filled, (num_parts, size, *tf.unstack(tf.shape(array))[1:]))

    parts = {name: divided(array) for name, array in rows.items()}

    def outputs_of(number):
        return function({name: array[number] for name, array in parts.items()}, number)

    # A loop that TensorFlow differentiated itself would keep the activations of all its turns.
    @tf.custom_gradient
    def computed(numbers):
        outputs = tf.map_fn(outputs_of, numbers, fn_output_signature="float32", parallel_iterations=1)

        def gradients(upstream, variables=()):
            def add(number, sums):
                with tf.GradientTape() as tape:
                    found = outputs_of(number)
                of_part = tape.gradient(found, variables, upstream[number], unconnected_gradients="zero")
                return number + 1, [total + tf.convert_to_tensor(one) for total, one in zip(sums, of_part, strict=True)]

            zeros = [tf.zeros(variable.shape, variable.dtype) for variable in variables]
            sums = tf.while_loop(lambda number, _: number < num_parts, add, (0, zeros), parallel_iterations=1)[1]
            return None, sums

        return outputs, gradients

    outputs = computed(tf.range(num_parts))
    return tf.reshape(outputs, (num_parts * size, outputs.shape[-1]))[:count]


KERNELS = {"torch": _in_torch, "jax": _in_jax, "tensorflow": _in_tensorflow}
