"""Which tokens may attend to which."""

import keras
from keras import ops

from keras_bert_impl.features import DIRECTIONS
from keras_bert_impl.layers.configured_layer import ConfiguredLayer
from keras_bert_impl.suggestions import one_of


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class AttentionMask(ConfiguredLayer):
    """Computes a batch's attention mask, once for all blocks.

    Every token attends to every token that is not padding; with packing, only to those of its own sequence.

    Args:
        direction (str, optional): "both"; "left_to_right" hides later tokens, as in GPT (Devlin et al. 2019, section
            5.1), "right_to_left" earlier ones. Default: "both".
        sees_itself (bool, optional): whether padding attends to itself, as in XLNet. Default: False.

    Input:  padding_mask, (batch, length), int, 1 for tokens and 0 for padding; optionally `sequence_ids` (batch,
            length), int, 1, 2, ... for the sequences of a packed example, 0 for padding.
    Output: bool, (batch, 1, 1, length), or (batch, 1, length, length) with `sequence_ids`, `sees_itself` or another
            direction than "both"; True means "may attend". The axes are (batch, heads, queries, keys).
    Raises: ValueError for an unknown direction.
    """

    def __init__(self, direction="both", sees_itself=False, **kwargs):
        super().__init__(**kwargs)
        self.direction, self.sees_itself = one_of("direction", direction, DIRECTIONS), bool(sees_itself)

    def call(self, padding_mask, sequence_ids=None):
        # LiteRT has no kernel for an index with None where batch and length are unknown.
        may_be_seen = ops.expand_dims(ops.cast(padding_mask, "bool"), (1, 2))  # (batch, 1, 1, length)
        if self.direction != "both":
            places = ops.arange(ops.shape(padding_mask)[1])
            queries, keys = places[:, None], places[None, :]
            before, after = (keys, queries) if self.direction == "left_to_right" else (queries, keys)
            # (batch, 1, length, length)
            may_be_seen = ops.logical_and(may_be_seen, ops.less_equal(before, after)[None, None])
        if sequence_ids is not None:
            same_sequence = ops.equal(sequence_ids[:, :, None], sequence_ids[:, None, :])  # (batch, length, length)
            may_be_seen = ops.logical_and(may_be_seen, same_sequence[:, None, :, :])  # (batch, 1, length, length)
        if self.sees_itself:
            places = ops.arange(ops.shape(padding_mask)[1], dtype="int32")
            may_be_seen = ops.logical_or(may_be_seen, ops.expand_dims(places, 1) == ops.expand_dims(places, 0))
        return may_be_seen

    def compute_output_spec(self, padding_mask, sequence_ids=None):
        batch, length = padding_mask.shape
        is_same_for_all = sequence_ids is None and self.direction == "both" and not self.sees_itself
        queries = 1 if is_same_for_all else length
        return keras.KerasTensor((batch, 1, queries, length), dtype="bool")
