"""Reads model.safetensors, one tensor at a time.

The file holds eight bytes with the length of the header; the header, a JSON object of names, types, shapes and places;
and the numbers. The `safetensors` library writes our files, but would map each tensor and copy it twice when it reads
them. Here a tensor is read into memory once, which keeps loading below 1.3 times the size of the weights.
"""

import json
import math
import pathlib
import weakref

import numpy as np

from keras_bert_impl.checkpoints import tensor_tables

# The bytes of a number, by safetensors' names of types. Other types can occur in a file, but not in a BERT.
BYTES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1}
FLOATS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}
LARGEST_HEADER = 100_000_000  # bytes; the limit of the safetensors library


def open_safetensors(path):
    """A safetensors file as a `tensor_tables.Source`; only its header is read. The file stays open as long as that is
    used, so that a save in its place changes nothing.

    Raises: ValueError naming the file if it is damaged or truncated, or if a tensor does not lie within it.
    """
    path = pathlib.Path(path)
    file = path.open("rb")
    try:
        entries, start = _read_header(file, path.stat().st_size)
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is damaged or not a safetensors file: {error!s:.200}.") from error

    def read(name):
        kind, (begin, end) = entries[name]["dtype"], entries[name]["data_offsets"]
        file.seek(start + begin)
        numbers = np.fromfile(file, FLOATS[kind], (end - begin) // BYTES[kind])
        return to_float32(numbers, kind == "BF16").reshape(entries[name]["shape"])

    weakref.finalize(read, file.close)
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


def _read_header(file, size):
    """The entries of the tensors, and where in the file the numbers start."""
    start = 8 + int.from_bytes(file.read(8), "little")
    if not 8 < start <= min(size, LARGEST_HEADER):
        raise ValueError(f"it has {size:,} bytes and no complete header")
    entries = {name: entry for name, entry in json.loads(file.read(start - 8)).items() if name != "__metadata__"}
    for name, entry in entries.items():
        kind, shape, (begin, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
        are_numbers = all(type(number) is int and number >= 0 for number in (*shape, begin, end))
        # The size of an unknown type is unknown, too; a tensor of such a type is refused before it is read.
        is_filled = are_numbers and (kind not in BYTES or end - begin == math.prod(shape) * BYTES[kind])
        if not is_filled or not begin <= end <= size - start:
            raise ValueError(f"{name} of type {kind} and shape {shape} cannot be bytes {begin} to {end} of {size:,}")
    return entries, start
