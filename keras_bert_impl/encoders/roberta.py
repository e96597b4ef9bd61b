"""RoBERTa's encoder."""

import keras

from keras_bert_impl.configurations.roberta import RobertaConfig, XLMRobertaConfig
from keras_bert_impl.encoders.blocks import encoder_outputs, normalized, tanh_pooler, through_blocks
from keras_bert_impl.encoders.encoder import Encoder, check_options, encoder_inputs
from keras_bert_impl.encoders.initialization import kernel_initializer
from keras_bert_impl.layers import AttentionMask, PaddingAwarePositions, SegmentEmbedding


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
        segment_rows = SegmentEmbedding(
            config.hidden_size, config.num_segments, initializer.clone(), dtype=policy, name="segment_embedding"
        )(inputs["segment_ids"])
        hidden = keras.layers.Add(dtype=policy, name="embeddings")([hidden, segment_rows]) + position_rows
        hidden = normalized(hidden, config, policy)
        mask = AttentionMask(name="attention_mask")(inputs["padding_mask"], sequence_ids=inputs.get("sequence_ids"))

        hidden_states, attention = through_blocks(
            hidden, mask, inputs.get("sequence_ids"), config, initializer, policy, rematerialize, return_attention
        )

        pooled = tanh_pooler(hidden_states[-1][:, 0], config, initializer, policy)
        outputs = encoder_outputs(hidden_states, attention, return_hidden_states, pooled_output=pooled)
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
