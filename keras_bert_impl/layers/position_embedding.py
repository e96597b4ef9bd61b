"""Learned absolute positions."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class PositionEmbedding(keras.layers.Layer):
    """Learned embedding of absolute positions (Devlin et al. 2019, figure 2).

    Position i receives embedding i of a trained table, whatever the token is.

    Args:
        max_length (int): number of embeddings, hence the largest number of tokens. BERT: 512.
        initializer (str or keras.initializers.Initializer, optional): initializer of the table; BERT's is a truncated
            normal of standard deviation 0.02. Default: "glorot_uniform".

    Input:  (batch, length, width), any float type; only its shape is read. Optionally `position_ids` (batch, length),
            int, for packing.
    Output: (length, width), to be added by broadcasting; (batch, length, width) with `position_ids`.
    Raises: ValueError if the length is known and exceeds max_length.
    """

    def __init__(self, max_length, initializer="glorot_uniform", **kwargs):
        super().__init__(**kwargs)
        self.max_length = int(max_length)
        self.initializer = keras.initializers.get(initializer)

    def build(self, inputs_shape, position_ids_shape=None):
        # No autocast: the gradient of a gather adds up what all tokens of a row of the table receive, thousands in a
        # large batch, of which bfloat16 would lose most.
        self.table = self.add_weight(
            name="embeddings",
            shape=(self.max_length, inputs_shape[-1]),
            initializer=self.initializer,
            autocast=False,
        )

    def call(self, inputs, position_ids=None):
        check_length(inputs.shape[1], self.max_length)
        table = ops.convert_to_tensor(self.table)
        if position_ids is not None:
            return ops.cast(ops.take(table, position_ids, axis=0), self.compute_dtype)  # (batch, length, width)
        return ops.cast(table[: ops.shape(inputs)[1]], self.compute_dtype)  # (length, width)

    def compute_output_shape(self, inputs_shape, position_ids_shape=None):
        if position_ids_shape is not None:
            return (*position_ids_shape, inputs_shape[-1])
        return tuple(inputs_shape[1:])

    def get_config(self):
        return {
            **super().get_config(),
            "max_length": self.max_length,
            "initializer": keras.initializers.serialize(self.initializer),
        }


def check_length(length, max_length):
    """Raises ValueError if the length is known and exceeds max_length."""
    if length is not None and length > max_length:
        raise ValueError(
            f"A sequence of {length} tokens is longer than the model's max_length {max_length}: truncate it, or build "
            "the model with a larger max_length."
        )
