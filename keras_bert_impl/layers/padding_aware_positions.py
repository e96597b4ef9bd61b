"""Learned absolute positions that do not count padding."""

import keras
from keras import ops

from keras_bert_impl.layers.configured_layer import ConfiguredLayer
from keras_bert_impl.layers.position_embedding import check_length


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class PaddingAwarePositions(ConfiguredLayer):
    """Learned embedding of positions, counted over the tokens that are not padding (fairseq, "RoBERTa").

    The first token of a sequence receives embedding pad_id + 1 of a trained table, the second the next one, wherever
    padding is. Padding receives embedding pad_id. Those before it are not used, as in every published RoBERTa.

    Args:
        max_length (int): largest number of tokens; the table has pad_id + 1 more. RoBERTa: 512, with 514 embeddings.
        width (int): width of the vectors.
        pad_id (int): ID of the padding token. RoBERTa: 1.
        initializer (str or keras.initializers.Initializer, optional): initializer of the table; BERT's is a truncated
            normal of standard deviation 0.02. Default: "glorot_uniform".

    Input:  padding_mask, (batch, length), int, 1 for tokens and 0 for padding. Optionally `position_ids` (batch,
            length), int, for packing: a token's position in its own sequence, from 0.
    Output: (batch, length, width).
    Raises: ValueError if the length is known and exceeds max_length.
    """

    def __init__(self, max_length, width, pad_id, initializer="glorot_uniform", **kwargs):
        super().__init__(**kwargs)
        self.max_length, self.width, self.pad_id = int(max_length), int(width), int(pad_id)
        self.initializer = keras.initializers.get(initializer)

    def build(self, padding_mask_shape, position_ids_shape=None):
        rows = self.max_length + self.pad_id + 1
        self.table = self.add_weight(
            name="embeddings",
            shape=(rows, self.width),
            initializer=self.initializer,
            autocast=False,  # see PositionEmbedding
        )

    def call(self, padding_mask, position_ids=None):
        check_length(padding_mask.shape[1], self.max_length)
        counted = ops.cumsum(padding_mask, axis=1) if position_ids is None else position_ids + 1
        rows = ops.cast(counted, "int32") * padding_mask + self.pad_id  # pad_id for padding
        vectors = ops.take(ops.convert_to_tensor(self.table), rows, axis=0)
        return ops.cast(vectors, self.compute_dtype)  # (batch, length, width)

    def compute_output_shape(self, padding_mask_shape, position_ids_shape=None):
        return (*padding_mask_shape, self.width)
