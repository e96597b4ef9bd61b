"""Long rows read segment by segment, each with a memory of the states before it (Yang et al. 2019, section 2.5; Dai et
al. 2019, "Transformer-XL", section 3.2)."""

import keras
import numpy as np
from keras import ops

from keras_bert_impl import features


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class MemoryContext(keras.layers.Layer):
    """What tokens see behind a memory: all of it, and of their own segment what they would see alone.

    A memory counts as of the segment 0, as in the original code.

    Input:  memory (batch, layers, remembered, width); attention_mask, bool (batch, 1, length, length); segment_ids
            (batch, length), int.
    Output: dict of `attention_mask`, bool (batch, 1, length, remembered + length), and `same_segment`, bool (batch,
            length, remembered + length).
    """

    def call(self, memory, attention_mask, segment_ids):
        remembered = ops.cast(ops.zeros_like(memory[:, 0, :, 0]), segment_ids.dtype)  # (batch, remembered)
        of_keys = ops.expand_dims(ops.concatenate([remembered, segment_ids], axis=1), 1)
        length = ops.shape(segment_ids)[1]
        seen = ops.repeat(ops.expand_dims(ops.equal(remembered, 0), (1, 2)), length, axis=2)
        return {
            "attention_mask": ops.concatenate([seen, attention_mask], axis=3),
            "same_segment": ops.equal(ops.expand_dims(segment_ids, 2), of_keys),
        }

    def compute_output_spec(self, memory, attention_mask, segment_ids):
        (batch, length), remembered = segment_ids.shape, memory.shape[2]
        total = None if length is None or remembered is None else length + remembered
        return {
            "attention_mask": keras.KerasTensor((batch, 1, length, total), dtype="bool"),
            "same_segment": keras.KerasTensor((batch, length, total), dtype="bool"),
        }


def with_memory(encoder):
    """A model of an XLNetEncoder's own layers that also reads and gives a memory.

    Input:  dict of the encoder's three inputs and `memory` (batch, layers, remembered, hidden_size), the states that
            each layer read before, of any number of tokens, at first none. All of it is seen, padding, too.
    Output: dict of `sequence_output` (batch, length, hidden_size) and `memory`, that for the next segment: the last
            `config.memory_length` states, or all, of which a segment adds the first `config.reused_length`, or all.
    """
    config, policy = encoder.config, encoder.dtype_policy
    inputs = {name: keras.Input((None,), dtype="int32", name=name) for name in features.ENCODER_INPUTS}
    memory = keras.Input((config.depth, None, config.hidden_size), dtype=policy.compute_dtype, name="memory")
    embeddings = encoder.token_embedding(inputs["token_ids"])
    hidden = encoder.get_layer("embeddings_dropout")(embeddings)
    mask = encoder.get_layer("attention_mask")(inputs["padding_mask"])
    context = MemoryContext(name="memory_context")(memory, mask, inputs["segment_ids"])
    distances = encoder.get_layer("distances")(embeddings, memory=memory)
    context["positions"] = encoder.get_layer("distances_dropout")(distances)
    kept = []
    for place, number in enumerate(config.schedule):
        remembered = memory[:, place]
        states = ops.concatenate([remembered, hidden[:, : config.reused_length]], axis=1)
        kept.append(states if config.memory_length is None else states[:, -config.memory_length :])
        hidden = encoder.get_layer(f"block_{number}")(hidden, memory=remembered, **context)
    outputs = {"sequence_output": encoder.get_layer("output_dropout")(hidden), "memory": ops.stack(kept, axis=1)}
    return keras.Model({**inputs, "memory": memory}, outputs, name=f"{encoder.name}_with_memory")


def predict_segments(model, config, rows, segment_length, batch_size):
    """The states (batch, length, hidden_size), float32, of rows that the model of `with_memory` reads in segments."""
    rows = {name: np.asarray(rows[name]) for name in features.ENCODER_INPUTS}
    if segment_length < 1:
        raise ValueError(f"segment_length is {segment_length}, expected at least 1.")
    begins_late = (np.diff(rows["padding_mask"], axis=1) > 0).any(axis=1)
    if begins_late.any():
        raise ValueError(
            f"Row {np.argmax(begins_late)} has padding before its tokens, which the segments after it would remember "
            "as text: pad rows on the right."
        )
    states = []
    for first in range(0, len(rows["token_ids"]), batch_size):
        batch = {name: array[first : first + batch_size] for name, array in rows.items()}
        count, length = batch["token_ids"].shape
        memory, found = np.zeros((count, config.depth, 0, config.hidden_size), "float32"), []
        for start in range(0, length, segment_length):
            part = {name: array[:, start : start + segment_length] for name, array in batch.items()}
            outputs = model.predict_on_batch({**part, "memory": memory})
            memory = outputs["memory"]
            found.append(np.asarray(outputs["sequence_output"], "float32"))
        states.append(np.concatenate(found, axis=1))
    return np.concatenate(states)
