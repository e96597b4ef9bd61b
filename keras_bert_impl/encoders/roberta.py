"""RoBERTa's encoder."""

import keras

from keras_bert_impl.configurations.roberta import RobertaConfig, XLMRobertaConfig
from keras_bert_impl.encoders.encoder import Encoder, check_options, encoder_inputs
from keras_bert_impl.encoders.initialization import kernel_initializer
from keras_bert_impl.layers import (
    AttentionMask,
    Dropout,
    PaddingAwarePositions,
    SegmentEmbedding,
    TransformerEncoderBlock,
)


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class RobertaEncoder(Encoder):
    """The encoder of Liu et al. 2019, as a functional model.

    Differences from BERT: it learns masked words alone, from full sentences, masked anew in every epoch; its tokens are
    bytes merged by their frequency; positions are counted over the tokens that are not padding, from pad_id + 1 on;
    there is one segment, so that only separators stand between the texts of a pair; and the epsilon of its norms is
    1e-5. Its classifiers have a dense tanh layer of their own, which has the place of the pooler here.

    Arguments and errors are those of BertEncoder.

    Input:  dict of `token_ids`, `segment_ids`, `padding_mask`, each int32 (batch, length). With one segment
            `segment_ids` are ignored: they are an input so that every family takes the same rows.
    Output: dict of `sequence_output` (batch, length, hidden_size) and `pooled_output` (batch, hidden_size), and the
            optional outputs of BertEncoder.
    """

    config_class = RobertaConfig

    def __init__(
        self,
        config,
        packed=False,
        return_hidden_states=False,
        return_attention=False,
        rematerialize=False,
        dtype=None,
        name="roberta_encoder",
        trainable=True,
    ):
        check_options(rematerialize, return_attention)
        policy = keras.dtype_policies.get(dtype)
        inputs = encoder_inputs(packed)
        initializer = kernel_initializer(config)

        hidden = keras.layers.ReversibleEmbedding(
            config.vocabulary_size,
            config.hidden_size,
            embeddings_initializer=kernel_initializer(config, "token_embedding/embeddings"),
            dtype=policy,
            name="token_embedding",
        )(inputs["token_ids"])  # (batch, length, hidden_size)
        position_rows = PaddingAwarePositions(
            config.max_length,
            config.hidden_size,
            config.pad_id,
            initializer.clone(),
            dtype=policy,
            name="position_embedding",
        )(inputs["padding_mask"], position_ids=inputs.get("position_ids"))
        # A segment that the table does not have is the last one that it has.
        segment_ids = keras.ops.minimum(inputs["segment_ids"], config.num_segments - 1)
        segment_rows = SegmentEmbedding(
            config.hidden_size, config.num_segments, initializer.clone(), dtype=policy, name="segment_embedding"
        )(segment_ids)
        hidden = keras.layers.Add(dtype=policy, name="embeddings")([hidden, segment_rows]) + position_rows
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


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class XLMRobertaEncoder(RobertaEncoder):
    """The encoder of Conneau et al. 2020: RoBERTa's, over a SentencePiece vocabulary of a hundred languages."""

    config_class = XLMRobertaConfig
