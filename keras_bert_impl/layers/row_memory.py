"""What the rows of a batch leave to those of the next one."""

import keras
from keras import ops

from keras_bert_impl.distribution import BY_BATCH, split


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class RowMemory(keras.layers.Layer):
    """The states of the rows of one step, which those of the next step read, without a gradient to them (Dai et al.
    2019, "Transformer-XL", section 3.2; Yang et al. 2019, section 2.4).

    It is called twice in a step: at its beginning, for what is remembered, and with the new states of each row. Row i
    of a batch reads what row i of the batch before has left. At first, and where a row continues no other, there is
    nothing to read: in transformers, too, there are no `mems` then. zihangdai/xlnet begins with zeros that are seen,
    and goes on with the memory of other text where a file ends.

    Training and evaluation have a memory each, so that what is evaluated between two steps does not change the second.

    Args:
        rows: the most rows of a batch.
        depth: the layers whose states are remembered.
        length: tokens that a row remembers, the last ones (`mem_len`).
        width: of a state.
        reused_length: of how many tokens of a row, from its first on, the states are remembered (`reuse_len`); None for
            all.

    Input:  `continues` (batch,), int, 0 for a row that continues no other. The second time also `outputs`, any tensor,
            `states`, what each layer has read, a list of (batch, tokens, width), and `token_ids` (batch, length), whose
            length is read: what stands behind so many tokens is not remembered.
    Output: the first time a dict of `states` (batch, depth, length, width), zeros where there is nothing, and
            `is_filled`, bool (batch, length); the second time `outputs` as they are.
    Raises: ValueError for a batch of more rows, if their number is known.
    """

    def __init__(self, rows, depth, length, width, reused_length=None, **kwargs):
        super().__init__(**kwargs)
        self.rows, self.depth, self.length, self.width = int(rows), int(depth), int(length), int(width)
        self.reused_length = reused_length

    def build(self, continues_shape, **other_shapes):
        shape = (self.rows, self.depth, self.length, self.width)
        # On torch, Keras would assign to a copy that it has cast to bfloat16.
        options = {"initializer": "zeros", "trainable": False, "autocast": False}
        with split(self, BY_BATCH):
            for kind in ("training", "evaluation"):
                states = self.add_weight(name=f"{kind}_states", shape=shape, **options)
                count = self.add_weight(name=f"{kind}_count", shape=(self.rows,), dtype="int32", **options)
                setattr(self, f"{kind}_states", states)
                setattr(self, f"{kind}_count", count)

    def call(self, continues, outputs=None, states=None, token_ids=None, training=False):
        known = continues.shape[0]
        if known is not None and known > self.rows:
            raise ValueError(
                f"A batch of {known} rows has no place in the memory of {self.rows} that {self.name!r} was made for."
            )
        kind = "training" if training else "evaluation"
        remembered, counts = (getattr(self, f"{kind}_{what}") for what in ("states", "count"))
        batch = ops.shape(continues)[0]
        count = ops.where(ops.not_equal(continues, 0), counts[:batch], 0)  # (batch,)
        is_filled = ops.arange(self.length, dtype="int32") >= self.length - ops.expand_dims(count, 1)
        old = ops.convert_to_tensor(remembered)[:batch]
        old = ops.where(ops.expand_dims(is_filled, (1, 3)), old, ops.zeros_like(old))
        if outputs is None:
            return {"states": ops.cast(old, self.compute_dtype), "is_filled": is_filled}
        length = ops.shape(token_ids)[1]
        states = ops.stack([of_layer[:, :length][:, : self.reused_length] for of_layer in states], axis=1)
        # Without a gradient: the next step reads a variable.
        new = ops.concatenate([old, ops.cast(states, old.dtype)], axis=2)[:, :, -self.length :]
        count = ops.minimum(count + ops.shape(states)[2], self.length)
        if known != self.rows:  # an evaluation may have fewer
            new = ops.concatenate([new, ops.convert_to_tensor(remembered)[batch:]], axis=0)
            count = ops.concatenate([count, counts[batch:]], axis=0)
        remembered.assign(new)
        counts.assign(count)
        return outputs

    def compute_output_spec(self, continues, outputs=None, states=None, token_ids=None, training=False):
        if outputs is not None:
            return keras.KerasTensor(outputs.shape, dtype=outputs.dtype)
        batch = continues.shape[0]
        return {
            "states": keras.KerasTensor((batch, self.depth, self.length, self.width), dtype=self.compute_dtype),
            "is_filled": keras.KerasTensor((batch, self.length), dtype="bool"),
        }

    def get_config(self):
        own = {"rows": self.rows, "depth": self.depth, "length": self.length, "width": self.width}
        return {**super().get_config(), **own, "reused_length": self.reused_length}
