import numpy as np
from check_layer import check_layer
from keras import ops
from tiers import every_backend

from keras_bert_impl.layers import AttentionMask, TransformerEncoderBlock

pytestmark = every_backend

VECTORS = np.random.default_rng(0).normal(size=(2, 5, 6)).astype("float32")


def test_block_has_the_routine_properties():
    check_layer(lambda dtype: TransformerEncoderBlock(3, 7, dtype=dtype), VECTORS)


def test_outputs_are_normalised():
    outputs = ops.convert_to_numpy(TransformerEncoderBlock(3, 7)(VECTORS))
    np.testing.assert_allclose(outputs.mean(-1), 0, atol=1e-5)
    np.testing.assert_allclose(outputs.std(-1), 1, atol=1e-4)


def test_padding_does_not_change_other_outputs():
    block = TransformerEncoderBlock(3, 7)
    mask = AttentionMask()(np.array([[1, 1, 1, 0, 0]] * 2, "int32"))
    changed = VECTORS.copy()
    changed[:, 3:] = 100
    first, second = (ops.convert_to_numpy(block(rows, mask)) for rows in (VECTORS, changed))
    np.testing.assert_allclose(first[:, :3], second[:, :3], atol=1e-6)


def test_tanh_and_exact_gelu_differ():
    exact = TransformerEncoderBlock(3, 7, activation="gelu")
    approximate = TransformerEncoderBlock(3, 7, activation="gelu_tanh")
    exact(VECTORS), approximate(VECTORS)
    approximate.set_weights(exact.get_weights())
    difference = np.abs(ops.convert_to_numpy(exact(VECTORS)) - ops.convert_to_numpy(approximate(VECTORS))).max()
    assert 0 < difference < 1e-2
