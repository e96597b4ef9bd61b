"""Reads model.safetensors, one tensor at a time.

The file holds eight bytes with the length of the header; the header, a JSON object of names, types, shapes and places;
and the numbers. The `safetensors` library writes our files, but would map each tensor and copy it twice when it reads
them. Here a tensor is read into memory once, which keeps loading below 1.3 times the size of the weights.
"""

import json
import math
import pathlib

import numpy as np

from keras_bert_impl.checkpoints import tensor_tables

# The bytes of a number, by safetensors' names of types. Other types can occur in a file, but not in a BERT.
BYTES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1}
FLOATS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}
LARGEST_HEADER = 100_000_000  # bytes; the limit of the safetensors library


def open_safetensors(path):
    """A safetensors file as a `tensor_tables.Source`; only its header is read.

    Raises: ValueError naming the file, and the tensor if there is one, if the file is damaged or truncated, or if a
        tensor does not lie within it.
    """
    path = pathlib.Path(path)
    header, start = _read_header(path)
    data_size = path.stat().st_size - start
    entries = {name: entry for name, entry in header.items() if name != "__metadata__"}
    for name, entry in entries.items():
        _check_entry(path, name, entry, data_size)

    def read(name):
        kind, (begin, end) = entries[name]["dtype"], entries[name]["data_offsets"]
        if kind not in FLOATS:
            raise ValueError(f"{path}: {name} is of type {kind}, expected floats: F32, F16, BF16 or F64.")
        count = (end - begin) // BYTES[kind]
        numbers = np.fromfile(path, FLOATS[kind], count, offset=start + begin)
        return to_float32(numbers, kind == "BF16").reshape(entries[name]["shape"])

    shapes = {name: tuple(entry["shape"]) for name, entry in entries.items()}
    kinds = {name: entry["dtype"] for name, entry in entries.items()}
    return tensor_tables.Source(str(path), shapes, read, kinds)


def to_float32(numbers, is_bfloat16=False):
    """Numbers of any float type as float32. bfloat16 is given as uint16: it is the upper half of a float32."""
    if is_bfloat16:
        numbers = numbers.astype("<u4")
        numbers <<= 16
        return numbers.view("<f4")
    return numbers.astype("float32", copy=False)


def _read_header(path):
    """The header, and where in the file the numbers start."""
    size = path.stat().st_size
    with path.open("rb") as file:
        start = 8 + int.from_bytes(file.read(8), "little")
        if not 8 < start <= min(size, LARGEST_HEADER):
            raise ValueError(
                f"{path} is damaged or not a safetensors file: it has {size:,} bytes and no complete header."
            )
        try:
            header = json.loads(file.read(start - 8))
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path} is damaged or not a safetensors file: its header is not JSON.") from error
    if not isinstance(header, dict):
        raise ValueError(f"{path} is damaged or not a safetensors file: its header is not a JSON object.")
    return header, start


def _check_entry(path, name, entry, data_size):
    try:
        kind, shape, (begin, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
        are_numbers = all(type(number) is int and number >= 0 for number in (*shape, begin, end))
        expected = math.prod(shape) * BYTES.get(kind, 0) if are_numbers else -1
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is damaged: {name} is described without type, shape or place.") from error
    # The size of an unknown type is unknown, too; a tensor of such a type is refused when it is read.
    if not are_numbers or begin > end or (kind in BYTES and end - begin != expected):
        raise ValueError(f"{path} is damaged: {name} of type {kind} and shape {shape} has the bytes {begin} to {end}.")
    if end > data_size:
        raise ValueError(
            f"{path} is damaged or truncated: {name} ends at byte {end:,} of {data_size:,}. Fetch or copy it again."
        )
