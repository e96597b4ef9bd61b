"""Gathers the vectors at given positions."""

import keras

from keras_bert_impl.kernels.gather import gather


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class GatherPositions(keras.layers.Layer):
    """Gathers the vectors at given positions of each sequence.

    On JAX this is a product with one-hot vectors, so that on a device mesh sequences stay on their devices.

    Input:  sequence_output (batch, length, width); positions (batch, count), int.
    Output: (batch, count, width).
    """

    def call(self, sequence_output, positions):
        return gather(sequence_output, positions)

    def compute_output_spec(self, sequence_output, positions):
        return keras.KerasTensor((*positions.shape, sequence_output.shape[-1]), dtype=self.compute_dtype)
