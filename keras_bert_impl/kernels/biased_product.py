"""The product of a linear layer with its bias, whose gradient is a sum over all tokens of a batch; and that with the
rows of a table."""

import keras
from keras import ops


def biased_product(inputs, kernel, bias):
    """`inputs @ kernel + bias`, by the current backend's kernel: (..., rows of kernel) to (..., columns)."""
    return PRODUCTS.get(keras.backend.backend(), biased_product_by_ops)(inputs, kernel, bias)


def biased_product_by_ops(inputs, kernel, bias):
    """The plain form; XLA and TensorFlow's Grappler join the two by themselves."""
    return add_bias(ops.matmul(inputs, kernel), bias)


def product_with_rows(vectors, table):
    """The products of vectors, (n, width), with each row of a table, (rows, width), in the same type: (n, rows), by the
    current backend's kernel."""
    return ROWS.get(keras.backend.backend(), product_with_rows_by_ops)(vectors, table)


def product_with_rows_by_ops(vectors, table):
    """The plain form. By `matmul`, TensorFlow would copy the table's transpose, and that of its gradient, which takes a
    tenth of a training step of a small model."""
    return ops.einsum("nw,rw->nr", vectors, table)


def add_bias(values, bias):
    """values + bias, by the current backend's kernel.

    The gradients here are sums in float32. Those of an addition, and of `tf.nn.bias_add`, are sums in bfloat16 on
    TensorFlow and in XLA for CPUs; over 8,000 tokens a quarter to four fifths of them was wrong.

    Args:
        values: (..., *shape), float.
        bias: of this shape, in the same type.

    Returns: (..., *shape), in the same type.
    """
    if keras.backend.standardize_dtype(values.dtype) == "float32":
        return ops.add(values, bias)
    return SUMS.get(keras.backend.backend(), ops.add)(values, bias)


def _product_in_torch(inputs, kernel, bias):
    """By one operation: a sum of its own reads and writes the products again, on a CPU in bfloat16 a fifth of the time
    of the wide products of a block. Exports take the plain form, in which they look for the products of matrices.
    """
    import torch

    kernel, bias = ops.convert_to_tensor(kernel), ops.convert_to_tensor(bias)
    if torch.compiler.is_exporting() or not inputs.dtype == kernel.dtype == bias.dtype:
        return biased_product_by_ops(inputs, kernel, bias)
    return torch.nn.functional.linear(inputs, kernel.T, bias)


def _rows_in_torch(vectors, table):
    """The gradient of torch's `einsum` lies in memory in another order than the table, and is copied twice for it: with
    a vocabulary, a twentieth of a training step of a small model on a CPU."""
    import torch

    if torch.compiler.is_exporting():
        return product_with_rows_by_ops(vectors, table)
    return torch.nn.functional.linear(vectors, table)


def _sum_in_jax(values, bias):
    """The bias is there for every token before it is rounded to the type of the values; XLA makes one loop of it."""
    return values + ops.cast(ops.broadcast_to(ops.cast(bias, "float32"), ops.shape(values)), values.dtype)


def _sum_in_tensorflow(values, bias):
    """The gradient as a product, which is made in float32, and needs no second array as large as that of the values."""
    import tensorflow as tf

    @tf.custom_gradient
    def biased(values, bias):
        def gradient(upstream):
            of_tokens = tf.reshape(upstream, (-1, tf.size(bias)))
            ones = tf.ones((1, tf.shape(of_tokens)[0]), of_tokens.dtype)
            return upstream, tf.reshape(tf.matmul(ones, of_tokens), tf.shape(bias))

        return ops.add(values, bias), gradient

    return biased(values, tf.convert_to_tensor(bias))


PRODUCTS = {"torch": _product_in_torch}
ROWS = {"torch": _rows_in_torch}
SUMS = {"jax": _sum_in_jax, "tensorflow": _sum_in_tensorflow}  # torch adds up in float32 itself
