"""DistilBERT's encoder."""

import keras

from keras_bert_impl.configurations.distilbert import DistilBertConfig
from keras_bert_impl.encoders.blocks import encoder_outputs, normalized, through_blocks
from keras_bert_impl.encoders.encoder import Encoder, check_options, encoder_inputs
from keras_bert_impl.encoders.initialization import kernel_initializer
from keras_bert_impl.layers import AttentionMask, PositionEmbedding


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
        hidden = normalized(hidden, config, policy)
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
        return keras.layers.Dense(
            self.config.hidden_size,
            activation="relu",
            kernel_initializer=kernel_initializer(self.config),
            dtype=self.dtype_policy,
            name="pooler",
        )(vectors)
