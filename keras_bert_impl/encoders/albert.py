"""ALBERT's encoder."""

import keras

from keras_bert_impl.configurations.albert import AlbertConfig
from keras_bert_impl.encoders.blocks import (
    encoder_outputs,
    normalized,
    summed_embeddings,
    tanh_pooler,
    through_blocks,
)
from keras_bert_impl.encoders.encoder import Encoder, check_options, encoder_inputs
from keras_bert_impl.encoders.initialization import kernel_initializer
from keras_bert_impl.layers import AttentionMask


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class AlbertEncoder(Encoder):
    """The encoder of Lan et al. 2020, as a functional model.

    Differences from BERT: embeddings are narrow, 128 columns, and a dense layer projects them to the width of the
    blocks; all layers share one block's weights, or those of a few groups; of two segments it learns which is the
    first one, instead of whether they belong together; n-grams are masked; and its tokens come from SentencePiece.
    Arguments and errors are those of BertEncoder.

    Input:  dict of `token_ids`, `segment_ids`, `padding_mask`, each int32 (batch, length).
    Output: dict of `sequence_output` (batch, length, hidden_size) and `pooled_output` (batch, hidden_size), and the
            optional outputs of BertEncoder, which count layers, not blocks.
    """

    config_class = AlbertConfig

    def __init__(
        self,
        config,
        packed=False,
        return_hidden_states=False,
        return_attention=False,
        rematerialize=False,
        dtype=None,
        name="albert_encoder",
        trainable=True,
    ):
        check_options(rematerialize, return_attention)
        policy = keras.dtype_policies.get(dtype)
        inputs = encoder_inputs(packed)
        initializer = kernel_initializer(config)

        hidden = summed_embeddings(inputs, config, config.embedding_size, initializer, policy)
        hidden = normalized(hidden, config, policy)
        hidden = keras.layers.Dense(
            config.hidden_size, kernel_initializer=initializer.clone(), dtype=policy, name="embeddings_projection"
        )(hidden)  # (batch, length, hidden_size)
        mask = AttentionMask(name="attention_mask")(inputs["padding_mask"], sequence_ids=inputs.get("sequence_ids"))

        # A block that is called several times has the same weights each time. Like Google's code, and unlike
        # transformers', it has dropout after the feed-forward layer, too.
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
        # Not tracked by Keras, which would take tensors for a part of the model.
        object.__setattr__(self, "_block_outputs", tuple(hidden_states[1:]))

    def block_outputs(self):
        return list(self._block_outputs)  # a layer that is called several times has no single output
