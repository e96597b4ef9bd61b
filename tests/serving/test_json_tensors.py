"""Lists of JSON become arrays only if they are rectangular; arrays become JSON without added digits."""

import gc
import json

import numpy as np
import orjson
import pytest
from tiers import on

from keras_bert_impl.serving import request_inputs
from keras_bert_impl.serving.errors import ServingError
from keras_bert_impl.serving.json_tensors import columns_of_rows, predict_answer, read_object, smallest_body
from keras_bert_impl.serving.request_inputs import Limits, shortened
from keras_bert_impl.serving.signatures import Array, Signature

pytestmark = on("tensorflow")

FLOAT, INT, BOOL = np.dtype(np.float32), np.dtype(np.int64), np.dtype(bool)
TEXTS, ENDINGS = Array(np.dtype(object), (None,)), Array(np.dtype(object), (None, None))
MEASURE = Signature("measure", {"text": TEXTS}, {}, "")


def array_of(name, value, dtype):
    return request_inputs.array_of(name, value, Array(dtype, None), Limits())


class Unread(list):
    """A list that is counted, but not read."""

    def __iter__(self):
        pytest.fail("was read")


@pytest.mark.parametrize(
    ("value", "dtype", "shape"), [(3, INT, ()), ([], FLOAT, (0,)), ([[1, 2, 3], [4, 5, 6]], FLOAT, (2, 3))]
)
def test_nested_lists_have_their_natural_shape(value, dtype, shape):
    array = array_of("x", value, dtype)
    assert array.shape == shape and array.dtype == dtype and array.tolist() == value


@pytest.mark.parametrize("value", [[1, [2]], [[1, 2], [3]], [[1], []], {"a": 1}])
def test_ragged_lists_and_objects_are_refused(value):
    with pytest.raises(ServingError, match="Input x"):
        array_of("x", value, INT)


@pytest.mark.parametrize(("value", "dtype"), [(1, BOOL), (True, INT), (1.0, INT), (2**63, INT), ("1", FLOAT)])
def test_a_value_of_another_type_is_refused(value, dtype):
    with pytest.raises(ServingError, match="Input x"):
        array_of("x", [value], dtype)


def test_lists_are_not_followed_without_end():
    value = 1
    for _ in range(500):
        value = [value]
    with pytest.raises(ServingError, match="nested more than 8 deep"):
        array_of("x", value, INT)


@pytest.mark.parametrize(
    ("wanted", "value", "message"),
    [
        (TEXTS, Unread([""] * 2000), "has 2000 rows; this server takes at most 1024"),
        (TEXTS, Unread([[[""]]]), r"has shape \[1, 1, 1\], expected \[\?\]"),
        (ENDINGS, [Unread([""] * 600_000)], "describe arrays of 4800000 bytes; this server takes at most 4194304"),
    ],
)
def test_lists_are_refused_by_their_sizes_before_they_are_read(wanted, value, message):
    with pytest.raises(ServingError, match=message):
        request_inputs.array_of("x", value, wanted, Limits())


def test_a_row_of_many_keys_is_quoted_without_being_read():
    class Row(dict):
        def __iter__(self):
            yield from "abcdefghijklmnop"
            pytest.fail("was read")

    with pytest.raises(ServingError, match="element: 1 of 'instances' list: its keys are"):
        columns_of_rows([{"text": "a"}, Row.fromkeys(range(1000))], MEASURE)


def test_of_a_value_that_is_quoted_only_the_beginning_is_read():
    class Element:
        read = 0

        def __repr__(self):
            Element.read += 1
            return "element"

    assert shortened([Element() for _ in range(1000)]).startswith("[element, ") and Element.read < 10


def test_a_row_without_a_text_is_refused_by_the_name_of_its_input():
    with pytest.raises(ServingError, match="Input endings has rows without a text"):
        request_inputs.array_of("endings", [[], []], ENDINGS, Limits())


def test_a_float32_is_written_with_its_own_digits():
    assert predict_answer({"y": np.array([0.1, 2.0], np.float32)}, in_rows=True) == b'{"predictions":[0.1,2.0]}'


def test_nobody_looks_for_cycles_among_the_lists_of_a_request(monkeypatch):
    """Which takes seconds where they are a million, and holds all other requests."""
    loads, looked = orjson.loads, []
    monkeypatch.setattr(orjson, "loads", lambda body: looked.append(gc.isenabled()) or loads(body))
    assert read_object(b'{"x": [[]]}') == {"x": [[]]}
    with pytest.raises(ServingError, match="JSON Parse error"):
        read_object(b"{")
    assert looked == [False, False] and gc.isenabled()


def test_nan_and_infinity_are_read_and_written_as_words():
    assert np.isnan(read_object(b'{"x": NaN}')["x"])
    answer = predict_answer({"y": np.array([np.nan, -np.inf], np.float32)}, in_rows=False)
    assert json.loads(answer)["outputs"][1] == -np.inf and b"NaN" in answer


def test_outputs_of_different_numbers_of_rows_are_refused_in_rows_only():
    outputs = {"a": np.zeros(2), "b": np.zeros(3)}
    assert json.loads(predict_answer(outputs, in_rows=False))["outputs"] == {"a": [0, 0], "b": [0, 0, 0]}
    with pytest.raises(ServingError, match="ask for them in columns"):
        predict_answer(outputs, in_rows=True)


def test_the_smallest_body_has_a_value_for_each_input():
    text, several = Array(np.dtype(object), (None,)), Array(np.dtype(object), (None, None))
    assert json.loads(smallest_body(Signature("", {"text": text}, {}, ""))) == {"instances": ["a text"]}
    guesses = dict.fromkeys(("tokens", "token_ids", "probabilities"), text)
    assert json.loads(smallest_body(Signature("", {"text": text}, guesses, ""))) == {"instances": ["a [MASK]"]}
    found = json.loads(smallest_body(Signature("", {"text": text, "endings": several}, {}, "")))
    assert found == {"instances": [{"text": "a text", "endings": ["a text", "another"]}]}
