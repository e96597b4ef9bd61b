"""Learned segments A and B."""

import keras
from keras import ops

from keras_bert_impl.kernels.gather import exact_product


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class SegmentEmbedding(keras.layers.Layer):
    """Learned embedding of the segment that a token belongs to (Devlin et al. 2019, figure 2).

    Larger segment numbers get the last embedding: with num_segments=1, both texts of a pair share it.

    Args:
        width (int): width of the vectors.
        num_segments (int, optional): number of segments. Default: 2, as in BERT.
        initializer (str or keras.initializers.Initializer, optional): initializer of the table; BERT's is a truncated
            normal of standard deviation 0.02. Default: "glorot_uniform".

    Input:  segment_ids, (batch, length), int, at least 0.
    Output: (batch, length, width).
    """

    def __init__(self, width, num_segments=2, initializer="glorot_uniform", **kwargs):
        super().__init__(**kwargs)
        self.width = int(width)
        self.num_segments = int(num_segments)
        self.initializer = keras.initializers.get(initializer)

    def build(self, input_shape):
        self.table = self.add_weight(
            name="embeddings", shape=(self.num_segments, self.width), initializer=self.initializer
        )

    def call(self, segment_ids):
        # A product with one-hot rows, as in Google's code: its gradient is a product, too, while that of a gather
        # would add every token of the batch into two rows, one after the other.
        segment_ids = ops.minimum(segment_ids, self.num_segments - 1)
        one_hot = ops.one_hot(segment_ids, self.num_segments, dtype=self.compute_dtype)  # (batch, length, segments)
        return exact_product(one_hot, ops.convert_to_tensor(self.table))

    def compute_output_shape(self, input_shape):
        return (*input_shape, self.width)

    def get_config(self):
        return {
            **super().get_config(),
            "width": self.width,
            "num_segments": self.num_segments,
            "initializer": keras.initializers.serialize(self.initializer),
        }
