"""BERT's encoder: token ids to contextual vectors."""

import keras

from keras_bert_impl.configurations.bert import BertConfig
from keras_bert_impl.encoders.blocks import (
    encoder_outputs,
    normalized,
    summed_embeddings,
    tanh_pooler,
    through_blocks,
)
from keras_bert_impl.encoders.encoder import Encoder, check_options, encoder_inputs
from keras_bert_impl.encoders.initialization import kernel_initializer
from keras_bert_impl.layers import AttentionMask, LastToken


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

        hidden = summed_embeddings(inputs, config, config.hidden_size, initializer, policy)
        hidden = normalized(hidden, config, policy)
        sequence_ids = inputs.get("sequence_ids")
        mask = AttentionMask(config.direction, name="attention_mask")(inputs["padding_mask"], sequence_ids=sequence_ids)
        # Kernels that read the numbers instead of the mask know no direction.
        sequence_ids = sequence_ids if config.direction == "both" else None

        hidden_states, attention = through_blocks(
            hidden, mask, sequence_ids, config, initializer, policy, rematerialize, return_attention
        )

        # Of a row that is read from left to right, only the last token sees all others.
        hidden, is_causal = hidden_states[-1], config.direction == "left_to_right"
        whole = (
            LastToken(dtype=policy, name="last_token")(hidden, inputs["padding_mask"]) if is_causal else hidden[:, 0]
        )
        pooled = tanh_pooler(whole, config, initializer, policy)
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
