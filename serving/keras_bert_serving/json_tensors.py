"""The JSON of TensorFlow Serving's REST interface: requests to arrays, arrays to answers.

Source: https://www.tensorflow.org/tfx/serving/api_rest. Two answers differ, where TensorFlow Serving writes what is not
JSON or loses bytes: a string that is not UTF-8 is written as {"b64": ...} whatever its name is.
"""

import base64
import gc
import json

import numpy as np
import orjson

from keras_bert_serving.errors import invalid
from keras_bert_serving.request_inputs import as_array, check_names, is_bytes, shortened
from keras_bert_serving.signatures import find_signature


def read_object(body):
    """The JSON object in the bytes of a request. NaN and Infinity are accepted as numbers. Raises ServingError."""
    gc.disable()  # JSON has no cycles: looking for them among a million lists holds all other requests for seconds
    try:
        has_words = b"NaN" in body or b"Infinity" in body  # which orjson does not read
        found = json.loads(body) if has_words else orjson.loads(body)
    except (ValueError, RecursionError) as error:
        raise invalid(f"JSON Parse error: {error}") from None
    finally:
        gc.enable()
    if not isinstance(found, dict):
        raise invalid(f"JSON Value: {shortened(found)} Is not object")
    return found


def read_predict(body, servable, limits):
    """What the bytes of a request ask of a Servable: (whether in rows, Signature, arrays by name). Raises
    ServingError."""
    content = read_object(body)
    name, rows, columns = content.get("signature_name", ""), content.get("instances"), content.get("inputs")
    if ("instances" in content) == ("inputs" in content):
        raise invalid("Expecting one of the keys 'inputs' and 'instances'.")
    if "instances" in content and not (isinstance(rows, list) and rows):
        raise invalid(f"Expecting 'instances' to be a list of examples, got {shortened(rows)}.")
    signature = find_signature(servable, name if isinstance(name, str) else shortened(name))
    if rows is not None:
        limits.check("max_rows", len(rows), "The request has {} examples")
        columns = columns_of_rows(rows, signature)
    elif not isinstance(columns, dict) or is_bytes(columns):
        columns = {next(iter(signature.inputs)): columns}
    check_names(columns, signature)
    arrays = {key: as_array(key, columns[key], wanted, limits) for key, wanted in signature.inputs.items()}
    return rows is not None, signature, arrays


def columns_of_rows(rows, signature):
    """The values of each input, from "instances": plain values, or objects with all inputs. Raises ServingError."""
    if not isinstance(rows[0], dict) or is_bytes(rows[0]):
        return {next(iter(signature.inputs)): rows}
    check_names(rows[0], signature)
    for number, row in enumerate(rows):
        if not isinstance(row, dict) or row.keys() != rows[0].keys():
            raise invalid(f"Example {number} of 'instances' has other inputs than the first: {shortened(row)}.")
    return {name: [row[name] for row in rows] for name in signature.inputs}


def predict_answer(outputs, in_rows, warnings=()):
    """The bytes of the answer to a predict request; `warnings`, which TensorFlow Serving has not, stand beside it.

    A single output stands without its name. In rows, all outputs must have equally many rows. Raises ServingError.
    """
    shown = {name: plain(name, array) for name, array in outputs.items()}
    beside = {"warnings": warnings} if warnings else {}
    if not in_rows:
        return to_json({"outputs": next(iter(shown.values())) if len(shown) == 1 else shown, **beside}, outputs)
    sizes = {array.shape[0] if array.ndim else None for array in outputs.values()}
    if len(sizes) > 1 or None in sizes:
        raise invalid("The outputs have different numbers of examples: send 'inputs' instead of 'instances'.")
    if len(shown) == 1:
        return to_json({"predictions": next(iter(shown.values())), **beside}, outputs)
    names = list(shown)
    rows = [dict(zip(names, row, strict=True)) for row in zip(*shown.values(), strict=True)]
    return to_json({"predictions": rows, **beside}, outputs)


def plain(name, array):
    """An output as orjson writes it: strings as str, or as {"b64": ...} for names that end in _bytes."""
    if array.dtype != object:
        # orjson writes neither bfloat16 nor half.
        is_written = array.dtype.kind in "biuf" and array.dtype.itemsize != 2
        return np.ascontiguousarray(array if is_written else array.astype(np.float32))
    in_base64 = name.endswith("_bytes")
    flat = np.empty(array.size, object)
    flat[:] = [string_of(value, in_base64) for value in array.flat]
    return flat.reshape(array.shape).tolist()


def string_of(value, in_base64):
    """A string as JSON has it."""
    if not in_base64:
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            pass  # JSON cannot hold it otherwise
    return {"b64": base64.b64encode(value).decode("ascii")}


def to_json(content, outputs):
    """The bytes of an answer; NaN and Infinity are written as these words, as TensorFlow Serving does."""
    if all(np.isfinite(array).all() for array in outputs.values() if array.dtype.kind == "f"):
        return orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY)
    return json.dumps(content, default=lambda array: array.tolist(), ensure_ascii=False).encode("utf-8", "replace")
