"""The activation functions of encoders and their heads."""

import functools

import keras

# Hugging Face computes "gelu" exactly, Google's original code by the tanh approximation (Hendrycks and Gimpel 2016).
ACTIVATIONS = {
    "gelu": lambda x: gelu(x, approximate=False),
    "gelu_tanh": lambda x: gelu(x, approximate=True),
    # Of transformers, without a counterpart in Keras (Hendrycks and Gimpel 2016; So et al. 2021).
    "quick_gelu": lambda x: x * keras.ops.sigmoid(1.702 * x),
    "relu2": lambda x: keras.ops.square(keras.ops.relu(x)),
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
    """The function of a name in ACTIVATIONS or `keras.activations`, or a function itself, as Keras' layers take them.

    Raises: ValueError for anything else.
    """
    return ACTIVATIONS[name] if isinstance(name, str) and name in ACTIVATIONS else keras.activations.get(name)


def checked_activation(name):
    """An activation as a layer keeps it and JSON can: a function by its name. Raises ValueError if there is none."""
    function = activation_function(name)
    return keras.activations.serialize(function) if callable(name) else name
