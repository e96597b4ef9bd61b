"""DeBERTa v2 and v3: configuration, encoder, and the names of their tensors in Hugging Face's format."""

import dataclasses
import math
import typing

import keras
import numpy as np
from keras import ops

from keras_bert_impl.configurations.encoder_config import BERT_KEYS, EncoderConfig, check_setting
from keras_bert_impl.configurations.family import (
    COMMON_HEAD_ROWS,
    COMMON_TASKS,
    SAME,
    Family,
    Transform,
    attention_rows,
    dense_rows,
    norm_rows,
)
from keras_bert_impl.configurations.initialization import kernel_initializer
from keras_bert_impl.encoders import bert
from keras_bert_impl.encoders.encoder import FamilyEncoder
from keras_bert_impl.kernels import attention
from keras_bert_impl.kernels.gather import exact_product
from keras_bert_impl.kernels.gelu import activation_function
from keras_bert_impl.kernels.padding import padded
from keras_bert_impl.layers import Dropout, GatherPositions, MultiHeadSelfAttention, PositionEmbedding
from keras_bert_impl.layers.configured_layer import ConfiguredLayer

TERMS = 3  # of the products of queries and keys: content with content, content with position, position with content


class DistanceConfig(EncoderConfig):
    """Base class of DeBERTa's configurations: relative positions in both terms of the products, and no others.

    Attributes:
        architecture: keys of config.json and their only supported values. They are required, like `needed_keys`:
            without one, transformers builds another encoder.
    """

    heads_have_gelu: typing.ClassVar = True
    huggingface_keys: typing.ClassVar = tuple(pair for pair in BERT_KEYS if pair[0] != "num_segments")
    left_out: typing.ClassVar = {"layer_norm_eps": 1e-7}
    architecture: typing.ClassVar = {"relative_attention": True, "position_biased_input": False, "type_vocab_size": 0}
    needed_keys: typing.ClassVar = ("pos_att_type",)
    fixed_values: typing.ClassVar = {"pooler_hidden_act": "gelu", "pooler_dropout": 0, **architecture}
    pair_tasks: typing.ClassVar = ()
    has_position_table: typing.ClassVar = False
    distance_products: typing.ClassVar = TERMS - 1

    @classmethod
    def from_content(cls, path, found):
        """As EncoderConfig. Raises: ValueError also for settings that no published DeBERTa of the version has."""
        missing = [key for key in (*cls.architecture, *cls.needed_keys) if found.get(key) is None]
        if missing:
            raise ValueError(
                f"{path} lacks {', '.join(missing)}, without which transformers builds another encoder than any "
                "published DeBERTa. Add the published values."
            )
        terms = found["pos_att_type"]
        terms = terms.lower().split("|") if isinstance(terms, str) else terms
        check_setting(path, "pos_att_type", sorted(term.strip() for term in terms), ["c2p", "p2c"])
        width = found.get("hidden_size")
        for key, expected in (
            ("embedding_size", width),
            ("attention_head_size", width and width // found.get("num_attention_heads", 1)),
        ):
            check_setting(path, key, found.get(key, expected), expected)
        config = super().from_content(path, found)
        reach = found.get("max_relative_positions") or -1
        return dataclasses.replace(config, max_distance=reach if reach > 0 else config.max_length)

    def to_huggingface(self):
        return {
            **super().to_huggingface(),
            **self.architecture,
            "pos_att_type": ["p2c", "c2p"],
            "max_relative_positions": self.max_distance,
            "pooler_hidden_act": "gelu",
        }


@dataclasses.dataclass(frozen=True)
class DebertaV2Config(DistanceConfig):
    """Configuration of a DeBERTa model, version 2 or 3. The defaults are deberta-v3-base (He et al. 2021, "DeBERTaV3").

    Arguments and errors are those of BertConfig, without num_segments and direction, with the defaults in the
    signature, and:

    Args:
        activation (str, optional): only "gelu", with which transformers computes the heads. Default: "gelu".
        max_length (int, optional): largest number of tokens. Only the enhanced mask decoder has position embeddings.
            Default: 512.
        num_buckets (int, optional): number of relative-position buckets on each side of a token. Half of them hold one
            distance each, the others ranges of growing size. Default: 256.
        max_distance (int, optional): distance from which on all distances share a bucket. Default: 512.
        convolution (int, optional): number of tokens in the kernel of the convolution after the first layer, an odd
            number: 3 in the large models of version 2; 0 for no convolution. Default: 0.
    """

    vocabulary_size: int = 128100
    layer_norm_epsilon: float = 1e-7
    num_buckets: int = 256
    max_distance: int = 512
    convolution: int = 0

    model_type: typing.ClassVar = "deberta-v2"
    family: typing.ClassVar = "DeBERTa"
    # (layers, width, heads), as published.
    named_sizes: typing.ClassVar = {
        "deberta_v2_xlarge": (24, 1536, 24),
        "deberta_v2_xxlarge": (48, 1536, 24),
        "deberta_v3_xsmall": (12, 384, 6),
        "deberta_v3_small": (6, 768, 12),
        "deberta_v3_base": (12, 768, 12),
        "deberta_v3_large": (24, 1024, 16),
        "mdeberta_v3_base": (12, 768, 12),
    }
    named_fields: typing.ClassVar = {
        "deberta_v2_xlarge": {"convolution": 3},
        "deberta_v2_xxlarge": {"convolution": 3},
        "deberta_v3_xsmall": {"intermediate_size": 1536},
        "mdeberta_v3_base": {"vocabulary_size": 251000},
    }
    huggingface_keys: typing.ClassVar = (*DistanceConfig.huggingface_keys, ("num_buckets", "position_buckets"))
    architecture: typing.ClassVar = {
        **DistanceConfig.architecture,
        "share_att_key": True,
        "norm_rel_ebd": "layer_norm",
    }
    needed_keys: typing.ClassVar = ("position_buckets", *DistanceConfig.needed_keys)
    fixed_values: typing.ClassVar = {**DistanceConfig.fixed_values, **architecture, "conv_groups": 1}

    def __post_init__(self):
        super().__post_init__()
        half, is_even = self.num_buckets // 2, self.convolution and self.convolution % 2 == 0
        if self.num_buckets % 2 or self.max_distance - 1 <= half or is_even:
            raise ValueError(
                f"num_buckets must be even, max_distance above {half + 1} and convolution 0 or odd, not "
                f"{self.num_buckets}, {self.max_distance} and {self.convolution}."
            )

    @classmethod
    def from_content(cls, path, found):
        convolution = found.get("conv_kernel_size") or 0
        if convolution:
            check_setting(path, "conv_act", found.get("conv_act", "tanh"), "gelu")
        return dataclasses.replace(super().from_content(path, found), convolution=convolution)

    def to_huggingface(self):
        convolution = {"conv_kernel_size": self.convolution, "conv_act": "gelu"} if self.convolution else {}
        return {**super().to_huggingface(), **convolution}


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class RelativeEmbeddings(ConfiguredLayer):
    """Learned embedding of the distances from keys to queries (He et al. 2021, "DeBERTa", section 3.1).

    On each side, half of the buckets hold one distance each, the others ranges that grow by equal ratios. From
    `max_distance` on, all distances are in the last bucket of their side, as in transformers; for keys after the query,
    Microsoft's code takes the last but one.

    Args:
        num_buckets: number of buckets on each side.
        max_distance: as for DebertaV2Config; if it is `num_buckets`, each smaller distance has a bucket of its own.
        epsilon: epsilon of the norm; None for no norm, as in version 1.
        initializer: initializer of the table.

    Input:  (batch, length, width); only its shape is read.
    Output: (1, 2 * length - 1, width) for the distances length - 1, ..., 0, ..., 1 - length, the query's position minus
            the key's.
    """

    def __init__(self, num_buckets, max_distance, epsilon=1e-7, initializer="glorot_uniform", **kwargs):
        super().__init__(**kwargs)
        self.num_buckets, self.max_distance = int(num_buckets), int(max_distance)
        self.begins = tuple(self.first_distances().tolist())  # numbers: torch's compiler takes no array of NumPy
        self.initializer = keras.initializers.get(initializer)
        self.epsilon, self.norm = epsilon, None
        if epsilon is not None:
            self.norm = keras.layers.LayerNormalization(epsilon=epsilon, dtype=self.dtype_policy, name="norm")

    def build(self, input_shape):
        shape = (2 * self.num_buckets, input_shape[-1])
        self.table = self.add_weight(name="embeddings", shape=shape, initializer=self.initializer)
        if self.norm is not None:
            self.norm.build(shape)

    def call(self, inputs):
        length = ops.shape(inputs)[1]
        distances = length - 1 - ops.arange(2 * length - 1, dtype="int32")
        # A bucket's number is how many others begin at this distance or before, as for MPNet.
        begins = ops.convert_to_tensor(self.begins, "int32")
        is_behind = ops.greater_equal(ops.expand_dims(ops.abs(distances), -1), begins)
        buckets = ops.sum(ops.cast(is_behind, "int32"), axis=-1) * ops.sign(distances) + self.num_buckets
        buckets = ops.minimum(buckets, 2 * self.num_buckets - 1)
        one_hot = ops.one_hot(buckets, 2 * self.num_buckets, dtype=self.compute_dtype)
        table = ops.convert_to_tensor(self.table)
        return ops.expand_dims(exact_product(one_hot, table if self.norm is None else self.norm(table)), 0)

    def first_distances(self):
        """Returns the smallest distance in each bucket except the query's own, int32 (num_buckets,)."""
        if self.max_distance == self.num_buckets:
            return np.arange(1, self.num_buckets + 1, dtype="int32")
        middle = self.num_buckets // 2
        distances = np.arange(self.max_distance + 1)
        ratios = np.log(np.maximum(distances, middle) / middle) / math.log((self.max_distance - 1) / middle)
        shared = np.ceil(ratios * (middle - 1)).astype("int32") + middle
        buckets = np.where(distances <= middle, distances, shared)
        return np.searchsorted(buckets, np.arange(1, self.num_buckets + 1)).astype("int32")

    def compute_output_spec(self, inputs):
        length = inputs.shape[1]
        return keras.KerasTensor((1, length and 2 * length - 1, inputs.shape[-1]), dtype=self.compute_dtype)


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class DisentangledAttention(MultiHeadSelfAttention):
    """Self-attention by content and by relative position (He et al. 2021, "DeBERTa", section 3.1).

    A query's product with a key has three terms: both contents, the query's content and the distance to the key, and
    the key's content and this distance. Distances are projected by the kernels of queries and keys.

    Args: those of MultiHeadSelfAttention, and:
        position_dropout_rate: dropout of the embeddings of distances.

    Input:  as for MultiHeadSelfAttention, where `positions` are the output of RelativeEmbeddings.
    Output: as for MultiHeadSelfAttention.
    """

    def __init__(self, num_heads, dropout_rate=0.0, initializer="glorot_uniform", position_dropout_rate=0.0, **kwargs):
        super().__init__(num_heads, dropout_rate, initializer, **kwargs)
        self.position_dropout_rate = float(position_dropout_rate)
        self.position_dropout = Dropout(
            position_dropout_rate, seed=self.seed, dtype=self.dtype_policy, name="position_dropout"
        )

    @property
    def dropouts(self):
        return [*super().dropouts, self.position_dropout]

    def attention_inputs(self, contents, positions, training, bias=None, **fields):
        query, key, value = self.of_contents(contents)
        distant_query, distant_key = self.of_distances(self.position_dropout(positions, training=training))
        query = query * TERMS**-0.5  # the kernels divide by the root of a head's width
        scale = (key.shape[-1] // self.num_heads) ** -0.5
        of_keys = at_distances(self._products(query * scale, distant_key))  # (batch, heads, queries, keys)
        # Of a key, the distances run from the last query to the first.
        of_queries = self._products(key * (scale * TERMS**-0.5), ops.flip(distant_query, axis=1))
        products = of_keys + ops.swapaxes(at_distances(of_queries), 2, 3)
        bias = products if bias is None else products + bias
        return attention.AttentionInputs(query, key, value, self.num_heads, bias=bias, **fields)

    def of_contents(self, contents):
        """Splits the fused projection into queries, keys and values, (batch, length, width) each."""
        return ops.split(contents, 3, axis=-1)

    def of_distances(self, positions):
        """Projects distances to queries and keys, (1, 2 * length - 1, width) each, by the kernels of the contents."""
        return ops.split(self.query_key_value(positions), 3, axis=-1)[:2]

    def _products(self, vectors, distant):
        """Returns the products of vectors (batch, length, width) with those of distances (1, distances, width), by
        heads: (batch, heads, length, distances)."""
        vectors, distant = (
            ops.reshape(array, (*ops.shape(array)[:2], self.num_heads, -1)) for array in (vectors, distant)
        )
        return ops.einsum("bihd,mhd->bhim", vectors, distant[0])


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class AddConvolution(ConfiguredLayer):
    """Adds a convolution of the embeddings to hidden states, with GELU, and normalizes the sum, as the large models of
    version 2 do after their first layer (Microsoft's `ConvLayer`).

    Args:
        size: number of tokens in the kernel, an odd number.
        dropout_rate: dropout of the convolution's output, before GELU.
        epsilon: epsilon of the norm.
        initializer: initializer of the kernel.

    Input:  embeddings and hidden states, (batch, length, width) each, `padding_mask` (batch, length) and, for packed
            rows, `sequence_ids` (batch, length), so that the kernel does not reach into other sequences.
    Output: (batch, length, width), 0 at padding.
    """

    def __init__(self, size, dropout_rate=0.0, epsilon=1e-7, initializer="glorot_uniform", **kwargs):
        super().__init__(**kwargs)
        self.size, self.dropout_rate, self.epsilon = int(size), dropout_rate, epsilon
        self.initializer = keras.initializers.get(initializer)
        self.dropout = Dropout(dropout_rate, dtype=self.dtype_policy, name="dropout")
        self.norm = keras.layers.LayerNormalization(epsilon=epsilon, dtype=self.dtype_policy, name="norm")

    def build(self, embeddings_shape, hidden_states_shape=None, padding_mask_shape=None, sequence_ids_shape=None):
        width = embeddings_shape[-1]
        self.kernel = self.add_weight(name="kernel", shape=(self.size * width, width), initializer=self.initializer)
        self.bias = self.add_weight(name="bias", shape=(width,), initializer="zeros")
        self.dropout.build(embeddings_shape)
        self.norm.build(embeddings_shape)

    def call(self, embeddings, hidden_states, padding_mask, sequence_ids=None, training=False):
        is_token = ops.cast(ops.expand_dims(padding_mask, -1), embeddings.dtype)
        neighbours = [self.shifted(embeddings, place, sequence_ids) for place in range(self.size)]
        # One product for all neighbours: a backend's convolution could not leave out other sequences.
        convolved = ops.matmul(ops.concatenate(neighbours, axis=-1), ops.convert_to_tensor(self.kernel))
        convolved = (convolved + ops.convert_to_tensor(self.bias)) * is_token
        convolved = activation_function("gelu")(self.dropout(convolved, training=training))
        return self.norm(hidden_states + convolved) * is_token

    def shifted(self, embeddings, place, sequence_ids):
        """Returns for each token the embedding (batch, length, width) of its neighbour at this place in the kernel; 0
        where its sequence has none."""
        length, reach = ops.shape(embeddings)[1], self.size // 2

        def moved(array):
            return padded(array, reach, reach)[:, place : place + length]

        if sequence_ids is None:
            return moved(embeddings)
        is_same = ops.cast(ops.equal(moved(sequence_ids), sequence_ids), embeddings.dtype)
        return moved(embeddings) * ops.expand_dims(is_same, -1)

    def compute_output_spec(self, embeddings, hidden_states, padding_mask, sequence_ids=None, training=False):
        return keras.KerasTensor(hidden_states.shape, dtype=self.compute_dtype)


def at_distances(products):
    """Of each place, the products with distances counted from it, put where they belong: products (..., length,
    2 * length - 1) of the distances length - 1, ..., 1 - length to (..., length, length), of which row i and column j
    have the distance i - j. With `more` further distances before these, there are as many more columns: row i and
    column j then have the distance i + more - j.

    By reshaping, so that each row begins one place before the row above (Dai et al. 2019, "Transformer-XL", appendix
    B): a gather would need an index for each number, which TPUs follow one after the other.
    """
    *outer, length, count = ops.shape(products)
    keys = count - length + 1
    if not isinstance(length, int) or length == 1:
        # One column more, without which rows of one token would have no place left.
        products, count = padded(products, 0, 1, axis=-1), count + 1
    flat = ops.reshape(products, (*outer, length * count))
    flat = flat[..., length - 1 : length - 1 + length * (count - 1)]
    return ops.reshape(flat, (*outer, length, count - 1))[..., :keys]


def connected_parts(inputs, parts, distances, attention_class):
    """Returns the arguments that the encoders of all versions pass to `Parts.apply_layers`, given the first arguments
    of RelativeEmbeddings and the class of attention: the embeddings (batch, length, hidden_size), the context of the
    blocks, and the function that makes a block."""
    config = parts.config
    hidden = parts.token_embedding(config.hidden_size)(inputs["token_ids"])
    hidden = parts.norm("embeddings_norm")(hidden)
    hidden = hidden * ops.cast(ops.expand_dims(inputs["padding_mask"], -1), parts.policy.compute_dtype)
    hidden = parts.dropout("embeddings_dropout")(hidden)
    # In packed rows, positions in the row also give the distances within each sequence.
    positions = RelativeEmbeddings(
        *distances, parts.initializer.clone(), dtype=parts.policy, name="relative_embeddings"
    )(hidden)

    def block(number):
        return parts.block_with(number, attention_class, config.hidden_dropout_rate)

    return hidden, {**parts.context(inputs), "positions": positions}, block


class DistanceEncoder(FamilyEncoder):
    """Base class of the encoders of all versions."""

    pooler_activation = "gelu"

    def decoded_states(self):
        """Computes the enhanced mask decoder (He et al. 2021, "DeBERTa", section 3.2): the last layer, twice over the
        states before it. Its queries are first these plus an embedding of absolute positions, then its own output."""
        hidden, context = self.hidden_states()[-2], self.last_context()
        places = PositionEmbedding(
            self.config.max_length, kernel_initializer(self.config), dtype=self.dtype_policy, name="decoder_positions"
        )(hidden, position_ids=self.input.get("position_ids"))
        block, queries = self.get_layer(f"block_{self.config.schedule[-1]}"), hidden + places
        for _ in range(2):
            queries = block(hidden, query_states=queries, **context)
        return queries


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class DebertaV2Encoder(DistanceEncoder):
    """Turns token IDs into vectors with DeBERTa, version 2 or 3 (He et al. 2021, "DeBERTa" and "DeBERTaV3").

    Differences from BERT: the products of queries and keys have terms of relative positions, whose embeddings all
    layers share and project themselves; there are no absolute positions, no segments and no pooler, and classifiers
    have a dense GELU layer of their own; the large models of version 2 add a convolution after the first layer.
    Pre-training predicts masked words, as in version 2, or detects replaced tokens, as in version 3
    (`ElectraPretrainer`). Arguments and errors are those of BertEncoder.

    Input:  dict of `token_ids`, `segment_ids` (ignored), `padding_mask`, each int32 (batch, length).
    Output: dict of `sequence_output` (batch, length, hidden_size), and the optional outputs of BertEncoder.
    """

    config_class = DebertaV2Config
    usual_generator_size = 0.5  # of the layers
    generator_has_decoder = True

    @staticmethod
    def connect(inputs, parts):
        config = parts.config
        hidden, context, block = connected_parts(
            inputs,
            parts,
            (config.num_buckets, config.max_distance, config.layer_norm_epsilon),
            DisentangledAttention,
        )
        if not config.convolution:
            return parts.apply_layers(hidden, context, block)
        convolution = AddConvolution(
            config.convolution,
            config.hidden_dropout_rate,
            config.layer_norm_epsilon,
            parts.initializer.clone(),
            dtype=parts.policy,
            name="convolution",
        )

        def behind_first(output):
            return convolution(hidden, output, inputs["padding_mask"], sequence_ids=inputs.get("sequence_ids"))

        return parts.apply_layers(hidden, context, block, behind={0: behind_first})

    def generator(self, share):
        """Returns a generator for `ElectraPretrainer`: of the same width, with this share of the layers, and a copy of
        this encoder's token embedding."""
        config = dataclasses.replace(self.config, num_layers=max(1, round(share * self.config.num_layers)))
        options = {"packed": self.packed, "rematerialize": self.rematerialize, "dtype": self.dtype_policy}
        generator = DebertaV2Encoder(config, name="deberta_generator", **options)
        # A copy: JAX gives the memory of each weight away when a step begins.
        generator.token_embedding.embeddings.assign(ops.copy(self.token_embedding.embeddings))
        return generator

    def detection_vectors(self, outputs, rows):
        """Adds the first token's vector to every token's and normalizes the sum, as Microsoft's
        `LMMaskPredictionHead`."""
        hidden = outputs["sequence_output"]
        first = hidden[:, :1]
        if self.packed:  # the first token of each sequence
            positions = rows["position_ids"]
            begins = ops.cumsum(ops.ones_like(positions), axis=1) - 1 - positions
            first = GatherPositions(dtype=self.dtype_policy, name="first_of_sequence")(hidden, begins)
        norm = keras.layers.LayerNormalization(
            epsilon=self.config.layer_norm_epsilon, dtype=self.dtype_policy, name="replaced_token_norm"
        )
        return norm(first + hidden)


# torch's kernel is (out, in, places), ours (places * in, out).
CONVOLUTION = Transform(
    lambda theirs: np.concatenate(np.transpose(theirs[0], (2, 1, 0))),
    lambda ours: [np.transpose(ours.reshape(-1, ours.shape[1], ours.shape[1]), (2, 1, 0))],
)
FAMILY = Family(
    encoder_class=DebertaV2Encoder,
    prefix="deberta.",
    bare_beginnings=("embeddings.", "encoder."),
    embedding_rows=(
        ("token_embedding/embeddings", ("deberta.embeddings.word_embeddings.weight",), SAME),
        *norm_rows("embeddings_norm", "deberta.embeddings.LayerNorm"),
        ("relative_embeddings/embeddings", ("deberta.encoder.rel_embeddings.weight",), SAME),
        *norm_rows("relative_embeddings/norm", "deberta.encoder.LayerNorm"),
        ("convolution/kernel", ("deberta.encoder.conv.conv.weight",), CONVOLUTION),
        ("convolution/bias", ("deberta.encoder.conv.conv.bias",), SAME),
        *norm_rows("convolution/norm", "deberta.encoder.conv.LayerNorm"),
    ),
    block="deberta.encoder.layer.{}.",
    block_rows=(
        *attention_rows(
            [f"attention.self.{name}_proj" for name in ("query", "key", "value")], "attention.output.dense"
        ),
        *(row for row in bert.BLOCK_ROWS if not row[0].startswith("attention/")),
    ),
    head_rows=(
        *dense_rows("pooler", "pooler.dense"),
        *bert.MASKED_LM_ROWS,
        ("decoder_positions/embeddings", ("deberta.embeddings.position_embeddings.weight",), SAME),
        *norm_rows("replaced_token_norm", "mask_predictions.LayerNorm"),
        *dense_rows("replaced_token_transform", "mask_predictions.dense"),
        *dense_rows("replaced_token_head", "mask_predictions.classifier"),
        *COMMON_HEAD_ROWS,
    ),
    redundant=(
        "cls.predictions.decoder.weight",
        "cls.predictions.decoder.bias",
        "deberta.embeddings.position_ids",
    ),
    # The last is ours: transformers has no head for replaced tokens, which Microsoft's files hold.
    tasks=(*COMMON_TASKS, "ForPreTraining"),
    dropout_key="cls_dropout",
    token_dropout_key="token_classif_dropout",  # a field of our own: transformers has no other than the encoder's
    # Written as transformers does unless config.json says `legacy: false`; Microsoft's files have the other names.
    names_by_task={
        "ForMaskedLM of Microsoft": (
            ("cls.predictions.bias", "lm_predictions.lm_head.bias"),
            ("cls.predictions.transform.", "lm_predictions.lm_head."),
        )
    },
)
