"""ELECTRA's encoder."""

import keras

from keras_bert_impl.configurations.electra import ElectraConfig
from keras_bert_impl.encoders.blocks import encoder_outputs, through_blocks
from keras_bert_impl.encoders.encoder import Encoder, check_options, encoder_inputs
from keras_bert_impl.encoders.initialization import kernel_initializer
from keras_bert_impl.kernels.gelu import activation_function
from keras_bert_impl.layers import AttentionMask, Dropout, PositionEmbedding, SegmentEmbedding

# What generator and discriminator share; the fields of their configurations must agree in these sizes.
EMBEDDING_LAYERS = ("token_embedding", "position_embedding", "segment_embedding", "embeddings_norm")
EMBEDDING_SIZES = ("vocabulary_size", "embedding_size", "max_length", "num_segments", "layer_norm_epsilon")


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class ElectraEncoder(Encoder):
    """The encoder of Clark et al. 2020, as a functional model.

    Differences from BERT: it learns which tokens a small generator has replaced, over all tokens (`ElectraPretrainer`);
    embeddings may be narrower or wider than the blocks, which a dense layer then projects; generator and discriminator
    share the embeddings; there is no pooler and no next sentence, instead of which classifiers have a dense GELU layer
    of their own. Arguments and errors are those of BertEncoder, and:

    Args:
        embeddings_of: another ElectraEncoder whose embedding layers, norm included, this one shares (section 3.2). It
            is not part of the configuration: a copy made from that has embeddings of its own.

    Input:  dict of `token_ids`, `segment_ids`, `padding_mask`, each int32 (batch, length).
    Output: dict of `sequence_output` (batch, length, hidden_size), and the optional outputs of BertEncoder.
    Raises: also ValueError if the embeddings of `embeddings_of` have other sizes.
    """

    config_class = ElectraConfig

    def __init__(
        self,
        config,
        packed=False,
        return_hidden_states=False,
        return_attention=False,
        rematerialize=False,
        dtype=None,
        name="electra_encoder",
        trainable=True,
        embeddings_of=None,
    ):
        check_options(rematerialize, return_attention)
        policy = keras.dtype_policies.get(dtype)
        inputs = encoder_inputs(packed)
        initializer = kernel_initializer(config)
        embeddings = (
            embedding_layers(config, initializer, policy) if embeddings_of is None else shared(embeddings_of, config)
        )

        hidden = embeddings["token_embedding"](inputs["token_ids"])  # (batch, length, embedding_size)
        position_rows = embeddings["position_embedding"](hidden, position_ids=inputs.get("position_ids"))
        segment_rows = embeddings["segment_embedding"](inputs["segment_ids"])
        hidden = keras.layers.Add(dtype=policy, name="embeddings")([hidden, segment_rows]) + position_rows
        hidden = embeddings["embeddings_norm"](hidden)
        hidden = Dropout(config.hidden_dropout_rate, dtype=policy, name="embeddings_dropout")(hidden)
        if config.embedding_size != config.hidden_size:
            hidden = keras.layers.Dense(
                config.hidden_size, kernel_initializer=initializer.clone(), dtype=policy, name="embeddings_projection"
            )(hidden)  # (batch, length, hidden_size)
        mask = AttentionMask(name="attention_mask")(inputs["padding_mask"], sequence_ids=inputs.get("sequence_ids"))

        hidden_states, attention = through_blocks(
            hidden, mask, inputs.get("sequence_ids"), config, initializer, policy, rematerialize, return_attention
        )

        outputs = encoder_outputs(hidden_states, attention, return_hidden_states)
        super().__init__(
            inputs,
            outputs,
            name,
            trainable,
            config=config,
            packed=packed,
            return_hidden_states=return_hidden_states,
            return_attention=return_attention,
            rematerialize=rematerialize,
            dtype=policy,
        )

    def pool(self, vectors):
        # transformers also drops units before this layer; Google's code, and all heads here, only after it.
        return keras.layers.Dense(
            self.config.hidden_size,
            activation=activation_function("gelu"),
            kernel_initializer=kernel_initializer(self.config),
            dtype=self.dtype_policy,
            name="pooler",
        )(vectors)


def embedding_layers(config, initializer, policy):
    """New embedding layers by name."""
    return {
        "token_embedding": keras.layers.ReversibleEmbedding(
            config.vocabulary_size,
            config.embedding_size,
            embeddings_initializer=kernel_initializer(config, "token_embedding/embeddings"),
            dtype=policy,
            name="token_embedding",
        ),
        "position_embedding": PositionEmbedding(
            config.max_length, initializer.clone(), dtype=policy, name="position_embedding"
        ),
        "segment_embedding": SegmentEmbedding(
            config.embedding_size, config.num_segments, initializer.clone(), dtype=policy, name="segment_embedding"
        ),
        "embeddings_norm": keras.layers.LayerNormalization(
            epsilon=config.layer_norm_epsilon, dtype=policy, name="embeddings_norm"
        ),
    }


def shared(encoder, config):
    """The embedding layers of another encoder by name. Raises ValueError if they do not fit the configuration."""
    for name in EMBEDDING_SIZES:
        theirs, ours = getattr(encoder.config, name), getattr(config, name)
        if theirs != ours:
            raise ValueError(f"Embeddings can be shared only between equal sizes: {name} is {theirs} and {ours}.")
    return {name: encoder.get_layer(name) for name in EMBEDDING_LAYERS}
