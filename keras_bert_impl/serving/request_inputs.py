"""The arrays of a request, checked against the signature and the limits before they take a place in the queue."""

import base64
import binascii
import dataclasses
import itertools
import json
import math
import reprlib

import numpy as np

from keras_bert_impl.serving.errors import invalid

MOST_DIMENSIONS = 8
# What a JSON number of each kind of array may be. A bool is an int to Python: it is refused by its exact type.
NUMBERS = {"f": (int, float), "V": (int, float), "i": (int,), "u": (int,), "b": (bool,)}


@dataclasses.dataclass(frozen=True)
class Limits:
    """What a request may ask for.

    Args:
        max_body_bytes: bytes of a request.
        max_rows: rows of a request.
        max_text_bytes: bytes of one text, in UTF-8.
        max_answer_bytes: bytes of the arrays of an answer.
        request_seconds: how long a request may take, waiting included.
    """

    max_body_bytes: int = 4 * 2**20
    max_rows: int = 1024
    max_text_bytes: int = 20_000
    max_answer_bytes: int = 64 * 2**20
    request_seconds: float = 30.0

    def check_count(self, rows):
        """Raises ServingError if a request has too many rows."""
        if rows > self.max_rows:
            raise invalid(
                f"The request has {rows} rows; this server takes at most {self.max_rows} (option --max_rows): "
                "send several requests."
            )

    def check_described(self, size):
        """Raises ServingError if inputs have too many bytes as arrays: a short request can describe large ones."""
        if size > self.max_body_bytes:
            raise invalid(
                f"The inputs describe arrays of {size} bytes; this server takes at most {self.max_body_bytes}."
            )

    def check_answer(self, size):
        """Raises ServingError if the arrays of an answer have too many bytes, as the attention in many long texts."""
        if size > self.max_answer_bytes:
            raise invalid(
                f"The answer has {size} bytes; this server sends at most {self.max_answer_bytes} (option "
                "--max_answer_bytes): ask about fewer or shorter texts."
            )


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
            check_texts(name, array, limits)
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
    """The values as an array of the wanted dtype; strings become bytes. Raises ServingError."""
    if not isinstance(values, np.ndarray):
        return array_of(name, values, wanted, limits)
    check_shape(name, values.shape, wanted, limits)
    if wanted.dtype == object and values.dtype != object:
        raise invalid(f"Input {name} takes strings; the request has {values.dtype.name}.")
    try:
        converted = values.astype(wanted.dtype, casting="same_kind")
    except (TypeError, ValueError, OverflowError) as error:
        raise invalid(f"Input {name} takes {wanted.dtype.name}: {str(error)[:200]}.") from None
    if converted.dtype.kind in "iu" and not np.array_equal(converted, values):
        raise invalid(f"Input {name} has numbers outside the range of {wanted.dtype.name}.")
    return converted


def array_of(name, value, wanted, limits):
    """Nested lists of JSON values as an array. Raises ServingError if they are ragged or hold other types, and before
    they are read if their first ones have another shape than is wanted, or exceed the limits."""
    shape, inner, dtype = [], value, wanted.dtype
    while isinstance(inner, list):
        if len(shape) == MOST_DIMENSIONS:
            raise invalid(f"Input {name} has lists nested more than {MOST_DIMENSIONS} deep.")
        shape.append(len(inner))
        inner = inner[0] if inner else None
    check_shape(name, shape, wanted, limits)
    flat = [value]
    for depth, size in enumerate(shape):
        for one in flat:
            if not isinstance(one, list):
                raise invalid(f"Input {name} has {shortened(one)} at level {depth}, where other values are lists.")
            if len(one) != size:
                raise invalid(
                    f"Input {name} has a list of {len(one)} values at level {depth}, where the first has {size}: "
                    "all must be equally long."
                )
        flat = [inner for one in flat for inner in one]
    leaf = text_of if dtype.kind == "O" else number_of
    array = np.empty(len(flat), dtype)
    try:
        array[:] = [leaf(name, one, dtype) for one in flat]
    except OverflowError:
        raise invalid(f"Input {name} has a number outside the range of {dtype.name}.") from None
    return array.reshape(shape)


def text_of(name, value, dtype):
    """The bytes of a JSON string, or of {"b64": ...}. Raises ServingError."""
    if isinstance(value, str):
        return utf8_of(name, value)
    if is_bytes(value):
        try:
            return base64.b64decode(value["b64"], validate=True)
        except (binascii.Error, ValueError):
            raise invalid(f"Input {name}: unable to base64 decode {shortened(value['b64'])}.") from None
    raise invalid(f"Input {name} takes strings; the request has {shortened(value)}.")


def number_of(name, value, dtype):
    """A JSON number or bool, if an array of the dtype can hold it. Raises ServingError."""
    if type(value) not in NUMBERS.get(dtype.kind, ()):
        raise invalid(f"Input {name} takes {dtype.name}; the request has {shortened(value)}.")
    if dtype.kind == "f" and np.isfinite(value) and abs(value) > float(np.finfo(dtype).max):
        raise invalid(f"Input {name} has {shortened(value)}, which is outside the range of {dtype.name}.")
    return value


def is_bytes(value):
    """Whether a JSON value is {"b64": "..."}."""
    return isinstance(value, dict) and value.keys() == {"b64"} and isinstance(value["b64"], str)


def shortened(value):
    """A value for an error message, of which only the beginning is read."""
    if isinstance(value, dict):
        value = dict(itertools.islice(value.items(), 5))
    is_nested = isinstance(value, (dict, list))
    return (reprlib.repr(value) if is_nested else json.dumps(value[:80] if isinstance(value, str) else value))[:80]


def utf8_of(name, text):
    """The bytes of a text. Raises ServingError for half of a surrogate pair, which UTF-8 has not."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise invalid(
            f"Input {name} has a text with the lone surrogate {text[error.start]!a} at character {error.start}, which "
            "is no character."
        ) from None


def check_shape(name, shape, wanted, limits):
    """Raises ServingError unless an array of the shape is one that the signature takes, and within the limits."""
    if shape:
        limits.check_count(shape[0])
    fits = wanted.shape is None or (
        len(shape) == len(wanted.shape)
        and all(size in (None, found) for size, found in zip(wanted.shape, shape, strict=True))
    )
    if not fits:
        raise invalid(f"Input {name} has shape {list(shape)}, expected {shown(wanted.shape)}.")
    if wanted.dtype == object and shape and shape[0] and 0 in shape:
        raise invalid(f"Input {name} has rows without a text: give each at least one.")
    limits.check_described(math.prod(shape) * wanted.dtype.itemsize)


def shown(shape):
    """A shape as TensorFlow writes it: [?,128]."""
    return f"[{','.join('?' if size is None else str(size) for size in shape)}]"


def check_texts(name, array, limits):
    """Raises ServingError if a text is too long."""
    longest = max(map(len, array.flat), default=0)
    if longest > limits.max_text_bytes:
        raise invalid(
            f"Input {name} has a text of {longest} bytes; this server takes at most {limits.max_text_bytes} "
            "(option --max_text_bytes)."
        )
