import numpy as np
import pytest
from made_text import ragged
from tiers import once

from keras_bert_impl.text.ragged import concatenated, places, take
from keras_bert_impl.text.rows.numpy_arrays import padded

pytestmark = once

ROWS = ragged([[7, 8], [], [9], [4, 5, 6]])


def test_rows_are_taken_in_any_order_and_repeatedly():
    values, lengths = take(ROWS, [3, 1, 0, 3])
    assert values.tolist() == [4, 5, 6, 7, 8, 4, 5, 6] and lengths.tolist() == [3, 0, 2, 3]


def test_rows_of_several_parts_follow_one_another():
    values, lengths = concatenated([ROWS, take(ROWS, slice(1, 3))])
    assert values.tolist() == [7, 8, 9, 4, 5, 6, 9] and lengths.tolist() == [2, 0, 1, 3, 0, 1]


def test_ranges_may_be_empty():
    assert places([5, 0, 2], [2, 0, 3]).tolist() == [5, 6, 2, 3, 4]
    assert places(np.zeros(0, int), np.zeros(0, int)).tolist() == []


def test_padding_stands_behind_a_row_and_cuts_none():
    assert padded(ROWS, 3, -1).tolist() == [[7, 8, -1], [-1] * 3, [9, -1, -1], [4, 5, 6]]
    with pytest.raises(ValueError, match="A row has more values than 2"):
        padded(ROWS, 2, -1)
