import keras
import numpy as np
import pytest
from check_layer import check_layer
from keras import ops
from tiers import every_backend

from keras_bert_impl.layers import PaddingAwarePositions, PositionEmbedding, SegmentEmbedding

VECTORS = np.random.default_rng(0).normal(size=(2, 5, 3)).astype("float32")
SEGMENTS = np.array([[0, 0, 1, 1, 1], [0, 1, 1, 0, 0]], "int32")


def test_segment_embedding_has_the_routine_properties():
    check_layer(lambda dtype: SegmentEmbedding(3, 2, dtype=dtype), SEGMENTS)


def test_position_i_receives_row_i_whatever_the_token():
    layer = PositionEmbedding(7)
    rows = ops.convert_to_numpy(layer(VECTORS))
    np.testing.assert_array_equal(rows, ops.convert_to_numpy(layer.table)[:5])


def test_explicit_positions_pick_their_rows():
    layer = PositionEmbedding(7)
    layer(VECTORS)
    positions = np.array([[0, 1, 2, 0, 1], [6, 5, 4, 3, 2]], "int32")
    picked = ops.convert_to_numpy(layer(VECTORS, position_ids=positions))
    np.testing.assert_array_equal(picked, ops.convert_to_numpy(layer.table)[positions])


def test_a_row_longer_than_the_table_is_refused_with_both_lengths():
    with pytest.raises(ValueError, match=r"5 tokens .* max_length 4"):
        PositionEmbedding(4)(VECTORS)


def test_segments_receive_their_rows():
    layer = SegmentEmbedding(3, 2)
    rows = ops.convert_to_numpy(layer(SEGMENTS))
    np.testing.assert_allclose(rows, ops.convert_to_numpy(layer.table)[SEGMENTS], atol=1e-7)


@pytest.mark.parametrize("num_segments", [1, 2])
def test_a_segment_that_the_table_does_not_have_is_the_last_one(num_segments):
    """A pair has segments 0 and 1, also in a checkpoint with type_vocab_size 1."""
    layer = SegmentEmbedding(3, num_segments)
    rows = ops.convert_to_numpy(layer(SEGMENTS * num_segments))
    np.testing.assert_array_equal(rows, ops.convert_to_numpy(layer.table)[SEGMENTS * (num_segments - 1)])


@every_backend
@pytest.mark.parametrize(
    "layer",
    [
        lambda ids, **options: PositionEmbedding(4, **options)(ops.zeros((3000, 4, 3)), position_ids=ids),
        lambda ids, **options: PaddingAwarePositions(4, 3, 1, **options)(ops.ones_like(ids), position_ids=ids),
        lambda ids, **options: SegmentEmbedding(3, 4, **options)(ids),
    ],
    ids=["positions", "padding_aware", "segments"],
)
def test_in_bfloat16_the_gradient_of_a_row_is_of_all_tokens_that_receive_it(layer):
    """Of 3,000 rows; a sum in bfloat16, one by one, would stop at 256."""
    ids = keras.Input((4,), dtype="int32")
    model = keras.Model(ids, layer(ids, dtype=keras.dtype_policies.get("mixed_bfloat16")))
    model.compile(keras.optimizers.SGD(1.0), lambda expected, found: 3000.0 * ops.mean(ops.sum(found, axis=(1, 2))))
    before = model.get_weights()[0]
    places = np.tile(np.arange(4, dtype="int32"), (3000, 1))
    model.train_on_batch(places, np.zeros((3000, 1)))
    gradient = before - model.get_weights()[0]
    np.testing.assert_allclose(gradient[gradient[:, 0] != 0], np.full((4, 3), 3000.0), rtol=0.01)


PADDED = np.array([[1, 1, 1, 0, 0], [0, 1, 0, 1, 1]], "int32")


def test_positions_are_counted_over_tokens_from_the_row_after_the_padding_token_s():
    layer = PaddingAwarePositions(7, 3, pad_id=1)
    found = ops.convert_to_numpy(layer(PADDED))
    rows = np.array([[2, 3, 4, 1, 1], [1, 2, 1, 3, 4]])
    np.testing.assert_array_equal(found, ops.convert_to_numpy(layer.table)[rows])
    assert layer.table.shape == (7 + 2, 3)


def test_positions_of_packed_rows_begin_anew_for_each_sequence():
    layer = PaddingAwarePositions(7, 3, pad_id=2)
    layer(PADDED)
    places = np.array([[0, 1, 0, 0, 0], [0, 0, 0, 1, 2]], "int32")
    found = ops.convert_to_numpy(layer(PADDED, position_ids=places))
    rows = np.array([[3, 4, 3, 2, 2], [2, 3, 2, 4, 5]])
    np.testing.assert_array_equal(found, ops.convert_to_numpy(layer.table)[rows])
