"""Cross-entropy of many classes, with as few passes over the logits as a backend allows."""

import functools

import keras
from keras import ops


def cross_entropy_of_rows(labels, logits):
    """-log softmax(logits)[label], float32, by the current backend's kernel.

    Args:
        labels: (rows,), int; the loss of one that is not a class is not defined.
        logits: (rows, classes), float.
    """
    return KERNELS.get(keras.backend.backend(), cross_entropy_by_keras)(labels, logits)


def cross_entropy_by_keras(labels, logits):
    """The plain form."""
    return keras.losses.sparse_categorical_crossentropy(labels, ops.cast(logits, "float32"), from_logits=True)


def as_kept(logits, dtype):
    """The logits in the type in which the backend keeps them for the gradient: the compute dtype of the model on JAX,
    where the rounding is a part of the product that makes them. Elsewhere it would be one pass more, and they stay.
    """
    return ops.cast(logits, dtype) if keras.backend.backend() == "jax" else logits


def _cross_entropy_in_jax(labels, logits):
    import jax

    labels = labels.astype("int32")

    # Left to JAX, float32 logits, their exponentials and the one-hot labels are kept for the gradient. Here it is the
    # logits in their own type, and a number for each row.
    @jax.custom_vjp
    def losses(logits):
        return forward(logits)[0]

    def forward(logits):
        wide = logits.astype("float32")
        top = wide.max(axis=-1, keepdims=True)
        total = top[:, 0] + jax.numpy.log(jax.numpy.exp(wide - top).sum(axis=-1))  # log of the sum of exponentials
        return total - jax.numpy.where(is_label(logits), wide, 0).sum(axis=-1), (logits, total)

    def backward(kept, upstream):
        logits, total = kept
        probabilities = jax.numpy.exp(logits.astype("float32") - total[:, None])
        gradient = upstream[:, None] * (probabilities - is_label(logits))
        return (gradient.astype(logits.dtype),)

    def is_label(logits):
        # Not a gather: on a mesh that divides the vocabulary, each device compares its own part.
        return jax.lax.broadcasted_iota(labels.dtype, logits.shape, 1) == labels[:, None]

    losses.defvjp(forward, backward)
    return losses(logits)


def _cross_entropy_in_torch(labels, logits):
    import torch

    # torch has no loss for a label that is not a class: the caller replaces that of the nearest class by NaN.
    labels = ops.clip(ops.convert_to_tensor(labels, dtype="int64"), 0, logits.shape[-1] - 1)
    if torch.compiler.is_compiling():  # which makes one pass of torch's own
        return torch.nn.functional.cross_entropy(logits.float(), labels, reduction="none")
    return _function_of_torch().apply(logits, labels)


@functools.cache
def _function_of_torch():
    """Cross-entropy of (logits, labels) whose gradient is one array of the size of the logits. That of torch's own is
    two: zeros with the upstream gradient at the labels, and what the softmax makes of them."""
    import torch

    class CrossEntropy(torch.autograd.Function):
        @staticmethod
        def forward(context, logits, labels):
            log_probabilities = torch.log_softmax(logits.float(), dim=-1)
            context.save_for_backward(log_probabilities, labels)
            context.dtype = logits.dtype
            return -log_probabilities.gather(1, labels[:, None])[:, 0]

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(context, upstream):
            log_probabilities, labels = context.saved_tensors
            gradient = log_probabilities.exp()
            gradient.scatter_add_(1, labels[:, None], torch.full_like(labels[:, None], -1, dtype=gradient.dtype))
            return gradient.mul_(upstream[:, None]).to(context.dtype), None

    return CrossEntropy


KERNELS = {"jax": _cross_entropy_in_jax, "torch": _cross_entropy_in_torch}
