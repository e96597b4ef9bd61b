"""The configuration of an ALBERT."""

import dataclasses
import typing

from keras_bert_impl.configurations.encoder_config import BERT_KEYS, EncoderConfig


@dataclasses.dataclass(frozen=True)
class AlbertConfig(EncoderConfig):
    """The shape of an ALBERT encoder; the defaults are albert-base-v2 (Lan et al. 2020, table 1).

    Arguments and errors are those of BertConfig, and:

    Args:
        embedding_size: width of the embeddings, which a dense layer projects to hidden_size.
        num_groups: the layers are divided into so many runs of equal length, as far as their number allows. The layers
            of a run share their weights.
        layers_per_group: blocks that each layer consists of, one after the other; 1 in all published models.
    """

    vocabulary_size: int = 30000
    hidden_size: int = 768
    num_layers: int = 12
    num_heads: int = 12
    intermediate_size: int | None = None
    embedding_size: int = 128
    num_groups: int = 1
    layers_per_group: int = 1
    activation: str = "gelu_tanh"
    hidden_dropout_rate: float = 0.0
    attention_dropout_rate: float = 0.0
    max_length: int = 512
    num_segments: int = 2
    initializer_range: float = 0.02
    layer_norm_epsilon: float = 1e-12
    pad_id: int = 0

    model_type: typing.ClassVar = "albert"
    family: typing.ClassVar = "ALBERT"
    # (layers, width, heads); the names of both versions and, without one, the shape of version 2.
    named_sizes: typing.ClassVar = {
        f"albert_{size}{version}": shape
        for size, shape in (
            ("base", (12, 768, 12)),
            ("large", (24, 1024, 16)),
            ("xlarge", (24, 2048, 16)),
            ("xxlarge", (12, 4096, 64)),
        )
        for version in ("", "_v1", "_v2")
    }
    huggingface_keys: typing.ClassVar = (
        *BERT_KEYS[:5],
        ("embedding_size", "embedding_size"),
        ("num_groups", "num_hidden_groups"),
        ("layers_per_group", "inner_group_num"),
        *BERT_KEYS[5:],
    )
    activation_key: typing.ClassVar = "hidden_act"
    left_out: typing.ClassVar = {"hidden_act": "gelu_new"}
    optional_keys: typing.ClassVar = (("layer_norm_epsilon", "layer_norm_eps"), ("pad_id", "pad_token_id"))
    has_pooler: typing.ClassVar = True
    fixed_values: typing.ClassVar = {"position_embedding_type": "absolute"}
    pair_tasks: typing.ClassVar = ("sentence_order",)
    # Version 2 has no dropout but this one (`classifier_dropout_prob` in config.json).
    classifier_dropout_rate: typing.ClassVar[float] = 0.1

    def __post_init__(self):
        super().__post_init__()
        if self.num_groups > self.num_layers:
            raise ValueError(
                f"num_groups {self.num_groups} is above num_layers {self.num_layers}: a group without layers would "
                "have weights that nothing uses."
            )

    @property
    def block_numbers(self):
        return [(group, index) for group in range(self.num_groups) for index in range(self.layers_per_group)]

    @property
    def schedule(self):
        # transformers rounds in the same way, with floating-point numbers.
        groups = [int(layer / (self.num_layers / self.num_groups)) for layer in range(self.num_layers)]
        return [group * self.layers_per_group + index for group in groups for index in range(self.layers_per_group)]

    @property
    def projects_embeddings(self):
        return True

    @classmethod
    def from_name(cls, name, **overrides):
        """The configuration of a published size; keyword arguments replace its fields.

        Version 1 has exact GELU in Hugging Face's config.json, and dropout in all sizes but the largest
        (https://github.com/google-research/albert/issues/23).
        """
        fields = {}
        if name.endswith("_v1"):
            rate = 0.0 if name == "albert_xxlarge_v1" else 0.1
            fields = {"activation": "gelu", "hidden_dropout_rate": rate, "attention_dropout_rate": rate}
        return super().from_name(name, **{**fields, **overrides})
