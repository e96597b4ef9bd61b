"""Reads pytorch_model.bin without torch, and without running the functions that its pickle names.

Since torch 1.6 such a file is a zip: `*/data.pkl` describes the tensors, `*/data/KEY` holds the bytes of each storage.
Before, it was a sequence of pickles, the fourth of which describes the tensors, followed by the storages.
A pickle names the functions to call; this reader knows the few that describe tensors, calls its own functions in their
place, and refuses all others.
"""

import collections
import io
import pathlib
import pickle
import pickletools
import typing
import weakref
import zipfile
from collections.abc import Callable

import numpy as np

from keras_bert_impl.checkpoints import tensor_tables
from keras_bert_impl.checkpoints.safetensors_file import BYTES, FLOATS, to_float32

# torch's kinds of storage, as safetensors names their types.
STORAGES = {
    "DoubleStorage": "F64",
    "FloatStorage": "F32",
    "HalfStorage": "F16",
    "BFloat16Storage": "BF16",
    "LongStorage": "I64",
    "IntStorage": "I32",
    "ShortStorage": "I16",
    "CharStorage": "I8",
    "ByteStorage": "U8",
    "BoolStorage": "BOOL",
}
LARGEST_DESCRIPTION = 2**26  # bytes; that of BERT-large has 60,000
OLD_FORMAT = 0x1950A86A20F9469CFC6C  # the first pickle of a file from before torch 1.6
REMEDY = "If you trust it, load it with transformers and save it again: that writes model.safetensors."


class Storage(typing.NamedTuple):
    """Where the numbers of a tensor lie: their type, and the name of their storage."""

    kind: str
    key: str


class Tensor(typing.NamedTuple):
    """A tensor as its pickle describes it; its numbers have not been read."""

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class Opened(typing.NamedTuple):
    """A file whose description has been read: its content, the size of every storage in bytes, and how to read one."""

    content: object
    sizes: dict[str, int]
    read: Callable[[str], bytes]


def open_torch_file(path):
    """A pytorch_model.bin as a `tensor_tables.Source`.

    Raises: ValueError if the file is damaged, asks for anything but tensors, or describes one that does not lie within
        its storage.
    """
    path = pathlib.Path(path)
    try:
        opened = _open_zip(path) if zipfile.is_zipfile(path) else _open_old(path)
        for name, tensor in opened.content.items():
            _check(name, tensor, opened.sizes)
    # A damaged or hostile file can raise errors of any kind: of unpickling, of zip, missing arguments.
    except Exception as error:
        raise ValueError(f"{path} is not a file of tensors that can be read safely: {error}. {REMEDY}") from error
    content = opened.content

    def read(name):
        (kind, key), offset, shape, strides = content[name]
        numbers = np.frombuffer(opened.read(key), FLOATS[kind])
        steps = [step * numbers.itemsize for step in strides]
        view = np.lib.stride_tricks.as_strided(numbers[offset:], shape, steps, writeable=False)
        return to_float32(view, kind == "BF16")

    shapes = {name: tensor.shape for name, tensor in content.items()}
    kinds = {name: tensor.storage.kind for name, tensor in content.items()}
    return tensor_tables.Source(str(path), shapes, read, kinds)


def _open_zip(path):
    archive = zipfile.ZipFile(path)
    members = {info.filename.partition("/")[2]: info for info in archive.infolist()}
    # torch does not compress. A small compressed file could expand to any amount of memory.
    is_compressed = any(info.compress_type or info.compress_size != info.file_size for info in members.values())
    _refuse_if(is_compressed, "it is a compressed zip, which torch does not write")
    is_big_endian = "byteorder" in members and archive.read(members["byteorder"]) != b"little"
    _refuse_if(is_big_endian, "its numbers are big-endian")
    content = _describe(io.BytesIO(archive.read(members["data.pkl"])))

    def read(key):
        return archive.read(members[f"data/{key}"])

    sizes = {name.removeprefix("data/"): info.file_size for name, info in members.items() if name.startswith("data/")}
    return Opened(content, sizes, read)


def _open_old(path):
    """A file from before torch 1.6."""
    file = path.open("rb")
    magic, version, system = (_describe(file) for _ in range(3))
    is_other = magic != OLD_FORMAT or version != 1001 or not system["little_endian"]
    _refuse_if(is_other, f"torch did not write it, its version is {version}, not 1001, or it is big-endian")
    content, keys = _describe(file), _describe(file)
    kinds = {tensor.storage.key: tensor.storage.kind for tensor in content.values()}
    begins, sizes = {}, {}
    for key in keys:
        sizes[key] = int.from_bytes(file.read(8), "little") * BYTES[kinds[key]]
        begins[key] = file.tell()
        file.seek(sizes[key], io.SEEK_CUR)
    _refuse_if(file.tell() > path.stat().st_size, "it is truncated")

    def read(key):
        file.seek(begins[key])
        return file.read(sizes[key])

    weakref.finalize(read, file.close)
    return Opened(content, sizes, read)


def _describe(file):
    """The content of the next pickle in a file."""
    start = file.tell()
    for operation, _, position in pickletools.genops(file):
        # torch writes protocol 2. A later one can request more memory than the file fills.
        is_bad = operation.proto > 4 or position - start > LARGEST_DESCRIPTION
        _refuse_if(is_bad, f"its description of tensors is too long or uses {operation.name}")
    file.seek(start)
    return _Description(file).load()


def _refuse_if(is_bad, what):
    if is_bad:
        raise ValueError(what)


def _check(name, tensor, sizes):
    """Raises ValueError unless it is a tensor, and every number of it lies within what the file holds."""
    _refuse_if(not isinstance(name, str) or not isinstance(tensor, Tensor), "it holds something other than tensors")
    numbers = (tensor.offset, *tensor.shape, *tensor.strides)
    is_bad = len(tensor.shape) != len(tensor.strides) or not all(type(n) is int and n >= 0 for n in numbers)
    _refuse_if(is_bad, f"{name} has the shape {tensor.shape} and the strides {tensor.strides}")
    last = tensor.offset + sum((size - 1) * step for size, step in zip(tensor.shape, tensor.strides, strict=True))
    held = sizes.get(tensor.storage.key, 0) // BYTES[tensor.storage.kind]
    is_outside = 0 not in tensor.shape and last >= held
    _refuse_if(is_outside, f"{name} of shape {tensor.shape} needs {last + 1} numbers, but its storage has {held}")


# The unpickler in Python: the one in C allocates as much memory as a number in the file asks for.
class _Description(pickle._Unpickler):
    """Builds `Tensor`s, dicts and plain values, nothing else."""

    def find_class(self, module, name):
        if (module, name) == ("collections", "OrderedDict"):
            return collections.OrderedDict
        # New functions each time: a pickle may set attributes of the functions that it gets.
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return lambda storage, offset, shape, strides, *rest: Tensor(storage, offset, tuple(shape), tuple(strides))
        if (module, name) == ("torch._utils", "_rebuild_parameter"):
            return lambda tensor, *rest: tensor
        if module == "torch" and name in STORAGES:
            return STORAGES[name]
        raise ValueError(f"it asks to run {module}.{name}, which does not describe a tensor")

    def persistent_load(self, saved):
        is_storage = isinstance(saved, tuple) and len(saved) in (5, 6) and saved[0] == "storage"
        is_bad = not is_storage or saved[1] not in BYTES or not isinstance(saved[2], str) or any(saved[5:])
        _refuse_if(is_bad, f"it refers to {saved!r:.80}, which is not a storage of numbers")
        return Storage(saved[1], saved[2])
