"""The options of `keras-bert convert`."""

import dataclasses
import typing


@dataclasses.dataclass
class ConvertConfig:
    """Converts a checkpoint to another format.

    Args:
        source: checkpoint directory, hf://owner/name or a published name.
        target: directory to write; must be new or empty.
        to: format of the target: huggingface, google or keras_hub. keras_hub holds only the encoder. Only huggingface
            keeps what a directory of sentence-transformers specifies about how a text becomes a vector.
        approximate_gelu: compute GELU by its tanh approximation, as Google's and KerasHub's code do; if the source
            computes exact GELU, activations change by about 1e-3.
        dtype: type of the weights in the target: float32, or bfloat16, which takes half the space; only for
            huggingface.
    """

    source: str
    target: str
    to: typing.Literal["huggingface", "google", "keras_hub"] = "huggingface"
    approximate_gelu: bool = False
    dtype: typing.Literal["float32", "bfloat16"] = "float32"
