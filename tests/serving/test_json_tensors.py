"""Lists of JSON become arrays only if they are rectangular; arrays become JSON without added digits."""

import gc
import json

import numpy as np
import orjson
import pytest
from tiers import on

from keras_bert_serving import request_inputs
from keras_bert_serving.errors import ServingError
from keras_bert_serving.json_tensors import columns_of_rows, predict_answer, read_object
from keras_bert_serving.limits import Limits
from keras_bert_serving.request_inputs import shortened
from keras_bert_serving.signatures import Array, Signature

pytestmark = on("tensorflow")

FLOAT, INT, BOOL = np.dtype(np.float32), np.dtype(np.int64), np.dtype(bool)
TEXTS, ENDINGS = Array(np.dtype(object), (None,)), Array(np.dtype(object), (None, None))
MEASURE = Signature("measure", {"text": TEXTS}, {}, "")


def array_of(name, value, dtype):
    return request_inputs.as_array(name, value, Array(dtype, None), Limits())


@pytest.mark.parametrize(
    ("value", "dtype", "shape"), [(3, INT, ()), ([], FLOAT, (0,)), ([[1, 2, 3], [4, 5, 6]], FLOAT, (2, 3))]
)
def test_nested_lists_have_their_natural_shape(value, dtype, shape):
    array = array_of("x", value, dtype)
    assert array.shape == shape and array.dtype == dtype and array.tolist() == value


@pytest.mark.parametrize(
    ("value", "dtype"),
    [([1, [2]], INT), ([[1, 2], [3]], INT), ([[1], []], INT), ([1], BOOL), ([True], INT), ([1.0], INT),
     ([2**63], INT), (["1"], FLOAT), ([1e39], FLOAT), ([None], FLOAT), ([10**400], FLOAT)],
)  # fmt: skip
def test_ragged_lists_and_values_of_another_type_or_range_are_refused(value, dtype):
    with pytest.raises(ServingError, match="Input x"):
        array_of("x", value, dtype)


@pytest.mark.parametrize(
    ("wanted", "value", "message"),
    [
        (TEXTS, [""] * 2000, "has 2000 examples; this server takes at most 1024"),
        (TEXTS, [[[""]]], r"has shape \[1, 1, 1\], expected \[\?\]"),
        (ENDINGS, [[], []], r"has shape \[2, 0\], expected \[\?,\?\]"),
        (Array(FLOAT, None), np.array([1e39]), "outside the range of float32"),
        (ENDINGS, [[""] * 600_000], "describe arrays of 4800000 bytes; this server takes at most 4194304"),
    ],
)
def test_lists_and_arrays_are_refused_by_their_sizes(wanted, value, message):
    with pytest.raises(ServingError, match=message):
        request_inputs.as_array("x", value, wanted, Limits())


def test_a_row_of_many_keys_is_quoted_without_being_read():
    class Row(dict):
        def __iter__(self):
            yield from "abcdefghijklmnop"
            pytest.fail("was read")

    with pytest.raises(ServingError, match="Example 1 of 'instances' has other inputs than the first"):
        columns_of_rows([{"text": "a"}, Row.fromkeys(range(1000))], MEASURE)


def test_of_a_value_that_is_quoted_only_the_beginning_is_read():
    class Element:
        read = 0

        def __repr__(self):
            Element.read += 1
            return "element"

    assert shortened([Element() for _ in range(1000)]).startswith("[element, ") and Element.read < 10


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
    with pytest.raises(ServingError, match=r"send .inputs. instead"):
        predict_answer(outputs, in_rows=True)
