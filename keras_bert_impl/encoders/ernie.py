"""ERNIE's encoder."""

import keras

from keras_bert_impl.configurations.ernie import ErnieConfig
from keras_bert_impl.encoders.encoder import Encoder, check_options, encoder_inputs
from keras_bert_impl.encoders.initialization import kernel_initializer
from keras_bert_impl.layers import (
    AttentionMask,
    Dropout,
    PositionEmbedding,
    SegmentEmbedding,
    TransformerEncoderBlock,
)


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class ErnieEncoder(Encoder):
    """The encoder of Sun et al. 2019 ("ERNIE: Enhanced Representation through Knowledge Integration"), as a functional
    model.

    It differs from BERT in what it learns from: phrases and entities are masked whole, see `masking.mask_tokens`. The
    published one has relu. Later versions add a learned vector of the pre-training task to the embeddings; here it is
    always that of task 0.

    Arguments, inputs, outputs and errors are those of BertEncoder.
    """

    config_class = ErnieConfig

    def __init__(
        self,
        config,
        packed=False,
        return_hidden_states=False,
        return_attention=False,
        rematerialize=False,
        dtype=None,
        name="ernie_encoder",
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
        if config.has_task_embedding:
            # A table of a few rows, as that of the segments.
            tasks = SegmentEmbedding(
                config.hidden_size, config.num_tasks, initializer.clone(), dtype=policy, name="task_embedding"
            )
            hidden = hidden + tasks(keras.ops.zeros_like(inputs["segment_ids"]))
        hidden = keras.layers.LayerNormalization(
            epsilon=config.layer_norm_epsilon, dtype=policy, name="embeddings_norm"
        )(hidden)
        hidden = Dropout(config.hidden_dropout_rate, dtype=policy, name="embeddings_dropout")(hidden)
        mask = AttentionMask(name="attention_mask")(inputs["padding_mask"], sequence_ids=inputs.get("sequence_ids"))

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
                sequence_ids=inputs.get("sequence_ids"),
                return_probabilities=return_attention,
            )
            if return_attention:
                hidden, probabilities = hidden
                attention.append(probabilities)
            hidden_states.append(hidden)

        pooled = keras.layers.Dense(
            config.hidden_size, activation="tanh", kernel_initializer=initializer.clone(), dtype=policy, name="pooler"
        )(hidden[:, 0])
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
