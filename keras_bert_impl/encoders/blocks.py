"""What encoders of several families have in common: embeddings and their norm, the blocks, and outputs by name."""

import keras

from keras_bert_impl.encoders.initialization import kernel_initializer
from keras_bert_impl.layers import Dropout, PositionEmbedding, SegmentEmbedding, TransformerEncoderBlock


def summed_embeddings(inputs, config, width, initializer, policy):
    """BERT's sum of the embeddings of tokens, segments and positions, (batch, length, width)."""
    token_embedding = keras.layers.ReversibleEmbedding(
        config.vocabulary_size,
        width,
        embeddings_initializer=kernel_initializer(config, "token_embedding/embeddings"),
        dtype=policy,
        name="token_embedding",
    )
    hidden = token_embedding(inputs["token_ids"])
    positions = PositionEmbedding(config.max_length, initializer.clone(), dtype=policy, name="position_embedding")
    position_rows = positions(hidden, position_ids=inputs.get("position_ids"))
    segment_rows = SegmentEmbedding(
        width, config.num_segments, initializer.clone(), dtype=policy, name="segment_embedding"
    )(inputs["segment_ids"])
    return keras.layers.Add(dtype=policy, name="embeddings")([hidden, segment_rows]) + position_rows


def normalized(embeddings, config, policy):
    """The sum of the embeddings (batch, length, width) after layer norm and dropout."""
    norm = keras.layers.LayerNormalization(epsilon=config.layer_norm_epsilon, dtype=policy, name="embeddings_norm")
    return Dropout(config.hidden_dropout_rate, dtype=policy, name="embeddings_dropout")(norm(embeddings))


def through_blocks(hidden, mask, sequence_ids, config, initializer, policy, rematerialize, return_attention):
    """The embeddings (batch, length, hidden_size) and the output of every layer, as a list, and the attention
    probabilities of every layer, (batch, heads, length, length), as a list that is empty unless `return_attention`.

    Args:
        hidden: the embeddings.
        mask: the output of AttentionMask.
        sequence_ids: of packed rows, otherwise None.
        config: of the encoder.
        initializer: of which every block gets a clone.
        policy: the dtype policy.
        rematerialize: as that of BertEncoder.
        return_attention: as that of BertEncoder.
    """
    blocks, hidden_states, attention = {}, [hidden], []
    for number in config.schedule:
        if number not in blocks:
            blocks[number] = TransformerEncoderBlock(
                num_heads=config.num_heads,
                intermediate_size=config.intermediate_size,
                activation=config.activation,
                dropout_rate=config.hidden_dropout_rate,
                attention_dropout_rate=config.attention_dropout_rate,
                layer_norm_epsilon=config.layer_norm_epsilon,
                initializer=initializer.clone(),
                rematerialize=rematerialize,
                dtype=policy,
                name=f"block_{number}",
            )
        hidden = blocks[number](
            hidden, attention_mask=mask, sequence_ids=sequence_ids, return_probabilities=return_attention
        )
        if return_attention:
            hidden, probabilities = hidden
            attention.append(probabilities)
        hidden_states.append(hidden)
    return hidden_states, attention


def tanh_pooler(first, config, initializer, policy):
    """The vector of a row from that of its first token (batch, hidden_size): a dense tanh layer, as Google's code."""
    return keras.layers.Dense(
        config.hidden_size, activation="tanh", kernel_initializer=initializer.clone(), dtype=policy, name="pooler"
    )(first)


def encoder_outputs(hidden_states, attention, return_hidden_states, **pooled):
    """The outputs of an encoder by name: `sequence_output`, those in `pooled`, and what is asked for.

    Args:
        hidden_states: as `through_blocks` returns them.
        attention: as `through_blocks` returns it.
        return_hidden_states: whether `hidden_states` is one of the outputs.
        pooled: the vectors of whole rows by name, if the family has any.
    """
    outputs = {"sequence_output": hidden_states[-1], **pooled}
    if return_hidden_states:
        outputs["hidden_states"] = keras.ops.stack(hidden_states, axis=1)  # (batch, layers + 1, length, width)
    if attention:
        outputs["attention_probabilities"] = keras.ops.stack(attention, axis=1)
    return outputs
