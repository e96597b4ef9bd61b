"""ALBERT: configuration, encoder, and the names of its tensors in Hugging Face's format."""

import dataclasses
import typing

import keras

from keras_bert_impl.configurations.encoder_config import BERT_KEYS, EncoderConfig
from keras_bert_impl.configurations.family import (
    COMMON_HEAD_ROWS,
    COMMON_TASKS,
    Family,
    attention_rows,
    dense_rows,
    masked_lm_rows,
    norm_rows,
    with_prefix,
)
from keras_bert_impl.encoders import bert
from keras_bert_impl.encoders.encoder import FamilyEncoder


@dataclasses.dataclass(frozen=True)
class AlbertConfig(EncoderConfig):
    """Configuration of an ALBERT model. The defaults are albert-base-v2 (Lan et al. 2020, table 1).

    Arguments and errors are those of BertConfig, without direction, with the defaults in the signature, and:

    Args:
        embedding_size (int, optional): width of the embeddings, which a dense layer projects to hidden_size.
            Default: 128.
        num_groups (int, optional): number of groups of consecutive layers that share their weights. Default: 1.
        layers_per_group (int, optional): number of blocks in each layer; 1 in all published models. Default: 1.
    """

    vocabulary_size: int = 30000
    activation: str = "gelu_tanh"
    hidden_dropout_rate: float = 0.0
    attention_dropout_rate: float = 0.0
    num_segments: int = 2
    embedding_size: int = 128
    num_groups: int = 1
    layers_per_group: int = 1

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
    # Version 1 has exact GELU in Hugging Face's config.json, and dropout in all sizes but the largest
    # (https://github.com/google-research/albert/issues/23).
    named_fields: typing.ClassVar = {
        f"albert_{size}_v1": {"activation": "gelu", "hidden_dropout_rate": rate, "attention_dropout_rate": rate}
        for size, rate in (("base", 0.1), ("large", 0.1), ("xlarge", 0.1), ("xxlarge", 0.0))
    }
    huggingface_keys: typing.ClassVar = (
        *BERT_KEYS[:5],
        ("embedding_size", "embedding_size"),
        ("num_groups", "num_hidden_groups"),
        ("layers_per_group", "inner_group_num"),
        *BERT_KEYS[5:],
    )
    left_out: typing.ClassVar = {"hidden_act": "gelu_new"}
    pair_tasks: typing.ClassVar = ("sentence_order",)
    # Version 2 has no dropout but this one (`classifier_dropout_prob` in config.json).
    classifier_dropout_rate: typing.ClassVar[float] = 0.1

    def __post_init__(self):
        super().__post_init__()
        if self.num_groups > self.num_layers:
            raise ValueError(
                f"num_groups {self.num_groups} is above num_layers {self.num_layers}: a group without layers would "
                "have unused weights. Lower num_groups."
            )

    @property
    def num_blocks(self):
        return self.num_groups * self.layers_per_group

    @property
    def schedule(self):
        # transformers rounds in the same way, with floating-point numbers.
        groups = [int(layer / (self.num_layers / self.num_groups)) for layer in range(self.num_layers)]
        return [group * self.layers_per_group + index for group in groups for index in range(self.layers_per_group)]


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class AlbertEncoder(FamilyEncoder):
    """Turns token IDs into vectors with ALBERT (Lan et al. 2020), as a functional Keras model.

    Differences from BERT: embeddings are only 128 wide, and a dense layer projects them to the width of the blocks; all
    layers share one block's weights, or those of a few groups; pre-training predicts the order of two segments instead
    of the next sentence, and masks n-grams; and the tokenizer is SentencePiece. Arguments and errors are those of
    BertEncoder.

    Input:  dict of `token_ids`, `segment_ids`, `padding_mask`, each int32 (batch, length).
    Output: dict of `sequence_output` (batch, length, hidden_size) and `pooled_output` (batch, hidden_size), and the
            optional outputs of BertEncoder, which count layers, not blocks.
    """

    config_class = AlbertConfig

    @staticmethod
    def connect(inputs, parts):
        config = parts.config
        hidden = parts.normalized(parts.summed_embeddings(inputs, config.embedding_size))
        hidden = parts.dense(config.hidden_size, "embeddings_projection")(hidden)  # (batch, length, hidden_size)
        # Like Google's code, and unlike transformers', a block also has dropout after the feed-forward layer.
        return parts.with_pooled(parts.apply_layers(hidden, parts.context(inputs)))


PREFIX = "albert."
EMBEDDING_ROWS = (
    *with_prefix(bert.EMBEDDING_ROWS, PREFIX),
    *dense_rows("embeddings_projection", "albert.encoder.embedding_hidden_mapping_in"),
)
BLOCK_ROWS = (
    *attention_rows([f"attention.{n}" for n in ("query", "key", "value")], "attention.dense"),
    *norm_rows("attention_norm", "attention.LayerNorm"),
    *dense_rows("intermediate", "ffn"),
    *dense_rows("output", "ffn_output"),
    *norm_rows("output_norm", "full_layer_layer_norm"),
)
HEAD_ROWS = (
    *dense_rows("pooler", "albert.pooler"),
    *masked_lm_rows("predictions.dense", "predictions.LayerNorm", "predictions.bias"),
    *dense_rows("next_sentence_head", "sop_classifier.classifier"),
    *COMMON_HEAD_ROWS,
)
FAMILY = Family(
    encoder_class=AlbertEncoder,
    prefix=PREFIX,
    bare_beginnings=("embeddings.", "encoder.", "pooler."),
    embedding_rows=EMBEDDING_ROWS,
    block="albert.encoder.albert_layer_groups.{}.albert_layers.{}.",
    block_rows=BLOCK_ROWS,
    head_rows=HEAD_ROWS,
    redundant=(
        "predictions.decoder.weight",
        "predictions.decoder.bias",
        "albert.embeddings.position_ids",
        "albert.embeddings.token_type_ids",
    ),
    tasks=(*COMMON_TASKS, "ForPreTraining"),
    dropout_key="classifier_dropout_prob",
    block_numbers=lambda config: [
        (group, index) for group in range(config.num_groups) for index in range(config.layers_per_group)
    ],
)
