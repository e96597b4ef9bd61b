"""Which tokens attend to the whole sequence, and are attended to by all of it."""

import keras
from keras import ops

from keras_bert_impl.kernels.padding import padded
from keras_bert_impl.layers.configured_layer import ConfiguredLayer


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class GlobalTokens(ConfiguredLayer):
    """Finds the global tokens of each sequence (Beltagy et al. 2020, section 3.1).

    Args:
        rule (str): "first", the first token; "first_text", all before the first separator; "second_text", all after the
            separators between two texts; "given", those where `global_mask` is not 0.
        most (int): largest number of global tokens.
        sep_id (int): ID of the separator token.

    Input:  token_ids, padding_mask and, with the rule "given", global_mask, each int32 (batch, length). Padding is
            never global.
    Output: dict of `places`, their positions, int32 (batch, most), in ascending order, -1 for none; and `too_many`,
            bool (batch,), whether a sequence has more global tokens than that.
    """

    def __init__(self, rule, most, sep_id, **kwargs):
        super().__init__(**kwargs)
        self.rule, self.most, self.sep_id = rule, int(most), int(sep_id)

    def call(self, token_ids, padding_mask, global_mask=None):
        places = ops.arange(ops.shape(token_ids)[1], dtype="int32")
        is_separator = ops.cast(ops.equal(token_ids, self.sep_id), "int32")
        separators = ops.cumsum(is_separator, axis=1)  # up to each token, itself included
        if self.rule == "given":
            is_global = ops.not_equal(global_mask, 0)
        elif self.rule == "first":
            is_global = ops.less(places + ops.zeros_like(token_ids), 1)
        elif self.rule == "first_text":
            is_global = ops.less(separators, 1)
        else:
            # A second separator right behind the first belongs to neither text. The last one of the row is global, as
            # in transformers.
            is_before = ops.less(padded(separators, 1, 0)[:, :-1], 1)
            second = ops.logical_and(ops.equal(ops.cumsum(separators, axis=1), 3), ops.equal(is_separator, 1))
            is_global = ops.logical_not(ops.logical_or(is_before, second))
        is_global = ops.logical_and(is_global, ops.not_equal(padding_mask, 0))
        numbers = ops.cumsum(ops.cast(is_global, "int32"), axis=1)  # 1, 2, ... for the global tokens
        slots = ops.expand_dims(ops.arange(1, self.most + 1, dtype="int32"), -1)
        is_here = ops.logical_and(ops.equal(ops.expand_dims(numbers, 1), slots), ops.expand_dims(is_global, 1))
        found = ops.amax(ops.where(is_here, places, -1), axis=-1)
        return {"places": found, "too_many": ops.greater(ops.amax(numbers, axis=1), self.most)}

    def compute_output_spec(self, token_ids, padding_mask, global_mask=None):
        batch = token_ids.shape[0]
        return {
            "places": keras.KerasTensor((batch, self.most), dtype="int32"),
            "too_many": keras.KerasTensor((batch,), dtype="bool"),
        }
