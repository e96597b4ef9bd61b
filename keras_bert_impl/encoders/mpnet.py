"""MPNet: configuration, encoder, and the names of its tensors in Hugging Face's format."""

import dataclasses
import math
import typing

import keras
import numpy as np
from keras import ops

from keras_bert_impl.configurations.encoder_config import BERT_KEYS
from keras_bert_impl.configurations.family import SAME, attention_rows, norm_rows
from keras_bert_impl.encoders import bert, roberta
from keras_bert_impl.encoders.encoder import FamilyEncoder
from keras_bert_impl.kernels.gather import exact_product
from keras_bert_impl.layers import GatherPositions, PermutedRows
from keras_bert_impl.layers.configured_layer import ConfiguredLayer

NUM_BUCKETS = 32  # the only number that transformers computes, whatever config.json says


@dataclasses.dataclass(frozen=True)
class MPNetConfig(roberta.RobertaConfig):
    """Configuration of an MPNet model. The defaults are microsoft/mpnet-base (Song et al. 2020).

    Arguments and errors are those of RobertaConfig, without num_segments, with the defaults in the signature, and:

    Args:
        pad_id (int, optional): only 1, from which transformers counts positions. Default: 1.
    """

    vocabulary_size: int = 30527
    num_segments: typing.ClassVar[int] = 1  # there is no table of them

    model_type: typing.ClassVar = "mpnet"
    family: typing.ClassVar = "MPNet"
    named_sizes: typing.ClassVar = {"mpnet_base": (12, 768, 12)}  # (layers, width, heads)
    huggingface_keys: typing.ClassVar = tuple(pair for pair in BERT_KEYS if pair[0] != "num_segments")
    left_out: typing.ClassVar = {"layer_norm_eps": 1e-12, "max_position_embeddings": 512}
    fixed_values: typing.ClassVar = {"relative_attention_num_buckets": NUM_BUCKETS}

    def __post_init__(self):
        super().__post_init__()
        if self.pad_id != 1:
            raise ValueError(f"pad_id of an MPNet must be 1, not {self.pad_id}.")


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class RelativePositionBias(ConfiguredLayer):
    """Learned bias of attention for each head and each distance between a query and a key (Raffel et al. 2020, section
    2.1; Song et al. 2020, section 2.3).

    Half of the buckets are for keys before the query, half for those after it. On each side, the first half of the
    buckets hold one distance each, the others ranges that grow by equal ratios, up to `max_distance` and beyond.

    Args:
        num_heads: number of heads.
        num_buckets: number of buckets. MPNet: 32.
        max_distance: distance from which on all distances share a bucket. MPNet: 128.
        initializer: BERT uses a truncated normal of standard deviation 0.02.

    Input:  (batch, length, ...); only its length is read.
    Output: (1, num_heads, length, length); the axes are (batch, heads, queries, keys).
    """

    def __init__(self, num_heads, num_buckets=NUM_BUCKETS, max_distance=128, initializer="glorot_uniform", **kwargs):
        super().__init__(**kwargs)
        self.num_heads, self.num_buckets, self.max_distance = int(num_heads), int(num_buckets), int(max_distance)
        self.begins = tuple(self.first_distances().tolist())  # numbers: torch's compiler takes no array of NumPy
        self.initializer = keras.initializers.get(initializer)

    def build(self, input_shape):
        self.table = self.add_weight(
            name="embeddings", shape=(self.num_buckets, self.num_heads), initializer=self.initializer
        )

    def call(self, inputs):
        length = ops.shape(inputs)[1]
        places = ops.arange(length, dtype="int32")
        # LiteRT has no kernel for an index with None where the length is unknown.
        distances = ops.expand_dims(places, 1) - ops.expand_dims(places, 0)  # of each query (first axis) to each key
        # A bucket's number is how many others begin at this distance or before. (ONNX Runtime fails on the graph that
        # torch writes for looking it up in a table.)
        begins = ops.convert_to_tensor(self.begins, "int32")
        is_behind = ops.greater_equal(ops.expand_dims(ops.abs(distances), -1), begins)
        buckets = ops.sum(ops.cast(is_behind, "int32"), axis=-1) + ops.where(distances < 0, self.num_buckets // 2, 0)
        # A product with one-hot rows, as for segments: the gradient of a gather would add every pair into a few rows.
        one_hot = ops.one_hot(buckets, self.num_buckets, dtype=self.compute_dtype)  # (length, length, buckets)
        of_pairs = exact_product(one_hot, ops.convert_to_tensor(self.table))  # (length, length, heads)
        return ops.expand_dims(ops.transpose(of_pairs, (2, 0, 1)), 0)

    def first_distances(self):
        """Returns the smallest distance in each bucket except the first, for keys before the query, int32."""
        of_side = self.num_buckets // 2
        alone = of_side // 2
        distances = np.arange(self.max_distance + 1)
        # In float32 as transformers: where a bucket begins depends on how the logarithm is rounded.
        ratios = np.log(np.maximum(distances, 1).astype("float32") / alone) / math.log(self.max_distance / alone)
        shared = np.minimum(alone + (ratios * (of_side - alone)).astype("int32"), of_side - 1)
        buckets = np.where(distances < alone, distances, shared)
        return np.searchsorted(buckets, np.arange(1, of_side)).astype("int32")

    def compute_output_spec(self, inputs):
        length = inputs.shape[1]
        return keras.KerasTensor((1, self.num_heads, length, length), dtype=self.compute_dtype)


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class BiasOfPlaces(keras.layers.Layer):
    """Gathers the bias of pairs of positions for tokens at given positions.

    Input:  bias (1, heads, length, length); positions `places` (batch, tokens), int.
    Output: (batch, heads, tokens, tokens).
    """

    def call(self, bias, places):
        of_row = ops.arange(ops.shape(bias)[-1], dtype=places.dtype)
        one_hot = ops.cast(ops.expand_dims(places, -1) == of_row, bias.dtype)  # (batch, tokens, length)
        one_hot = ops.expand_dims(one_hot, 1)
        # By products, whose gradients are products: that of a gather would add every pair to a few of them.
        of_keys = exact_product(one_hot, ops.swapaxes(bias, 2, 3))  # (batch, heads, tokens, length)
        return exact_product(one_hot, ops.swapaxes(of_keys, 2, 3))

    def compute_output_spec(self, bias, places):
        batch, tokens = places.shape
        return keras.KerasTensor((batch, bias.shape[1], tokens, tokens), dtype=bias.dtype)


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class MPNetEncoder(FamilyEncoder):
    """Turns token IDs into vectors with MPNet (Song et al. 2020), as a functional Keras model.

    Differences from BERT: relative positions, in buckets that all layers share, in addition to absolute ones, which are
    counted over the tokens that are not padding; and no segments, so that only separators divide the texts of a pair.
    Pre-training predicts masked words, or masked and permuted ones as in the published checkpoints. Classifiers have a
    dense tanh layer of their own, which is the pooler here. Arguments and errors are those of BertEncoder.

    Input:  dict of `token_ids`, `segment_ids` (ignored), `padding_mask`, each int32 (batch, length).
    Output: dict of `sequence_output` (batch, length, hidden_size) and `pooled_output` (batch, hidden_size), and the
            optional outputs of BertEncoder.
    """

    config_class = MPNetConfig
    tokens_of_predictions = (0, 2)
    permuted_arguments = ("mask_id", "mask_token_rate", "random_token_rate", "seed")

    @staticmethod
    def connect(inputs, parts):
        config = parts.config
        hidden = parts.token_embedding(config.hidden_size)(inputs["token_ids"])  # (batch, length, hidden_size)
        positions = parts.padding_aware_positions(config.hidden_size)
        hidden = hidden + positions(inputs["padding_mask"], position_ids=inputs.get("position_ids"))
        hidden = parts.normalized(hidden)
        # In packed rows, positions in the row also give the distances within each sequence.
        bias = RelativePositionBias(
            config.num_heads, initializer=parts.initializer.clone(), dtype=parts.policy, name="relative_positions"
        )(inputs["token_ids"])
        return parts.with_pooled(parts.apply_layers(hidden, {**parts.context(inputs), "attention_bias": bias}))

    def permuted_states(self, rows, mask_positions, **options):
        """Computes two streams in one sequence (Song et al. 2020, section 2.2): a mask decides which tokens attend to
        which, so that the encoder's layers are called over both at once."""
        options = {"vocabulary_size": self.config.vocabulary_size, **options}
        found = PermutedRows(**options, name="permuted_rows")(
            rows["token_ids"], mask_positions, rows["padding_mask"], sequence_ids=rows.get("sequence_ids")
        )
        places = found["places"]
        positions = self.get_layer("position_embedding")(rows["padding_mask"], position_ids=rows.get("position_ids"))
        hidden = self.token_embedding(found["token_ids"])
        hidden = hidden + GatherPositions(dtype=self.dtype_policy, name="permuted_positions")(positions, places)
        hidden = self.get_layer("embeddings_dropout")(self.get_layer("embeddings_norm")(hidden))
        bias = BiasOfPlaces(dtype=self.dtype_policy, name="permuted_bias")(
            self.get_layer("relative_positions")(rows["token_ids"]), places
        )
        for number in self.config.schedule:
            hidden = self.get_layer(f"block_{number}")(
                hidden, attention_mask=found["attention_mask"], attention_bias=bias
            )
        return hidden, found["query_places"]


ATTENTION_ROWS = (
    *attention_rows([f"attention.attn.{n}" for n in "qkv"], "attention.attn.o"),
    *norm_rows("attention_norm", "attention.LayerNorm"),
)
FAMILY = roberta.FAMILY.renamed(
    "mpnet.",
    encoder_class=MPNetEncoder,
    block_rows=(*ATTENTION_ROWS, *(row for row in bert.BLOCK_ROWS if not row[0].startswith("attention"))),
)
FAMILY = FAMILY._replace(
    embedding_rows=(
        *(row for row in FAMILY.embedding_rows if row[0] != "segment_embedding/embeddings"),
        ("relative_positions/embeddings", ("mpnet.encoder.relative_attention_bias.weight",), SAME),
    )
)
