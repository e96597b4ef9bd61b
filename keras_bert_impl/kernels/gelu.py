"""The activation functions of encoders and their heads."""

import functools

import keras

# Hugging Face computes "gelu" exactly, Google's original code by the tanh approximation (Hendrycks and Gimpel 2016).
ACTIVATIONS = {
    "gelu": lambda x: gelu(x, approximate=False),
    "gelu_tanh": lambda x: gelu(x, approximate=True),
    "relu": keras.ops.relu,
    "tanh": keras.ops.tanh,  # of poolers alone
}


def gelu(x, approximate):
    """GELU, computed in float32 and returned in the type of `x`, by the current backend's kernel."""
    return KERNELS.get(keras.backend.backend(), gelu_in_float32)(x, approximate)


def gelu_in_float32(x, approximate):
    """The plain form. TensorFlow takes a dozen steps for GELU and its gradient, each of which rounds in bfloat16 and,
    on a CPU, takes longer than in float32: float32 makes a training step of 16 x 64 tokens a tenth shorter.
    """
    wide = keras.backend.result_type(x.dtype, "float32")
    return keras.ops.cast(keras.ops.gelu(keras.ops.cast(x, wide), approximate), x.dtype)


def _gelu_in_jax(x, approximate):
    return _recomputed_in_jax(approximate)(x)


@functools.cache
def _recomputed_in_jax(approximate):
    """GELU whose gradient is computed from `x` again. Otherwise JAX keeps float32 intermediates of (batch, length,
    intermediate) for it: the TPU compiler counts 2.2 times the bytes in the feed-forward."""
    import jax

    plain = functools.partial(gelu_in_float32, approximate=approximate)
    recomputed = jax.custom_vjp(plain)

    def backward(x, upstream):
        # Behind the barrier XLA does not see that it has computed this before, and does not keep it.
        return jax.vjp(plain, jax.lax.optimization_barrier(x))[1](upstream)

    recomputed.defvjp(lambda x: (plain(x), x), backward)
    return recomputed


def _gelu_in_torch(x, approximate):
    # One operation that computes in float32 by itself and rounds once: casts before and after it take an eighth of the
    # time in which a sentence embedder in bfloat16 computes on a CPU.
    return keras.ops.gelu(x, approximate)


KERNELS = {"jax": _gelu_in_jax, "torch": _gelu_in_torch}


def activation_function(name):
    """The function of a name, as in `BertConfig.activation`. Raises ValueError for any other."""
    if name not in ACTIVATIONS:
        raise ValueError(f"activation {name!r} is unknown; known are {', '.join(ACTIVATIONS)}.")
    return ACTIVATIONS[name]
