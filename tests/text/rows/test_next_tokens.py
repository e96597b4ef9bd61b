"""The labels of a language model that reads in one direction."""

import numpy as np
import pytest
import tensorflow as tf
from tiers import on

from keras_bert_impl.preprocessing.graphs import tensorflow_arrays
from keras_bert_impl.text.rows.masking import NextTokens

pytestmark = on("tensorflow")


def predict_in_graph(rows, direction):
    tensors = {name: tf.constant(array) for name, array in rows.items()}
    return NextTokens(direction).mask(tensors, 0, tensorflow_arrays)


def predict_in_numpy(rows, direction):
    return NextTokens(direction).mask(rows, 0)


# [CLS] 7 8 [SEP] and padding
ROW = {
    "token_ids": np.array([[2, 7, 8, 3, 0]], "int32"),
    "padding_mask": np.array([[1, 1, 1, 1, 0]], "int32"),
}
# [CLS] 7 [SEP], [CLS] 9 [SEP], and padding
PACKED = {
    "token_ids": np.array([[2, 7, 3, 2, 9, 3, 0]], "int32"),
    "padding_mask": np.array([[1, 1, 1, 1, 1, 1, 0]], "int32"),
    "sequence_ids": np.array([[1, 1, 1, 2, 2, 2, 0]], "int32"),
}
both = pytest.mark.parametrize("predict", [predict_in_graph, predict_in_numpy], ids=["tensorflow", "numpy"])


def lists(rows, *names):
    return [np.asarray(rows[name])[0].tolist() for name in names]


@both
@pytest.mark.parametrize(
    ("direction", "expected"),
    [
        ("left_to_right", [[0, 1, 2, 3], [7, 8, 3, 0], [1, 1, 1, 0]]),
        ("right_to_left", [[1, 2, 3, 4], [2, 7, 8, 0], [1, 1, 1, 0]]),
    ],
)
def test_labels_are_the_next_tokens_in_reading_direction(predict, direction, expected):
    assert lists(predict(ROW, direction), "mask_positions", "mask_ids", "mask_weights") == expected


@both
def test_no_token_predicts_one_of_another_sequence(predict):
    ids, weights = lists(predict(PACKED, "left_to_right"), "mask_ids", "mask_weights")
    assert ids == [7, 3, 0, 9, 3, 0]
    assert weights == [1, 1, 0, 1, 1, 0]
