"""BERT's encoder: token ids to contextual vectors."""

import keras

from keras_bert_impl.configurations.bert import BertConfig
from keras_bert_impl.encoders.encoder import Encoder, check_options, encoder_inputs
from keras_bert_impl.encoders.initialization import kernel_initializer
from keras_bert_impl.layers import (
    AttentionMask,
    Dropout,
    LastToken,
    PositionEmbedding,
    SegmentEmbedding,
    TransformerEncoderBlock,
)


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class BertEncoder(Encoder):
    """The transformer encoder of Devlin et al. 2019, as a functional model.

    Args:
        config: a BertConfig.
        packed: whether rows may hold several sequences; adds the inputs `position_ids` and `sequence_ids`.
        return_hidden_states: adds the output `hidden_states`, (batch, layers + 1, length, hidden_size), the
            embeddings first.
        return_attention: adds the output `attention_probabilities`, (batch, layers, heads, length, length).
        rematerialize: whether training computes each block a second time for its gradients, instead of keeping its
            activations in memory (gradient checkpointing).
        dtype: dtype policy of all layers, for example "mixed_bfloat16"; default is Keras' global policy.

    Input:  dict of `token_ids`, `segment_ids`, `padding_mask`, each int32 (batch, length).
    Output: dict of `sequence_output` (batch, length, hidden_size) and `pooled_output` (batch, hidden_size):
            a dense tanh layer over the first token, as in Google's code; over the last one of a row that is read from
            left to right, whose first token sees no other.
    Raises: ValueError for a row longer than `config.max_length`, and for both `rematerialize` and `return_attention`.
    """

    config_class = BertConfig

    def __init__(
        self,
        config,
        packed=False,
        return_hidden_states=False,
        return_attention=False,
        rematerialize=False,
        dtype=None,
        name="bert_encoder",
        trainable=True,
    ):
        check_options(rematerialize, return_attention)
        policy = keras.dtype_policies.get(dtype)
        inputs = encoder_inputs(packed)
        initializer = kernel_initializer(config)

        token_embedding = keras.layers.ReversibleEmbedding(
            config.vocabulary_size,
            config.hidden_size,
            embeddings_initializer=kernel_initializer(config, "token_embedding/embeddings"),
            dtype=policy,
            name="token_embedding",
        )
        hidden = token_embedding(inputs["token_ids"])  # (batch, length, hidden_size)
        positions = PositionEmbedding(config.max_length, initializer.clone(), dtype=policy, name="position_embedding")
        position_rows = positions(hidden, position_ids=inputs.get("position_ids"))
        segment_rows = SegmentEmbedding(
            config.hidden_size, config.num_segments, initializer.clone(), dtype=policy, name="segment_embedding"
        )(inputs["segment_ids"])
        hidden = keras.layers.Add(dtype=policy, name="embeddings")([hidden, segment_rows]) + position_rows
        hidden = keras.layers.LayerNormalization(
            epsilon=config.layer_norm_epsilon, dtype=policy, name="embeddings_norm"
        )(hidden)
        hidden = Dropout(config.hidden_dropout_rate, dtype=policy, name="embeddings_dropout")(hidden)
        sequence_ids = inputs.get("sequence_ids")
        mask = AttentionMask(config.direction, name="attention_mask")(inputs["padding_mask"], sequence_ids=sequence_ids)
        # Kernels that read the numbers instead of the mask know no direction.
        sequence_ids = sequence_ids if config.direction == "both" else None

        hidden_states, attention = [hidden], []
        for index in range(config.num_layers):
            block = TransformerEncoderBlock(
                num_heads=config.num_heads,
                intermediate_size=config.intermediate_size,
                activation=config.activation,
                dropout_rate=config.hidden_dropout_rate,
                attention_dropout_rate=config.attention_dropout_rate,
                layer_norm_epsilon=config.layer_norm_epsilon,
                initializer=initializer.clone(),
                rematerialize=rematerialize,
                dtype=policy,
                name=f"block_{index}",
            )
            hidden = block(
                hidden,
                attention_mask=mask,
                sequence_ids=sequence_ids,
                return_probabilities=return_attention,
            )
            if return_attention:
                hidden, probabilities = hidden
                attention.append(probabilities)
            hidden_states.append(hidden)

        # Of a row that is read from left to right, only the last token sees all others.
        is_causal = config.direction == "left_to_right"
        whole = (
            LastToken(dtype=policy, name="last_token")(hidden, inputs["padding_mask"]) if is_causal else hidden[:, 0]
        )
        pooled = keras.layers.Dense(
            config.hidden_size, activation="tanh", kernel_initializer=initializer.clone(), dtype=policy, name="pooler"
        )(whole)
        outputs = {"sequence_output": hidden, "pooled_output": pooled}
        if return_hidden_states:
            outputs["hidden_states"] = keras.ops.stack(hidden_states, axis=1)  # (batch, layers + 1, length, width)
        if return_attention:
            outputs["attention_probabilities"] = keras.ops.stack(attention, axis=1)
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
