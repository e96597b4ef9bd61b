"""Learned segments A and B."""

import keras
from keras import ops

from keras_bert_impl.kernels.gather import exact_product


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class SegmentEmbedding(keras.layers.Layer):
    """Learned embedding of the segment a token belongs to (Devlin et al. 2019, figure 2).

    Args:
        width: columns of the table.
        num_segments: rows of the table. BERT: 2.
        initializer: BERT uses a truncated normal of standard deviation 0.02.

    A segment that the table does not have is the last one that it has, as the backends differ in what they do with it:
    in a checkpoint with one segment, pairs have segments 0 and 1, too, and every token receives the only row.

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
