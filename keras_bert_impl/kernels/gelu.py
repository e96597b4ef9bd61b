"""The activation functions a BERT configuration can name."""

import keras

# Hugging Face computes "gelu" exactly, Google's original code by the tanh approximation (Hendrycks and Gimpel 2016).
# Both are computed in float32 here: TensorFlow takes a dozen steps for GELU and its gradient, each of which rounds in
# bfloat16 and, on a CPU, takes longer than in float32. This makes a training step of 16 x 64 tokens a tenth shorter.
# torch computes GELU in one step and loses 3 % to the casts.
ACTIVATIONS = {
    "gelu": lambda x: gelu_in_float32(x, approximate=False),
    "gelu_tanh": lambda x: gelu_in_float32(x, approximate=True),
    "relu": keras.ops.relu,
}


def gelu_in_float32(x, approximate):
    """GELU, computed in float32 and returned in the type of `x`."""
    wide = keras.backend.result_type(x.dtype, "float32")
    return keras.ops.cast(keras.ops.gelu(keras.ops.cast(x, wide), approximate), x.dtype)


def activation_function(name):
    """The function of a name in `BertConfig.activation`. Raises ValueError for any other."""
    if name not in ACTIVATIONS:
        raise ValueError(f"activation {name!r} is unknown; known are {', '.join(ACTIVATIONS)}.")
    return ACTIVATIONS[name]
