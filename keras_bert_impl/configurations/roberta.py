"""The configurations of a RoBERTa and of an XLM-RoBERTa."""

import dataclasses
import typing

from keras_bert_impl.configurations.encoder_config import BERT_KEYS, EncoderConfig


@dataclasses.dataclass(frozen=True)
class RobertaConfig(EncoderConfig):
    """The shape of a RoBERTa encoder; the defaults are roberta-base (Liu et al. 2019, section 3.1 and table 9).

    Arguments and errors are those of BertConfig, and:

    Args:
        max_length: the longest row in tokens. The position table has pad_id + 1 more rows, and `config.json` gives
            their number: 514 for 512.
        num_segments: rows of the segment table: one, which every token receives.
        activation: only "gelu": transformers computes the masked-LM head with exact GELU whatever config.json says.
        pad_id: the id of the padding token; positions are counted from the row after it.
    """

    vocabulary_size: int = 50265
    hidden_size: int = 768
    num_layers: int = 12
    num_heads: int = 12
    intermediate_size: int | None = None
    activation: str = "gelu"
    hidden_dropout_rate: float = 0.1
    attention_dropout_rate: float = 0.1
    max_length: int = 512
    num_segments: int = 1
    initializer_range: float = 0.02
    layer_norm_epsilon: float = 1e-5
    pad_id: int = 1

    model_type: typing.ClassVar = "roberta"
    family: typing.ClassVar = "RoBERTa"
    # (layers, width, heads). Published are base, large and, by Sanh et al. 2019, the distilled one; the small one has
    # the shape of BERT-small (Turc et al. 2019).
    named_sizes: typing.ClassVar = {
        "roberta_small": (4, 512, 8),
        "distilroberta_base": (6, 768, 12),
        "roberta_base": (12, 768, 12),
        "roberta_large": (24, 1024, 16),
    }
    huggingface_keys: typing.ClassVar = BERT_KEYS
    activation_key: typing.ClassVar = "hidden_act"
    left_out: typing.ClassVar = {"layer_norm_eps": 1e-12, "type_vocab_size": 2}
    optional_keys: typing.ClassVar = (("layer_norm_epsilon", "layer_norm_eps"), ("pad_id", "pad_token_id"))
    has_pooler: typing.ClassVar = True
    fixed_values: typing.ClassVar = {"position_embedding_type": "absolute"}
    pair_tasks: typing.ClassVar = ()

    def __post_init__(self):
        super().__post_init__()
        if self.activation != "gelu":
            raise ValueError(
                f"activation {self.activation!r} is not supported: transformers computes the masked-LM head of a "
                f"{self.family} with exact GELU whatever the encoder's activation is. Set activation='gelu'."
            )

    @property
    def num_positions(self):
        return self.max_length + self.pad_id + 1

    @classmethod
    def from_huggingface(cls, path):
        found = super().from_huggingface(path)  # whose max_length is still the number of rows
        unused = found.pad_id + 1
        if found.max_length <= unused:
            raise ValueError(
                f"{path}: max_position_embeddings {found.max_length} leaves no position after that of the padding "
                f"token, pad_token_id {found.pad_id}: expected at least {unused + 1}."
            )
        return dataclasses.replace(found, max_length=found.max_length - unused)

    def to_huggingface(self):
        return {**super().to_huggingface(), "max_position_embeddings": self.num_positions}


@dataclasses.dataclass(frozen=True)
class XLMRobertaConfig(RobertaConfig):
    """A RobertaConfig with the vocabulary of a hundred languages; the defaults are xlm-roberta-base (Conneau et al.
    2020, section 3)."""

    vocabulary_size: int = 250002

    model_type: typing.ClassVar = "xlm-roberta"
    family: typing.ClassVar = "XLM-RoBERTa"
    named_sizes: typing.ClassVar = {"xlm_roberta_base": (12, 768, 12), "xlm_roberta_large": (24, 1024, 16)}
