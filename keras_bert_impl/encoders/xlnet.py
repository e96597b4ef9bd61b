"""XLNet: configuration, encoder, and the names of its tensors in Hugging Face's format."""

import dataclasses
import typing

import keras
import numpy as np
from keras import ops

from keras_bert_impl.configurations.encoder_config import EncoderConfig, check_setting
from keras_bert_impl.configurations.family import (
    COMMON_HEAD_ROWS,
    COMMON_TASKS,
    SAME,
    Family,
    Transform,
    dense_rows,
    norm_rows,
)
from keras_bert_impl.distribution import BY_COLUMNS
from keras_bert_impl.encoders.deberta import at_distances
from keras_bert_impl.encoders.encoder import FamilyEncoder
from keras_bert_impl.kernels import attention
from keras_bert_impl.kernels.biased_product import add_bias
from keras_bert_impl.kernels.gather import exact_product
from keras_bert_impl.layers import AttentionMask, LastToken, MultiHeadSelfAttention, QueryStream
from keras_bert_impl.layers.configured_layer import ConfiguredLayer
from keras_bert_impl.layers.self_attention import split_dense


@dataclasses.dataclass(frozen=True)
class XLNetConfig(EncoderConfig):
    """Configuration of an XLNet model. The defaults are xlnet-base-cased (Yang et al. 2019, appendix A.4).

    Arguments and errors are those of BertConfig, without num_segments and direction, with the defaults in the
    signature, and:

    Args:
        hidden_size (int, optional): width of every layer, an even number, for pairs of sine and cosine. Default: 768.
        activation (str, optional): "gelu", as transformers computes the published files, or "gelu_tanh", as in Google's
            code ("gelu_new" in config.json). Default: "gelu".
        hidden_dropout_rate, attention_dropout_rate (float, optional): dropout rates. config.json has one key for both,
            so that a model with two rates cannot be saved in that format. Default: 0.1.
        max_length (int, optional): largest number of tokens. There are no position embeddings, and transformers sets no
            limit. Default: 512.
        max_distance (int, optional): distance from which on all count as the same (`clamp_len`). Default: None, no
            limit.
    """

    vocabulary_size: int = 32000
    pad_id: int = 5
    max_distance: int | None = None

    model_type: typing.ClassVar = "xlnet"
    family: typing.ClassVar = "XLNet"
    named_sizes: typing.ClassVar = {
        # Of the shape of bert_tiny; no model of this size was published.
        "xlnet_tiny": (2, 128, 2),
        "xlnet_base": (12, 768, 12),
        "xlnet_large": (24, 1024, 16),
    }
    huggingface_keys: typing.ClassVar = (
        ("vocabulary_size", "vocab_size"),
        ("hidden_size", "d_model"),
        ("num_layers", "n_layer"),
        ("num_heads", "n_head"),
        ("intermediate_size", "d_inner"),
        ("hidden_dropout_rate", "dropout"),
        ("attention_dropout_rate", "dropout"),
        ("initializer_range", "initializer_range"),
    )
    activation_key: typing.ClassVar = "ff_activation"
    optional_keys: typing.ClassVar = (
        *EncoderConfig.optional_keys,
        ("max_length", "max_sequence_length"),  # ours: transformers has none, and refuses that of other families
    )
    fixed_values: typing.ClassVar = {
        "attn_type": "bi",
        "bi_data": False,
        "same_length": False,
        "untie_r": True,
        # How classifiers summarize a row.
        "summary_type": "last",
        "summary_use_proj": True,
        "summary_activation": "tanh",
    }
    pair_tasks: typing.ClassVar = ()
    has_position_table: typing.ClassVar = False
    head_has_transform: typing.ClassVar = False
    distance_products: typing.ClassVar = 1
    # `summary_last_dropout`; the encoder's own output is dropped at `hidden_dropout_rate`, also before other heads.
    classifier_dropout_rate: typing.ClassVar[float] = 0.1
    token_classifier_dropout_rate: typing.ClassVar[float] = 0.0

    @classmethod
    def from_dict(cls, fields):
        """Returns the configuration of a dict of all fields, as `to_dict` returns it."""
        # Earlier versions also wrote the lengths of a memory.
        return super().from_dict({name: fields[name] for name in set(fields) - {"memory_length", "reused_length"}})

    @classmethod
    def from_content(cls, path, found):
        """As EncoderConfig. Raises: ValueError also for heads of another width than d_model / n_head."""
        config = super().from_content(path, found)
        width = config.hidden_size // config.num_heads
        check_setting(path, "d_head", found.get("d_head") or width, width)
        reach = found.get("clamp_len") or -1
        return dataclasses.replace(config, max_distance=reach if reach > 0 else None)

    def to_huggingface(self):
        return {**super().to_huggingface(), "clamp_len": self.max_distance or -1}


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class DistanceSinusoids(ConfiguredLayer):
    """Sine and cosine of the distances from keys to queries (Dai et al. 2019, "Transformer-XL", section 3.3).

    Args:
        max_distance: distance from which on, on either side, all count as the same; None for no limit.

    Input:  (batch, length, width); only its shape is read.
    Output: (1, 2 * length - 1, width) for the distances length - 1, ..., 0, ..., 1 - length, the query's position minus
            the key's. The first half of the columns are sines.
    """

    def __init__(self, max_distance=None, **kwargs):
        super().__init__(**kwargs)
        self.max_distance = max_distance

    def build(self, input_shape):
        width = input_shape[-1]
        # As numbers: torch's compiler takes no array of NumPy.
        self.frequencies = tuple((1 / 10000 ** (np.arange(0, width, 2, dtype="float32") / width)).tolist())

    def call(self, inputs):
        length = ops.shape(inputs)[1]
        distances = ops.cast(length - 1 - ops.arange(2 * length - 1, dtype="int32"), "float32")
        if self.max_distance is not None:
            distances = ops.clip(distances, -self.max_distance, self.max_distance)
        # In float32: bfloat16 has no numbers between 256 and 258.
        angles = ops.expand_dims(distances, 1) * ops.convert_to_tensor(self.frequencies, "float32")
        sinusoids = ops.concatenate([ops.sin(angles), ops.cos(angles)], axis=-1)
        return ops.cast(ops.expand_dims(sinusoids, 0), self.compute_dtype)

    def compute_output_spec(self, inputs):
        count = inputs.shape[1] and 2 * inputs.shape[1] - 1
        return keras.KerasTensor((1, count, inputs.shape[-1]), dtype=self.compute_dtype)


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class QueryStart(ConfiguredLayer):
    """The one vector that all queries of the second stream start from (Yang et al. 2019, section 2.3).

    An encoder without a second stream also has it, since every checkpoint does, but does not train it.

    Input:  embeddings (batch, length, width); optionally places (batch, predictions), int, of which only the shape is
            read.
    Output: the embeddings, followed by the vector once for each prediction: (batch, length + predictions, width).
    """

    def __init__(self, initializer="glorot_uniform", **kwargs):
        super().__init__(**kwargs)
        self.initializer = keras.initializers.get(initializer)

    def build(self, embeddings_shape, places_shape=None):
        self.vector = self.add_weight(
            name="embeddings", shape=(1, 1, embeddings_shape[-1]), initializer=self.initializer
        )

    def call(self, embeddings, places=None):
        if places is None:
            return embeddings
        starts = ops.cast(ops.expand_dims(ops.zeros_like(places), -1), embeddings.dtype) + self.vector
        return ops.concatenate([embeddings, starts], axis=1)

    def compute_output_spec(self, embeddings, places=None):
        batch, length, width = embeddings.shape
        if places is not None:
            length = length and places.shape[1] and length + places.shape[1]
        return keras.KerasTensor((batch, length, width), dtype=self.compute_dtype)


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class SegmentedDistanceAttention(MultiHeadSelfAttention):
    """Self-attention by content, by relative position, and by whether query and key have the same segment (Yang et al.
    2019, sections 2.4 and 2.5; Dai et al. 2019, section 3.3).

    A query's product with a key has three terms: with the key's content, with its distance, and with one of two vectors
    for segments. In each, a vector of its own is added to the query. All are divided by the square root of a head's
    width.

    Arguments are those of MultiHeadSelfAttention, without use_bias and output_initializer.

    Input:  (batch, length, width), or (batch, length + predictions, width) with the second stream's queries at the end,
            to which nothing attends. `attention_mask`, bool, broadcastable to (batch, heads, queries, keys), where only
            the tokens are keys; `positions` (1, distances, width), the output of DistanceSinusoids; `same_segment`
            (batch, queries, keys), bool; with a second stream `places` (batch, predictions), int, the positions of its
            queries, -1 for padding.
    Output: as for MultiHeadSelfAttention, for all queries.
    """

    def __init__(self, num_heads, dropout_rate=0.0, initializer="glorot_uniform", **kwargs):
        super().__init__(num_heads, dropout_rate, initializer, **{**kwargs, "use_bias": False})

    def build(self, inputs_shape):
        super().build(inputs_shape)
        width = inputs_shape[-1]
        self.distance_key = split_dense(self, inputs_shape, width, "distance_key", BY_COLUMNS, self.initializer)
        self.content_bias, self.position_bias, self.segment_bias = (
            self.add_weight(name=name, shape=(width,), initializer=self.initializer.clone())
            for name in ("content_bias", "position_bias", "segment_bias")
        )
        # The first for keys of the query's own segment, the second for all others.
        self.segments = self.add_weight(name="segments", shape=(2, width), initializer=self.initializer.clone())

    def call(
        self,
        inputs,
        attention_mask=None,
        positions=None,
        same_segment=None,
        places=None,
        training=False,
        return_probabilities=False,
    ):
        return super().call(
            inputs,
            attention_mask,
            positions=(self.distance_key(positions)[0], same_segment, places),
            training=training,
            return_probabilities=return_probabilities,
        )

    def attention_inputs(self, contents, positions, training, bias=None, **fields):
        distant, same_segment, places = positions
        query, key, value = ops.split(contents, 3, axis=-1)
        scale = (query.shape[-1] // self.num_heads) ** -0.5
        if places is not None:
            length = ops.shape(key)[1] - ops.shape(places)[1]
            key, value = key[:, :length], value[:, :length]
        at_places = self._of_positions(add_bias(query, self.position_bias) * scale, distant, places)
        of_segments = self._products(add_bias(query, self.segment_bias) * scale, self.segments)
        is_same = ops.expand_dims(same_segment, 1)  # (batch, 1, queries, keys)
        of_pairs = at_places + ops.where(is_same, of_segments[..., :1], of_segments[..., 1:])
        query = add_bias(query, self.content_bias)
        return attention.AttentionInputs(query, key, value, self.num_heads, bias=of_pairs, **fields)

    def _of_positions(self, query, distant, places):
        """Returns the products of queries with the distances of keys, (batch, heads, queries, keys)."""
        if places is None:
            return at_distances(self._products(query, distant))
        length = ops.shape(query)[1] - ops.shape(places)[1]
        content, further = query[:, :length], query[:, length:]
        # The second stream's queries are put at their positions, and gathered again, by products, whose gradients are
        # products. Those of padding, at -1, are nowhere.
        one_hot = ops.cast(ops.expand_dims(places, -1) == ops.arange(length, dtype=places.dtype), query.dtype)
        placed = exact_product(ops.swapaxes(one_hot, 1, 2), further)  # (batch, length, width)
        found = at_distances(self._products(placed, distant))  # (batch, heads, length, keys)
        found = exact_product(ops.expand_dims(one_hot, 1), found)
        return ops.concatenate([at_distances(self._products(content, distant)), found], axis=2)

    def _products(self, query, vectors):
        """Returns the products of queries (batch, queries, width) with vectors (count, width), by heads: (batch, heads,
        queries, count)."""
        heads = (self.num_heads, query.shape[-1] // self.num_heads)
        query = ops.reshape(query, (-1, ops.shape(query)[1], *heads))
        return ops.einsum("bihd,mhd->bhim", query, ops.reshape(ops.convert_to_tensor(vectors), (-1, *heads)))


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class XLNetEncoder(FamilyEncoder):
    """Turns token IDs into vectors with XLNet (Yang et al. 2019), as a functional Keras model.

    Differences from BERT: positions are distances between tokens, as sinusoids; there may be any number of segments,
    since attention only depends on whether two tokens have the same one; the embeddings are not normalized; a sequence
    ends in <cls> (`A <sep> <cls>`), whose vector stands for the sequence; and classifiers have a dense tanh layer of
    their own. Words are predicted by a second stream of queries, which know the position of a word but not the word: in
    a random order (`Pretrainer(encoder, permuted={})`), or each without the others (`MaskedLM`).

    Padding may be on either side, with the same vectors; transformers needs it on the left. Unlike there and in
    Google's code, there is no dropout inside the feed-forward layer. Arguments and errors are those of BertEncoder.

    Input:  dict of `token_ids`, `segment_ids`, `padding_mask`, each int32 (batch, length).
    Output: dict of `sequence_output` (batch, length, hidden_size), and the optional outputs of BertEncoder.
    """

    config_class = XLNetConfig
    pooler_activation = "tanh"
    cls_is_last = True
    tokens_of_predictions = (1, 1)
    permuted_arguments = ("seed",)

    @staticmethod
    def connect(inputs, parts):
        config = parts.config
        embeddings = parts.token_embedding(config.hidden_size)(inputs["token_ids"])
        start = QueryStart(parts.initializer.clone(), trainable=False, dtype=parts.policy, name="query_start")
        hidden = parts.dropout("embeddings_dropout")(start(embeddings))
        distances = DistanceSinusoids(config.max_distance, dtype=parts.policy, name="distances")(embeddings)
        # As in Google's code, padding attends to itself, so that its outputs are those of transformers.
        mask = AttentionMask(sees_itself=True, name="attention_mask")(
            inputs["padding_mask"], sequence_ids=inputs.get("sequence_ids")
        )
        segments = inputs["segment_ids"]
        context = {
            "attention_mask": mask,
            "positions": parts.dropout("distances_dropout")(distances),
            "same_segment": ops.equal(ops.expand_dims(segments, 2), ops.expand_dims(segments, 1)),
        }

        def block(number):
            return parts.block_with(number, SegmentedDistanceAttention)

        connected = parts.apply_layers(hidden, context, block)
        *hidden_states, final = connected.hidden_states
        return connected._replace(hidden_states=[*hidden_states, parts.dropout("output_dropout")(final)])

    def pooled(self, outputs, rows):
        last = LastToken(dtype=self.dtype_policy, name="cls_vector")
        return self.pool(last(outputs["sequence_output"], rows["padding_mask"]))

    def masked_states(self, rows, mask_positions):
        return self._second_stream(rows, mask_positions, permuted=False)

    def permuted_states(self, rows, mask_positions, seed=None):
        return self._second_stream(rows, mask_positions, permuted=True, seed=seed)

    def _second_stream(self, rows, mask_positions, **options):
        """Returns the states of the tokens, followed by those of the queries that predict words (sections 2.2 to 2.4),
        (batch, length + predictions, hidden_size), and the positions of the queries in these, (batch, predictions);
        `options` are those of a QueryStream."""
        found = QueryStream(**options, name="query_stream")(
            mask_positions, rows["padding_mask"], rows["segment_ids"], sequence_ids=rows.get("sequence_ids")
        )
        embeddings, start = self.token_embedding(rows["token_ids"]), self.get_layer("query_start")
        start.trainable = True
        hidden = self.get_layer("embeddings_dropout")(start(embeddings, found["places"]))
        context = {
            "attention_mask": found["attention_mask"],
            "positions": self.get_layer("distances_dropout")(self.get_layer("distances")(embeddings)),
            "same_segment": found["same_segment"],
            "places": found["places"],
        }
        for number in self.config.schedule:
            hidden = self.get_layer(f"block_{number}")(hidden, **context)
        return self.get_layer("output_dropout")(hidden), found["query_places"]


def block_rows(config):
    """The rows of a block, in whose tensors the columns of kernels are divided into heads."""
    heads, width = config.num_heads, config.hidden_size
    by_heads = (heads, width // heads)
    fused = Transform(
        lambda theirs: np.concatenate([kernel.reshape(width, width) for kernel in theirs], axis=1),
        lambda ours: [kernel.reshape(width, *by_heads) for kernel in np.split(ours, 3, axis=1)],
    )
    kernel = Transform(lambda theirs: theirs[0].reshape(width, width), lambda ours: [ours.reshape(width, *by_heads)])
    output = Transform(
        lambda theirs: theirs[0].reshape(width, width).T, lambda ours: [ours.T.reshape(width, *by_heads)]
    )
    vector = Transform(lambda theirs: theirs[0].reshape(width), lambda ours: [ours.reshape(by_heads)])
    segments = Transform(lambda theirs: theirs[0].reshape(2, width), lambda ours: [ours.reshape(2, *by_heads)])
    return (
        ("attention/query_key_value/kernel", tuple(f"rel_attn.{name}" for name in "qkv"), fused),
        ("attention/distance_key/kernel", ("rel_attn.r",), kernel),
        ("attention/output/kernel", ("rel_attn.o",), output),
        ("attention/content_bias", ("rel_attn.r_w_bias",), vector),
        ("attention/position_bias", ("rel_attn.r_r_bias",), vector),
        ("attention/segment_bias", ("rel_attn.r_s_bias",), vector),
        ("attention/segments", ("rel_attn.seg_embed",), segments),
        *norm_rows("attention_norm", "rel_attn.layer_norm"),
        *dense_rows("intermediate", "ff.layer_1"),
        *dense_rows("output", "ff.layer_2"),
        *norm_rows("output_norm", "ff.layer_norm"),
    )


OF_TEXTS = (("classifier.", "logits_proj."),)
FAMILY = Family(
    encoder_class=XLNetEncoder,
    prefix="transformer.",
    bare_beginnings=("word_embedding.", "mask_emb", "layer."),
    embedding_rows=(
        ("token_embedding/embeddings", ("transformer.word_embedding.weight",), SAME),
        ("query_start/embeddings", ("transformer.mask_emb",), SAME),
    ),
    block="transformer.layer.{}.",
    block_rows=block_rows,
    head_rows=(
        *dense_rows("pooler", "sequence_summary.summary"),
        ("masked_lm_head/output_bias", ("lm_loss.bias",), SAME),
        *COMMON_HEAD_ROWS,
    ),
    redundant=("lm_loss.weight",),
    tasks=COMMON_TASKS,
    dropout_key="summary_last_dropout",
    token_dropout_key="token_classif_dropout",  # a field of our own: transformers has no other than the encoder's
    names_by_task={"ForSequenceClassification": OF_TEXTS, "ForMultipleChoice": OF_TEXTS},
    class_ends={"ForMaskedLM": "LMHeadModel", "ForQuestionAnswering": "ForQuestionAnsweringSimple"},
)
