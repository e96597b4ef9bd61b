"""The configuration of an ELECTRA discriminator or generator."""

import dataclasses
import typing

from keras_bert_impl.configurations.encoder_config import BERT_KEYS, EncoderConfig


@dataclasses.dataclass(frozen=True)
class ElectraConfig(EncoderConfig):
    """The shape of an ELECTRA encoder; the defaults are ELECTRA-Small's discriminator (Clark et al. 2020, table 6).

    Arguments and errors are those of BertConfig, and:

    Args:
        embedding_size: width of the embeddings; if it is not hidden_size, a dense layer projects them to that width.
        activation: only "gelu": transformers computes the heads with exact GELU whatever config.json says.
    """

    vocabulary_size: int = 30522
    hidden_size: int = 256
    num_layers: int = 12
    num_heads: int = 4
    intermediate_size: int | None = None
    embedding_size: int = 128
    activation: str = "gelu"
    hidden_dropout_rate: float = 0.1
    attention_dropout_rate: float = 0.1
    max_length: int = 512
    num_segments: int = 2
    initializer_range: float = 0.02
    layer_norm_epsilon: float = 1e-12
    pad_id: int = 0

    model_type: typing.ClassVar = "electra"
    family: typing.ClassVar = "ELECTRA"
    # (layers, width, heads). The discriminators are those of table 6; the generators those of the published
    # checkpoints, of which the small one is as wide as its discriminator, unlike the paper's.
    named_sizes: typing.ClassVar = {
        "electra_small": (12, 256, 4),
        "electra_base": (12, 768, 12),
        "electra_large": (24, 1024, 16),
        "electra_small_generator": (12, 256, 4),
        "electra_base_generator": (12, 256, 4),
        "electra_large_generator": (24, 256, 4),
    }
    embedding_sizes: typing.ClassVar = {"small": 128, "base": 768, "large": 1024}
    huggingface_keys: typing.ClassVar = (
        *BERT_KEYS[:5],
        ("embedding_size", "embedding_size"),
        *BERT_KEYS[5:],
    )
    activation_key: typing.ClassVar = "hidden_act"
    optional_keys: typing.ClassVar = (("layer_norm_epsilon", "layer_norm_eps"), ("pad_id", "pad_token_id"))
    # How the multiple-choice head summarizes a row.
    fixed_values: typing.ClassVar = {
        "position_embedding_type": "absolute",
        "summary_type": "first",
        "summary_use_proj": True,
        "summary_activation": "gelu",
    }
    pair_tasks: typing.ClassVar = ()

    def __post_init__(self):
        super().__post_init__()
        if self.activation != "gelu":
            raise ValueError(
                f"activation {self.activation!r} is not supported: transformers computes an ELECTRA's heads with exact "
                "GELU whatever the encoder's activation is. Set activation='gelu'."
            )

    @classmethod
    def from_name(cls, name, **overrides):
        """The configuration of a published size; keyword arguments replace its fields."""
        size = name.removeprefix("electra_").removesuffix("_generator")
        embedding = {"embedding_size": cls.embedding_sizes[size]} if name in cls.named_sizes else {}
        return super().from_name(name, **{**embedding, **overrides})

    def generator(self, share):
        """The configuration of a generator whose width, feed-forward layer and heads are this share of the
        discriminator's (section 3.2: a quarter to a half), with as many layers and the same embeddings.

        Raises: ValueError if the share is not above 0 and at most 1, or does not give whole heads.
        """
        if not 0 < share <= 1:
            raise ValueError(f"The generator's share of the discriminator must be above 0 and at most 1, not {share}.")
        hidden_size, num_heads = round(share * self.hidden_size), max(1, round(share * self.num_heads))
        if hidden_size < num_heads or hidden_size % num_heads:
            raise ValueError(
                f"A generator of {share} of the discriminator would have width {hidden_size} and {num_heads} heads, "
                f"which do not divide it: choose a share that makes whole heads of width {self.hidden_size} and "
                f"{self.num_heads} heads, such as 0.5."
            )
        return dataclasses.replace(
            self,
            hidden_size=hidden_size,
            num_heads=num_heads,
            intermediate_size=max(1, round(share * self.intermediate_size)),
        )
