"""The arrays of a request, checked against the signature and the limits before they take a place in the queue."""

import base64
import itertools
import json
import math
import reprlib

import numpy as np

from keras_bert_serving.errors import invalid

# What a JSON number of each kind of array may be. A bool is an int to Python: it is refused by its exact type.
NUMBERS = {"f": (int, float), "V": (int, float), "i": (int,), "u": (int,), "b": (bool,)}
DESCRIBED = "The inputs describe arrays of {} bytes"  # a short message can describe large ones


def check_inputs(inputs, signature, limits):
    """The inputs as arrays of the signature's types.

    Args:
        inputs: arrays, or lists of values, by name.
        signature: the Signature asked for.
        limits: the server's Limits.

    Raises: ServingError if a name, type, rank or size is not what the signature takes, or exceeds the limits.
    """
    check_names(inputs, signature)
    arrays = {name: as_array(name, inputs[name], wanted, limits) for name, wanted in signature.inputs.items()}
    for name, array in arrays.items():
        if array.dtype == object:
            longest = max(map(len, array.flat), default=0)
            limits.check("max_text_bytes", longest, f"Input {name} has a text of {{}} bytes")
    return arrays


def answer_bytes(inputs, signature, tokens):
    """Bytes of the numbers in an answer.

    Args:
        inputs: arrays by name.
        signature: the Signature asked for.
        tokens: of the longest row, as which every width counts that differs between requests.
    """
    rows = max((len(array) for array in inputs.values() if array.ndim), default=0)
    return rows * sum(
        math.prod(tokens if side is None else side for side in array.shape[1:]) * array.dtype.itemsize
        for array in signature.outputs.values()
        if array.shape and array.dtype != object
    )


def bytes_of(outputs):
    """The bytes of arrays, by name, strings included."""
    return sum(sum(map(len, array.flat)) if array.dtype == object else array.nbytes for array in outputs.values())


def check_names(inputs, signature):
    """Raises ServingError unless the inputs are those of the signature."""
    if len(inputs) != len(signature.inputs) or set(inputs) != set(signature.inputs):
        found = sorted(str(name)[:50] for name in itertools.islice(inputs, 10))
        more = f" and {len(inputs) - 10} more" if len(inputs) > 10 else ""
        raise invalid(
            f"The request has the inputs {', '.join(found) or '(none)'}{more}; signature {signature.name} takes "
            f"{', '.join(sorted(signature.inputs))}."
        )


def as_array(name, values, wanted, limits):
    """JSON values or an array as an array of the wanted dtype; strings become bytes. Raises ServingError."""
    dtype = wanted.dtype
    try:
        values = values if isinstance(values, np.ndarray) else array_of(name, values, dtype)
        check_shape(name, values.shape, wanted, limits)
        with np.errstate(over="ignore"):
            converted = values.astype(dtype, casting="no" if dtype.kind == "O" else "same_kind")
    except (TypeError, OverflowError) as error:
        kind = "strings" if dtype.kind == "O" else dtype.name
        raise invalid(f"Input {name} takes {kind}: {str(error)[:200]}.") from None
    kept = np.isfinite if dtype.kind in "fV" else np.asarray
    if not np.array_equal(kept(converted), kept(values)):
        raise invalid(f"Input {name} has numbers outside the range of {dtype.name}.")
    return converted


def array_of(name, value, dtype):
    """JSON values in lists of lists as an array; of bytes if `dtype` is that of strings. Raises ServingError."""
    found = np.array(value, object)  # where lists differ in length, they are its values
    flat = found.ravel().tolist()
    if dtype.kind == "O":
        array = np.empty(len(flat), object)
        array[:] = [text_of(name, one) for one in flat]
    else:
        for one in flat:
            if type(one) not in NUMBERS[dtype.kind]:
                raise invalid(f"Input {name} takes {dtype.name}; the request has {shortened(one)}.")
        array = np.array(flat, (float if dtype.kind in "fV" else None) if flat else dtype)
    return array.reshape(found.shape)


def text_of(name, value):
    """The bytes of a JSON string, or of {"b64": ...}. Raises ServingError."""
    try:
        return value.encode() if isinstance(value, str) else base64.b64decode(value["b64"], validate=True)
    except (TypeError, LookupError, ValueError) as error:  # the last two: no base64, and half of a surrogate pair
        raise invalid(f"Input {name} takes strings; the request has {shortened(value)}: {str(error)[:100]}.") from None


def is_bytes(value):
    """Whether a JSON value is {"b64": "..."}."""
    return isinstance(value, dict) and value.keys() == {"b64"} and isinstance(value["b64"], str)


def shortened(value):
    """A value for an error message, of which only the beginning is read."""
    if isinstance(value, dict):
        value = dict(itertools.islice(value.items(), 5))
    is_nested = isinstance(value, (dict, list))
    return (reprlib.repr(value) if is_nested else json.dumps(value[:80] if isinstance(value, str) else value))[:80]


def check_shape(name, shape, wanted, limits):
    """Raises ServingError unless an array of the shape is one that the signature takes, and within the limits."""
    if shape:
        limits.check("max_rows", shape[0], "The request has {} examples")
    fits = wanted.shape is None or (
        len(shape) == len(wanted.shape)
        and all(size in (None, found) for size, found in zip(wanted.shape, shape, strict=True))
    )
    has_empty_rows = wanted.dtype == object and 0 in shape[1:] and shape[0]
    if not fits or has_empty_rows:
        expected = ",".join("?" if size is None else str(size) for size in wanted.shape or ())
        raise invalid(f"Input {name} has shape {list(shape)}, expected [{expected}].")
    limits.check("max_body_bytes", math.prod(shape) * wanted.dtype.itemsize, DESCRIBED)
