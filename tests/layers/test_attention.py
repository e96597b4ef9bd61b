import numpy as np
import pytest
from check_layer import check_layer
from keras import ops
from tiers import every_backend

from keras_bert_impl.layers import AttentionMask, MultiHeadSelfAttention

VECTORS = np.random.default_rng(0).normal(size=(2, 5, 6)).astype("float32")
PADDING = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], "int32")


def test_self_attention_has_the_routine_properties():
    check_layer(lambda dtype: MultiHeadSelfAttention(3, dtype=dtype), VECTORS)


@every_backend
def test_fused_attention_equals_attention_by_probabilities():
    layer, mask = MultiHeadSelfAttention(3), AttentionMask()(PADDING)
    fused = ops.convert_to_numpy(layer(VECTORS, mask))
    explicit, _ = layer(VECTORS, mask, return_probabilities=True)
    np.testing.assert_allclose(fused, ops.convert_to_numpy(explicit), atol=1e-5)


def test_probabilities_sum_to_one_and_are_zero_at_padding():
    _, probabilities = MultiHeadSelfAttention(2)(VECTORS, AttentionMask()(PADDING), return_probabilities=True)
    probabilities = ops.convert_to_numpy(probabilities)
    assert probabilities.shape == (2, 2, 5, 5)
    np.testing.assert_allclose(probabilities.sum(-1), 1, atol=1e-5)
    assert probabilities[1, :, :, 3:].max() == 0


def test_packed_rows_see_only_their_own_sequence():
    sequence_ids = np.array([[1, 1, 2, 2, 0]], "int32")
    mask = ops.convert_to_numpy(AttentionMask()((sequence_ids > 0).astype("int32"), sequence_ids=sequence_ids))
    expected = [[1, 1, 0, 0, 0], [1, 1, 0, 0, 0], [0, 0, 1, 1, 0], [0, 0, 1, 1, 0], [0, 0, 0, 0, 0]]
    np.testing.assert_array_equal(mask[0, 0], np.array(expected, bool))


@every_backend
def test_a_row_without_any_token_gives_numbers_and_not_nan():
    layer, mask = MultiHeadSelfAttention(2), AttentionMask()(np.zeros((2, 5), "int32"))
    assert np.isfinite(ops.convert_to_numpy(layer(VECTORS, mask))).all()


def test_attention_dropout_acts_in_training_only():
    layer = MultiHeadSelfAttention(2, dropout_rate=0.5, seed=1)
    still, again = (ops.convert_to_numpy(layer(VECTORS, training=False)) for _ in range(2))
    np.testing.assert_array_equal(still, again)
    assert np.abs(ops.convert_to_numpy(layer(VECTORS, training=True)) - still).max() > 1e-3


@pytest.mark.parametrize(
    ("direction", "expected"),
    [
        ("left_to_right", [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 0]]),
        ("right_to_left", [[1, 1, 1, 0], [0, 1, 1, 0], [0, 0, 1, 0], [0, 0, 0, 0]]),
    ],
)
def test_a_token_sees_one_side_of_itself_and_no_padding(direction, expected):
    mask = ops.convert_to_numpy(AttentionMask(direction)(np.array([[1, 1, 1, 0]], "int32")))
    np.testing.assert_array_equal(mask[0, 0], np.array(expected, bool))


def test_packed_rows_see_one_side_of_their_own_sequence():
    sequence_ids = np.array([[1, 1, 2, 2, 0]], "int32")
    layer = AttentionMask("left_to_right")
    mask = ops.convert_to_numpy(layer((sequence_ids > 0).astype("int32"), sequence_ids=sequence_ids))
    expected = [[1, 0, 0, 0, 0], [1, 1, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 1, 1, 0], [0, 0, 0, 0, 0]]
    np.testing.assert_array_equal(mask[0, 0], np.array(expected, bool))
