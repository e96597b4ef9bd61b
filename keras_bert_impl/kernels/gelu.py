"""The activation functions a BERT configuration can name."""

import keras

# Hugging Face computes "gelu" exactly, Google's original code by the tanh approximation (Hendrycks and Gimpel 2016).
# In float32: TensorFlow computes GELU and its gradient in a dozen steps, and in bfloat16 each of them rounds and, on a
# CPU, takes longer than in float32; a training step of 16 x 64 tokens is a tenth shorter so. torch, which computes it
# in one step, pays 3 % for the casts.
ACTIVATIONS = {
    "gelu": lambda x: gelu_in_float32(x, approximate=False),
    "gelu_tanh": lambda x: gelu_in_float32(x, approximate=True),
    "relu": keras.ops.relu,
}


def gelu_in_float32(x, approximate):
    """GELU, computed in float32, of the type of `x`."""
    wide = keras.backend.result_type(x.dtype, "float32")
    return keras.ops.cast(keras.ops.gelu(keras.ops.cast(x, wide), approximate), x.dtype)


def activation_function(name):
    """The function of a name in `BertConfig.activation`. Raises ValueError for any other."""
    if name not in ACTIVATIONS:
        raise ValueError(f"activation {name!r} is unknown; known are {', '.join(ACTIVATIONS)}.")
    return ACTIVATIONS[name]
