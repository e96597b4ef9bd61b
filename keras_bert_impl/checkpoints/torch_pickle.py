"""pytorch_model.bin without torch, and without running what its pickle asks for.

Since torch 1.6 such a file is a zip: `*/data.pkl` describes the tensors, `*/data/KEY` holds the bytes of each storage.
A pickle names the functions it wants called; this reader knows the handful that describe tensors, calls its own in
their place, and refuses every other.
"""

import collections
import pathlib
import pickle
import typing
import zipfile

import ml_dtypes
import numpy as np

from keras_bert_impl.checkpoints import tables

STORAGES = {
    "DoubleStorage": np.float64,
    "FloatStorage": np.float32,
    "HalfStorage": np.float16,
    "BFloat16Storage": ml_dtypes.bfloat16,
    "LongStorage": np.int64,
    "IntStorage": np.int32,
    "ByteStorage": np.uint8,
    "BoolStorage": np.bool_,
}
FLOATS = ("DoubleStorage", "FloatStorage", "HalfStorage", "BFloat16Storage")


class Storage(typing.NamedTuple):
    """Where the numbers of a tensor lie: the kind of storage, its name in the zip, its length in numbers."""

    kind: str
    key: str
    size: int


class Tensor(typing.NamedTuple):
    """A tensor as its pickle describes it; nothing of it has been read."""

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def open_torch_file(path):
    """A pytorch_model.bin as a `tables.Source`.

    Raises: ValueError if the file is damaged, older than torch 1.6, asks for anything but tensors, or describes one
        that does not lie within its storage.
    """
    path = pathlib.Path(path)
    if not zipfile.is_zipfile(path):
        raise ValueError(
            f"{path} is damaged, or was written before torch 1.6, whose files cannot be read without running them. "
            "Load it with transformers and save it again: that writes model.safetensors."
        )
    with zipfile.ZipFile(path) as archive:
        members = {name.split("/", 1)[1]: name for name in archive.namelist() if "/" in name}
        if "data.pkl" not in members:
            raise ValueError(f"{path} is a zip without data.pkl: torch did not write it.")
        with archive.open(members["data.pkl"]) as file:
            content = _describe(file, path)
        sizes = {name: archive.getinfo(member).file_size for name, member in members.items()}
    if not isinstance(content, dict) or not all(isinstance(value, Tensor) for value in content.values()):
        raise ValueError(f"{path} holds something other than a dict of tensors.")
    # Integers are buffers such as position_ids: no weight of a BERT.
    tensors = {name: tensor for name, tensor in content.items() if tensor.storage.kind in FLOATS}
    for name, tensor in tensors.items():
        _check(path, name, tensor, sizes)

    def read(name):
        tensor = tensors[name]
        with zipfile.ZipFile(path) as archive:
            numbers = np.frombuffer(archive.read(members[f"data/{tensor.storage.key}"]), STORAGES[tensor.storage.kind])
        steps = [step * numbers.itemsize for step in tensor.strides]
        return np.lib.stride_tricks.as_strided(numbers[tensor.offset :], tensor.shape, steps, writeable=False)

    return tables.Source(str(path), {name: tensor.shape for name, tensor in tensors.items()}, read)


def _describe(file, path):
    try:
        return _Description(file, path).load()
    except ValueError:
        raise
    # Whatever else a damaged pickle leads to: unpickling errors, missing arguments, the end of the file.
    except Exception as error:
        raise ValueError(f"{path} is damaged: its description of tensors cannot be read ({error}).") from error


def _check(path, name, tensor, sizes):
    """Raises ValueError unless every number of the tensor lies within what the file holds."""
    last = tensor.offset + sum((size - 1) * step for size, step in zip(tensor.shape, tensor.strides, strict=True))
    held = sizes.get(f"data/{tensor.storage.key}", 0) // np.dtype(STORAGES[tensor.storage.kind]).itemsize
    numbers = (tensor.offset, *tensor.shape, *tensor.strides)
    if not all(isinstance(number, int) and number >= 0 for number in numbers) or (
        last >= held and 0 not in tensor.shape
    ):
        raise ValueError(f"{path}: {name} of shape {tensor.shape} reaches to number {last + 1} of a storage of {held}.")


class _Description(pickle.Unpickler):
    """Builds `Tensor`s and dicts, nothing else."""

    def __init__(self, file, path):
        super().__init__(file)
        self.path = path

    def find_class(self, module, name):
        if (module, name) == ("collections", "OrderedDict"):
            return collections.OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return lambda storage, offset, shape, strides, *rest: Tensor(storage, offset, tuple(shape), tuple(strides))
        if (module, name) == ("torch._utils", "_rebuild_parameter"):
            return lambda tensor, *rest: tensor
        if module == "torch" and name in STORAGES:
            return name
        raise ValueError(f"{self.path} asks to run {module}.{name}, which describes no tensor: refused.")

    def persistent_load(self, saved):
        if not (isinstance(saved, tuple) and len(saved) == 5 and saved[0] == "storage" and saved[1] in STORAGES):
            raise ValueError(f"{self.path} refers to {saved!r:.80}, which is no storage of numbers: refused.")
        return Storage(saved[1], str(saved[2]), int(saved[4]))
