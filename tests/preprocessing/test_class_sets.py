"""Lists of classes as rows of 0 and 1, and which lists are refused."""

import numpy as np
import pytest
from tiers import once

from keras_bert_impl.preprocessing.labels import rows_of_zeros_and_ones

pytestmark = once

NAMES = ["sad", "glad", "mad"]
ROWS = [[1, 0, 1], [0, 0, 0], [0, 1, 0]]


@pytest.mark.parametrize(
    "labels",
    [
        [["sad", "mad"], [], ["glad"]],
        [{"sad", "mad"}, set(), {b"glad"}],
        [[0, 2], [], [1]],
        [["sad", 2], [], [np.int64(1)]],
        np.array([["sad", "mad"], [], ["glad"]], dtype=object),
        ROWS,
        [[True, False, True], [False] * 3, [False, True, False]],
        np.array(ROWS),
    ],
    ids=["names", "sets", "numbers", "mixed", "object array", "rows", "booleans", "array"],
)
def test_classes_of_texts_become_zeros_and_ones(labels):
    np.testing.assert_array_equal(rows_of_zeros_and_ones(labels, NAMES), ROWS)


def test_two_names_for_each_text_are_names_and_not_columns():
    labels = np.array([["sad", "mad"], ["glad", "mad"]])
    np.testing.assert_array_equal(rows_of_zeros_and_ones(labels, NAMES), [[1, 0, 1], [0, 1, 1]])


@pytest.mark.parametrize(("labels", "names"), [([[0, 1], [1, 0]], ["a", "b"]), ([[0], [0]], ["a"])])
def test_numbers_that_may_be_classes_or_columns_are_refused(labels, names):
    with pytest.raises(ValueError, match="could be lists of class numbers, or rows of 0 and 1"):
        rows_of_zeros_and_ones(labels, names)
    np.testing.assert_array_equal(rows_of_zeros_and_ones(np.array(labels), names), labels)


def test_one_row_that_is_certain_decides_for_all():
    np.testing.assert_array_equal(rows_of_zeros_and_ones([[0, 1], [1, 1]], ["a", "b"]), [[0, 1], [1, 1]])
    np.testing.assert_array_equal(rows_of_zeros_and_ones([[0], [1]], ["a"]), [[0], [1]])
    np.testing.assert_array_equal(rows_of_zeros_and_ones([[0, 1], []], ["a", "b"]), [[1, 1], [0, 0]])


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([["sad"], ["mad", "bad"]], r"labels\[1\] is 'bad', which is not one of the classes sad, glad, mad"),
        ([["sad"], [-1]], r"labels\[1\] is \[-1\]: give different classes"),
        ([["sad"], [True, False]], r"labels\[1\] is \[True, False\]"),
        (["sad", "mad"], r"labels contain a string"),
        ([[0, 1, 1, 0]], r"labels\[0\] is \[0, 1, 1, 0\]: .* rows of 0 and 1 with 3 columns"),
    ],
)
def test_what_is_not_a_class_is_refused_with_its_row(labels, message):
    with pytest.raises(ValueError, match=message):
        rows_of_zeros_and_ones(labels, NAMES)
