"""Replaces tokens at given positions."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class ReplaceTokens(keras.layers.Layer):
    """Replaces the tokens at the masked positions of sequences (Clark et al. 2020, section 3.1: REPLACE).

    Positions that are 0 are padding: a sequence begins with [CLS], which is never masked.

    Input:  token_ids (batch, length), int; mask_positions (batch, predictions), int; new_ids of the same shape.
    Output: (batch, length), int.
    """

    def call(self, token_ids, mask_positions, new_ids):
        columns = ops.arange(ops.shape(token_ids)[1], dtype=mask_positions.dtype)
        is_here = ops.equal(ops.expand_dims(mask_positions, -1), columns)  # (batch, predictions, length)
        is_here = ops.logical_and(is_here, ops.greater(columns, 0))
        placed = ops.where(is_here, ops.expand_dims(ops.cast(new_ids, token_ids.dtype), -1), 0)
        # Positions of a row are distinct: at most one of the summands is not 0.
        placed = ops.cast(ops.sum(placed, axis=1), token_ids.dtype)  # (batch, length)
        return ops.where(ops.any(is_here, axis=1), placed, token_ids)

    def compute_output_spec(self, token_ids, mask_positions, new_ids):
        return keras.KerasTensor(token_ids.shape, dtype=token_ids.dtype)
