"""DistilBERT's encoder."""

import keras

from keras_bert_impl.configurations.distilbert import DistilBertConfig
from keras_bert_impl.encoders.encoder import Encoder, check_options, encoder_inputs
from keras_bert_impl.encoders.initialization import kernel_initializer
from keras_bert_impl.layers import AttentionMask, Dropout, PositionEmbedding, TransformerEncoderBlock


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class DistilBertEncoder(Encoder):
    """The encoder of Sanh et al. 2019, section 3, as a functional model.

    Differences from BERT: half as many layers; no segments, so that only [SEP] separates the texts of a pair; no
    pooler, instead of which classifiers have a dense ReLU layer of their own (Hugging Face's `pre_classifier`); and a
    dropout of 0.2 in classifiers (`seq_classif_dropout` in config.json). Arguments and errors are those of BertEncoder.

    Input:  dict of `token_ids`, `segment_ids`, `padding_mask`, each int32 (batch, length). `segment_ids` are ignored:
            they are an input so that every family takes the same rows.
    Output: dict of `sequence_output` (batch, length, hidden_size), and the optional outputs of BertEncoder.
    """

    config_class = DistilBertConfig

    def __init__(
        self,
        config,
        packed=False,
        return_hidden_states=False,
        return_attention=False,
        rematerialize=False,
        dtype=None,
        name="distilbert_encoder",
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
        positions = PositionEmbedding(config.max_length, initializer.clone(), dtype=policy, name="position_embedding")
        hidden = hidden + positions(hidden, position_ids=inputs.get("position_ids"))
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

        outputs = {"sequence_output": hidden}
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

    def pool(self, vectors):
        return keras.layers.Dense(
            self.config.hidden_size,
            activation="relu",
            kernel_initializer=kernel_initializer(self.config),
            dtype=self.dtype_policy,
            name="pooler",
        )(vectors)
