"""Picks vectors by their positions, bit for bit: by indices, or by a product with one-hot rows."""

import keras
from keras import ops


def gather(vectors, positions):
    """The vectors at these positions, by the current backend's kernel.

    Args:
        vectors: (batch, length, width), float.
        positions: (batch, count), int.

    Returns: (batch, count, width), in the type of the vectors.
    """
    return KERNELS.get(keras.backend.backend(), gather_by_indices)(vectors, positions)


def gather_by_indices(vectors, positions):
    """The plain form, over a list of all vectors: `ops.take_along_axis` would need an index for each number."""
    batch, length, width = ops.shape(vectors)
    starts = ops.arange(batch, dtype=positions.dtype) * length
    return ops.take(ops.reshape(vectors, (-1, width)), positions + ops.expand_dims(starts, -1), axis=0)


def _gather_in_jax(vectors, positions):
    # The gradient of a gather adds vectors one after the other, and on a mesh every device would need all vectors.
    one_hot = ops.expand_dims(positions, -1) == ops.arange(vectors.shape[1], dtype=positions.dtype)
    return exact_product(ops.cast(one_hot, vectors.dtype), vectors)  # (batch, count, length) x (batch, length, width)


def exact_product(one_hot, vectors):
    """The product of one-hot rows with an array, which changes no bit of it."""
    if keras.backend.backend() != "jax":
        # torch multiplies float32 exactly unless it is told otherwise. TensorFlow cannot be told for one product: on
        # GPUs it takes the first ten bits of a fraction (TF32), as in all its other products.
        return ops.matmul(one_hot, vectors)
    import jax

    # By default, TPUs multiply float32 in bfloat16 and GPUs in TF32.
    exact = jax.lax.Precision.HIGHEST if vectors.dtype == "float32" else None
    return jax.numpy.matmul(one_hot, vectors, precision=exact)


KERNELS = {"jax": _gather_in_jax}
