"""The labels of a language model that reads in one direction."""

import numpy as np
import pytest
import tensorflow as tf
from tiers import on

from keras_bert_impl.preprocessing.graphs import tensorflow_arrays
from keras_bert_impl.text.rows import next_tokens

pytestmark = on("tensorflow")


def predict_in_graph(rows, direction):
    tensors = {name: tf.constant(array) for name, array in rows.items()}
    return next_tokens.predict_next_tokens(tensors, direction, tensorflow_arrays)


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
predict_in_numpy = next_tokens.predict_next_tokens
both = pytest.mark.parametrize("predict", [predict_in_graph, predict_in_numpy], ids=["tensorflow", "numpy"])


def lists(rows, *names):
    return [np.asarray(rows[name])[0].tolist() for name in names]


@both
def test_next_token_labels_are_the_shifted_tokens(predict):
    positions, ids, weights = lists(predict(ROW, "left_to_right"), "mask_positions", "mask_ids", "mask_weights")
    assert positions == [0, 1, 2, 3]
    assert ids == [7, 8, 3, 0]
    assert weights == [1, 1, 1, 0]


@both
def test_from_right_to_left_they_are_shifted_the_other_way(predict):
    positions, ids, weights = lists(predict(ROW, "right_to_left"), "mask_positions", "mask_ids", "mask_weights")
    assert positions == [1, 2, 3, 4]
    assert ids == [2, 7, 8, 0]
    assert weights == [1, 1, 1, 0]


@both
def test_no_token_predicts_one_of_another_sequence(predict):
    ids, weights = lists(predict(PACKED, "left_to_right"), "mask_ids", "mask_weights")
    assert ids == [7, 3, 0, 9, 3, 0]
    assert weights == [1, 1, 0, 1, 1, 0]
