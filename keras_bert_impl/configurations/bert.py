"""The configuration of a BERT, and the two JSON formats in which it is published."""

import dataclasses
import typing

from keras_bert_impl.configurations.encoder_config import BERT_KEYS, EncoderConfig
from keras_bert_impl.features import DIRECTIONS
from keras_bert_impl.json_files import read_json

# "gelu" means the tanh approximation in Google's code and the exact function in Hugging Face's:
# the activations of one checkpoint differ by about 1e-3 between the two.
GOOGLE_ACTIVATIONS = {"gelu": "gelu_tanh", "relu": "relu"}


RIGHT_TO_LEFT = "bert_right_to_left"  # the model_type of a BERT that reads from right to left


@dataclasses.dataclass(frozen=True)
class BertConfig(EncoderConfig):
    """The shape of a BERT encoder; the defaults are BERT-base, uncased (Devlin et al. 2019, section 3).

    Args:
        vocabulary_size: rows of the token embedding.
        hidden_size: width H of every layer; a multiple of `num_heads`.
        num_layers: transformer blocks L.
        num_heads: attention heads A.
        intermediate_size: width of the feed-forward layer; None means 4 * hidden_size, as in the paper.
        activation: "gelu" (exact, the default as in Hugging Face), "gelu_tanh" (the approximation that
            Google's code computes) or "relu".
        hidden_dropout_rate, attention_dropout_rate: 0.1 in the paper (appendix A.2).
        max_length: rows of the position table, hence the longest row in tokens.
        num_segments: rows of the segment table. With one, both texts of a pair have it.
        initializer_range: standard deviation of the truncated normal that weights start from.
        layer_norm_epsilon: 1e-12 in Google's code.
        pad_id: the id of [PAD], written to Hugging Face's config.json.
        direction: which tokens a token attends to: "both" sides as in BERT, "left_to_right" itself and those before it,
            as in GPT (section 5.1; Hugging Face's `is_decoder`), or "right_to_left" itself and those after it, which
            transformers does not have: its model_type is then one that transformers refuses.

    Raises: ValueError for a shape that no BERT can have, naming field and value.
    """

    vocabulary_size: int = 30522
    hidden_size: int = 768
    num_layers: int = 12
    num_heads: int = 12
    intermediate_size: int | None = None
    activation: str = "gelu"
    hidden_dropout_rate: float = 0.1
    attention_dropout_rate: float = 0.1
    max_length: int = 512
    num_segments: int = 2
    initializer_range: float = 0.02
    layer_norm_epsilon: float = 1e-12
    pad_id: int = 0
    direction: str = "both"

    model_type: typing.ClassVar = "bert"
    family: typing.ClassVar = "BERT"
    # Base and large from table 1's text in Devlin et al. 2019, section 3; the others from Turc et al. 2019
    # ("Well-Read Students Learn Better"), table 1. (layers, width, heads)
    named_sizes: typing.ClassVar = {
        "bert_tiny": (2, 128, 2),
        "bert_mini": (4, 256, 4),
        "bert_small": (4, 512, 8),
        "bert_medium": (8, 512, 8),
        "bert_base": (12, 768, 12),
        "bert_large": (24, 1024, 16),
    }
    # Shared by Google's bert_config.json and Hugging Face's config.json.
    huggingface_keys: typing.ClassVar = BERT_KEYS
    activation_key: typing.ClassVar = "hidden_act"
    optional_keys: typing.ClassVar = (("layer_norm_epsilon", "layer_norm_eps"), ("pad_id", "pad_token_id"))
    has_pooler: typing.ClassVar = True
    fixed_values: typing.ClassVar = {"position_embedding_type": "absolute"}
    may_be_causal: typing.ClassVar = True
    other_model_types: typing.ClassVar = (RIGHT_TO_LEFT,)

    def __post_init__(self):
        super().__post_init__()
        if self.direction not in DIRECTIONS:
            raise ValueError(f"direction {self.direction!r} is unknown; known are {', '.join(DIRECTIONS)}.")

    @classmethod
    def from_huggingface(cls, path):
        config, found = super().from_huggingface(path), read_json(path)
        if found.get("model_type") == RIGHT_TO_LEFT:
            return dataclasses.replace(config, direction="right_to_left")
        return dataclasses.replace(config, direction="left_to_right") if found.get("is_decoder") else config

    def to_huggingface(self):
        of_direction = {"left_to_right": {"is_decoder": True}, "right_to_left": {"model_type": RIGHT_TO_LEFT}}
        return {**super().to_huggingface(), **of_direction.get(self.direction, {})}

    @classmethod
    def from_google(cls, path):
        """Reads google-research/bert's `bert_config.json`; its "gelu" is the tanh approximation."""
        return cls.from_json(path, GOOGLE_ACTIVATIONS)

    def to_google(self):
        """The dict of a `bert_config.json`. Raises ValueError for exact GELU, which Google's code does not have."""
        if self.direction != "both":
            raise ValueError(f"Google's code cannot compute direction {self.direction!r}: its BERT reads both sides.")
        activations = {ours: theirs for theirs, ours in GOOGLE_ACTIVATIONS.items()}
        if self.activation not in activations:
            raise ValueError(
                f"Google's code cannot compute activation {self.activation!r}: its 'gelu' is the tanh approximation. "
                "Set activation='gelu_tanh' to accept the difference of about 1e-3."
            )
        return {
            **{theirs: getattr(self, ours) for ours, theirs in self.huggingface_keys},
            self.activation_key: activations[self.activation],
        }
