"""Rows of ragged tensors joined without the checks of TensorFlow's own functions, beside these."""

import pytest
import tensorflow as tf
from tiers import on

from keras_bert_impl.preprocessing.graphs.ragged import of_texts, row_numbers, side_by_side

pytestmark = on("tensorflow")

ROWS = tf.ragged.constant([[1, 2], [], [3], []], tf.int32, row_splits_dtype=tf.int64)
OTHERS = tf.ragged.constant([[], [7, 8, 9], [6], []], tf.int32, row_splits_dtype=tf.int64)
VECTORS = ROWS.with_values(tf.reshape(tf.range(9), (3, 3)))


@pytest.mark.parametrize("columns", [[ROWS, OTHERS], [5, ROWS, 4, OTHERS, 4], [ROWS[:0], 5], [VECTORS, VECTORS]])
def test_columns_are_joined_as_concat_joins_them(columns):
    count = next(column for column in columns if not isinstance(column, int)).nrows()
    as_arrays = [tf.fill([count, 1], column) if isinstance(column, int) else column for column in columns]
    found, expected = side_by_side(columns), tf.concat(as_arrays, axis=1)
    assert found.to_list() == expected.to_list()
    assert found.dtype == expected.dtype


def test_pieces_of_parts_become_those_of_texts_as_merge_dims_does():
    parts = tf.ragged.constant([["a"], [], ["b", "c", "d"], []], row_splits_dtype=tf.int64)
    assert of_texts(parts, ROWS).to_list() == parts.with_flat_values(ROWS).merge_dims(1, 2).to_list()


def test_each_value_has_the_number_of_its_row():
    assert row_numbers(OTHERS).numpy().tolist() == OTHERS.value_rowids().numpy().tolist()
