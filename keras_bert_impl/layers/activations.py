"""The activation functions a BERT configuration can name."""

import keras

# Hugging Face computes "gelu" exactly, Google's original code by the tanh approximation (Hendrycks and Gimpel 2016).
ACTIVATIONS = {
    "gelu": lambda x: keras.ops.gelu(x, approximate=False),
    "gelu_tanh": lambda x: keras.ops.gelu(x, approximate=True),
    "relu": keras.ops.relu,
}


def activation_function(name):
    """The function of a name in `BertConfig.activation`. Raises ValueError for any other."""
    if name not in ACTIVATIONS:
        raise ValueError(f"activation {name!r} is unknown; known are {', '.join(ACTIVATIONS)}.")
    return ACTIVATIONS[name]
