"""DeBERTa of version 1: configuration, encoder, and the names of its tensors in Hugging Face's format."""

import dataclasses
import typing

import keras
import numpy as np

from keras_bert_impl.configurations.family import COMMON_TASKS, SAME, TRANSPOSED, Transform, dense_rows, norm_rows
from keras_bert_impl.distribution import BY_COLUMNS
from keras_bert_impl.encoders import bert, deberta
from keras_bert_impl.encoders.deberta import DisentangledAttention, DistanceConfig, DistanceEncoder
from keras_bert_impl.kernels.biased_product import add_bias
from keras_bert_impl.layers.self_attention import split_dense


@dataclasses.dataclass(frozen=True)
class DebertaConfig(DistanceConfig):
    """Configuration of a DeBERTa model, version 1. The defaults are deberta-base (He et al. 2021, "DeBERTa").

    Arguments and errors are those of BertConfig, without num_segments and direction, with the defaults in the
    signature, and:

    Args:
        activation (str, optional): only "gelu", with which transformers computes the heads. Default: "gelu".
        max_length (int, optional): largest number of tokens. Only the enhanced mask decoder has position embeddings.
            Default: 512.
        max_distance (int, optional): distance from which on all distances share an embedding. Default: 512.
    """

    vocabulary_size: int = 50265
    layer_norm_epsilon: float = 1e-7
    max_distance: int = 512

    model_type: typing.ClassVar = "deberta"
    family: typing.ClassVar = "DeBERTa of version 1"
    named_sizes: typing.ClassVar = {
        "deberta_base": (12, 768, 12),
        "deberta_large": (24, 1024, 16),
        "deberta_xlarge": (48, 1024, 16),
    }
    fixed_values: typing.ClassVar = {**DistanceConfig.fixed_values, "talking_head": False}


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class DisentangledAttentionV1(DisentangledAttention):
    """DisentangledAttention with kernels of its own for distances, and without a bias of keys.

    Arguments, input and output are those of DisentangledAttention.
    """

    has_bias_of_inputs = False

    def build(self, inputs_shape):
        super().build(inputs_shape)
        width = inputs_shape[-1]
        self.query_bias, self.value_bias = (
            self.add_weight(name=name, shape=(width,), initializer="zeros") for name in ("query_bias", "value_bias")
        )
        self.distance_key, self.distance_query = (
            split_dense(self, inputs_shape, width, name, BY_COLUMNS, self.initializer, use_bias)
            for name, use_bias in (("distance_key", False), ("distance_query", True))
        )

    def of_contents(self, contents):
        query, key, value = super().of_contents(contents)
        return add_bias(query, self.query_bias), key, add_bias(value, self.value_bias)

    def of_distances(self, positions):
        return self.distance_query(positions), self.distance_key(positions)


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class DebertaEncoder(DistanceEncoder):
    """Turns token IDs into vectors with DeBERTa, version 1 (He et al. 2021, "DeBERTa"), as a functional Keras model.

    Differences from version 2: each distance has an embedding of its own, which is not normalized, and which layers
    project by kernels of their own; keys have no bias. Pre-training predicts masked words.

    Arguments and errors are those of BertEncoder, input and output those of DebertaV2Encoder.
    """

    config_class = DebertaConfig

    @staticmethod
    def connect(inputs, parts):
        config = parts.config
        return parts.apply_layers(
            *deberta.connected_parts(
                inputs,
                parts,
                (config.max_distance, config.max_distance, None),
                DisentangledAttentionV1,
            )
        )


def block_rows(config):
    """The rows of a block, whose tensors hold query, key and value of each head side by side."""
    heads, width = config.num_heads, config.hidden_size

    def load(theirs):
        kernels = theirs[0].reshape(heads, 3, width // heads, width)  # (out, in) in torch
        return np.moveaxis(kernels, 1, 0).reshape(3 * width, width).T

    def save(ours):
        kernels = ours.T.reshape(3, heads, width // heads, width)
        return [np.moveaxis(kernels, 0, 1).reshape(3 * width, width)]

    return (
        ("attention/query_key_value/kernel", ("attention.self.in_proj.weight",), Transform(load, save)),
        ("attention/query_bias", ("attention.self.q_bias",), SAME),
        ("attention/value_bias", ("attention.self.v_bias",), SAME),
        ("attention/distance_key/kernel", ("attention.self.pos_proj.weight",), TRANSPOSED),
        *dense_rows("attention/distance_query", "attention.self.pos_q_proj"),
        *dense_rows("attention/output", "attention.output.dense"),
        *(row for row in bert.BLOCK_ROWS if not row[0].startswith("attention/")),
    )


FAMILY = deberta.FAMILY._replace(
    encoder_class=DebertaEncoder,
    embedding_rows=(
        ("token_embedding/embeddings", ("deberta.embeddings.word_embeddings.weight",), SAME),
        *norm_rows("embeddings_norm", "deberta.embeddings.LayerNorm"),
        ("relative_embeddings/embeddings", ("deberta.encoder.rel_embeddings.weight",), SAME),
    ),
    block_rows=block_rows,
    tasks=tuple(task for task in COMMON_TASKS if task != "ForMultipleChoice"),
)
