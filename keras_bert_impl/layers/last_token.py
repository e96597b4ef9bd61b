"""The vector of the last token of a row."""

import keras
from keras import ops

from keras_bert_impl.kernels.gather import gather


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class LastToken(keras.layers.Layer):
    """Returns the vector of the last token that is not padding, for models with left-to-right attention.

    Only this token attends to the whole sequence, so that GPT classifies by it (Radford et al. 2018, section 3.2).

    Input:  hidden (batch, length, width), and padding_mask (batch, length), int, 1 for tokens and 0 for padding.
    Output: (batch, width).
    """

    def call(self, hidden, padding_mask):
        return last_token(hidden, padding_mask)

    def compute_output_spec(self, hidden, padding_mask):
        return keras.KerasTensor((hidden.shape[0], hidden.shape[2]), dtype=self.compute_dtype)


def last_token(hidden, padding_mask):
    """Returns the vectors (batch, width) of the last tokens of sequences (batch, length, width), padded on either
    side."""
    places = ops.arange(ops.shape(padding_mask)[1], dtype="int32")
    last = ops.amax(ops.cast(padding_mask, "int32") * places, axis=1, keepdims=True)  # (batch, 1)
    # Not by ops.take_along_axis, with which torch exports a graph of these numbers of rows and tokens alone.
    return ops.squeeze(gather(hidden, last), axis=1)
