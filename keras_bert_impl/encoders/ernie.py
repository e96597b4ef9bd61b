"""ERNIE's encoder."""

import keras

from keras_bert_impl.configurations.ernie import ErnieConfig
from keras_bert_impl.encoders.blocks import (
    encoder_outputs,
    normalized,
    summed_embeddings,
    tanh_pooler,
    through_blocks,
)
from keras_bert_impl.encoders.encoder import Encoder, check_options, encoder_inputs
from keras_bert_impl.encoders.initialization import kernel_initializer
from keras_bert_impl.layers import AttentionMask, SegmentEmbedding


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

        hidden = summed_embeddings(inputs, config, config.hidden_size, initializer, policy)
        if config.has_task_embedding:
            # A table of a few rows, as that of the segments.
            tasks = SegmentEmbedding(
                config.hidden_size, config.num_tasks, initializer.clone(), dtype=policy, name="task_embedding"
            )
            hidden = hidden + tasks(keras.ops.zeros_like(inputs["segment_ids"]))
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
