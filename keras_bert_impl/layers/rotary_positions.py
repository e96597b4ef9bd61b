"""Positions as angles by which queries and keys are rotated."""

import keras
import numpy as np
from keras import ops

from keras_bert_impl.layers.configured_layer import ConfiguredLayer


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class RotaryPositions(ConfiguredLayer):
    """Computes rotary positions: cosine and sine of each position's angles (Su et al. 2021, "RoFormer", section 3.2.2).

    Angle i of position p is p * theta ** (-2i / head_width). A query and a key rotated by them have a product that
    depends on their distance alone.

    Args:
        head_width (int): width of a head, an even number.
        theta (float, optional): base of the angles; larger ones rotate more slowly, for longer sequences.
            Default: 10,000, as in the paper.
        factor (float, optional): divides positions (Chen et al. 2023, "Extending context window of large language
            models via positional interpolation"), or with a `trained_length` changes the base as below. Default: 1.0.
        trained_length (int, optional): longer sequences have a larger base, theta * (factor * length / trained_length -
            factor + 1) ** (head_width / (head_width - 2)), the "dynamic NTK" of transformers; a token's angles then
            depend on the length, padding included. Default: None, always the same base.

    Input:  token_ids (batch, length), of which only the length is read; position_ids (batch, length), int, or None for
            0, 1, 2, ...
    Output: (1, length, 2, head_width / 2), or (batch, ...) with position_ids: cosine, then sine.
    """

    def __init__(self, head_width, theta=10_000.0, factor=1.0, trained_length=None, **kwargs):
        super().__init__(**kwargs)
        self.head_width, self.theta, self.factor = int(head_width), float(theta), float(factor)
        self.trained_length = trained_length
        powers = np.arange(0, self.head_width, 2, dtype="float32") / np.float32(self.head_width)
        # As numbers: torch's compiler takes no array of NumPy.
        self.powers = tuple(powers.tolist())
        self.frequencies = tuple((1 / self.theta**powers / self.factor).astype("float32").tolist())

    def call(self, token_ids, position_ids=None):
        if position_ids is None:
            position_ids = ops.expand_dims(ops.arange(ops.shape(token_ids)[1], dtype="int32"), 0)
        # In float32, as in transformers; in bfloat16 places above 256 would be rounded.
        if self.trained_length is None:
            frequencies = ops.convert_to_tensor(self.frequencies, "float32")
        else:
            length = ops.cast(ops.maximum(ops.max(position_ids) + 1, self.trained_length), "float32")
            share = self.factor * length / self.trained_length - (self.factor - 1)
            base = self.theta * ops.power(share, self.head_width / (self.head_width - 2))
            frequencies = 1 / ops.power(base, ops.convert_to_tensor(self.powers, "float32"))
        angles = ops.expand_dims(ops.cast(position_ids, "float32"), -1) * frequencies
        return ops.cast(ops.stack([ops.cos(angles), ops.sin(angles)], axis=2), self.compute_dtype)

    def compute_output_spec(self, token_ids, position_ids=None):
        batch = 1 if position_ids is None else position_ids.shape[0]
        return keras.KerasTensor((batch, token_ids.shape[1], 2, self.head_width // 2), dtype=self.compute_dtype)
