"""The state of a training in one file, as one process writes it.

A file is written under a temporary name, flushed to the disk, and then renamed: files with a final name are always
complete. NumPy's files hold a checksum of each array, by which a file that the disk damages later is detected.
"""

import contextlib
import errno
import json
import os
import struct
import zipfile
import zlib

import numpy as np

from keras_bert_impl import distribution
from keras_bert_impl.callbacks.sharded_state import DamagedState


def write(path, groups, arrays, notes):
    """Writes a file; arguments as for `sharded_state.write`. All processes must call it; one of them writes.

    Raises: OSError if the disk is full; a file of the same name is not touched in that case.
    """
    content = {f"more/{name}": array for name, array in arrays.items()}
    for group, variables in groups.items():
        content |= {f"{group}/{place}": distribution.to_numpy(variable) for place, variable in enumerate(variables)}
    if not distribution.is_chief():
        return
    content["notes"] = np.array(json.dumps(notes))
    writing = path.with_name("writing.npz")
    with writing.open("wb") as file:
        np.savez(file, **{name: as_storable(array) for name, array in content.items()})
        file.flush()
        os.fsync(file.fileno())
    os.replace(writing, path)


class FileState:
    """A saved state, with the methods of `ShardedState`. Arrays are read when they are asked for, one at a time.

    Args:
        path: of the file.

    Raises: DamagedState; OSError if it cannot be read.
    """

    def __init__(self, path):
        self.path = path
        with reporting_damage(path):
            self.file = np.load(path)
            self.notes = json.loads(str(self.file["notes"]))

    def check(self):
        """Reads the whole file. Raises DamagedState if a checksum differs."""
        with reporting_damage(self.path):
            damaged = self.file.zip.testzip()
        if damaged is not None:
            raise DamagedState(f"{self.path}: the checksum of {damaged} differs.")

    def count(self, group):
        """The number of a group's arrays."""
        return sum(name.startswith(f"{group}/") for name in self.file.files)

    def values(self, group, variables):
        """Yields the arrays of a group, in the order of the variables."""
        for place in range(len(variables)):
            yield self._read(f"{group}/{place}")

    def arrays(self):
        """The arrays that were saved beside the variables, by their names."""
        names = [name for name in self.file.files if name.startswith("more/")]
        return {name.removeprefix("more/"): self._read(name) for name in names}

    def all_arrays(self):
        """Every array that was saved, as "group/place" and "more/name"."""
        return {name: self._read(name) for name in self.file.files if name != "notes"}

    def _read(self, name):
        try:
            return self.file[name]
        except (ValueError, EOFError, zipfile.BadZipFile) as error:
            raise OSError(f"{self.path} was intact when it was checked, and now it is not readable: {error}") from None


# What zipfile and NumPy raise for damaged files; RuntimeError where a byte says that the file is encrypted.
UNREADABLE = (ValueError, KeyError, EOFError, RuntimeError, OverflowError, zipfile.BadZipFile, zlib.error, struct.error)


@contextlib.contextmanager
def reporting_damage(path):
    """Turns what NumPy raises for a damaged file into DamagedState; that a file cannot be read now is no damage."""
    try:
        yield
    except DamagedState:
        raise
    except OSError as error:
        if error.errno != errno.EINVAL:  # a damaged directory of the file names a place before its beginning
            raise
        raise DamagedState(f"{path}: {error}") from None
    except UNREADABLE as error:
        raise DamagedState(f"{path}: {error}") from None


def as_storable(array):
    """Converts bfloat16, which NumPy's files cannot hold, to float32, which represents all its values exactly."""
    array = np.asarray(array)
    return array.astype("float32") if array.dtype.name == "bfloat16" else array
