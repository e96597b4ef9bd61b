"""Directories of JAX arrays to which every process writes its parts, while training goes on.

Orbax writes them, under another name until they are complete, to local and remote directories. A state can be read by
another number of processes and devices. Orbax keeps no checksums of values: those of the arrays are computed on the
devices, from each value and its position, so that they do not depend on how an array is divided.
"""

import functools
import importlib.util
import json
import pathlib
import shutil
import zlib

import keras
import numpy as np

MANIFEST = "manifest"
UNFINISHED = ".orbax-checkpoint-tmp"  # part of the name of a local directory while Orbax writes it
FILE_ARRAYS = "more"  # NumPy arrays that all processes have; the first one writes them


class DamagedState(ValueError):
    """The values of a saved state are not those that were saved."""


def check_orbax():
    """Raises ImportError if Orbax, which is an extra, is missing."""
    if importlib.util.find_spec("orbax") is None or importlib.util.find_spec("orbax.checkpoint") is None:
        raise ImportError(
            "Orbax is needed to save the state of several JAX processes, or to a remote directory: pip "
            "install 'keras_bert_impl[orbax]' on all of them."
        )


def write(path, groups, arrays, notes):
    """Copies the values from the devices, returns when training may change them, and writes them in the background.
    All processes must call it.

    Args:
        path: of the directory; replaced if it exists.
        groups: dict from a name to a list of Keras variables.
        arrays: dict of NumPy arrays.
        notes: a JSON value.

    Raises: OSError, ValueError, RuntimeError if the state before could not be written.
    """
    import orbax.checkpoint as ocp

    wait()
    values = {name: [variable.value for variable in variables] for name, variables in groups.items() if variables}
    manifest = {
        "notes": notes,
        "shapes": {name: [list(value.shape) for value in group] for name, group in values.items()},
        "dtypes": {name: [value.dtype.name for value in group] for name, group in values.items()},
        "checksums": {name: checksums(group) for name, group in values.items()},
        "arrays": {name: zlib.crc32(np.ascontiguousarray(array)) for name, array in arrays.items()},
    }
    text = json.dumps(manifest)
    items = {name: ocp.args.PyTreeSave(numbered(group)) for name, group in values.items()}
    if arrays:
        items[FILE_ARRAYS] = ocp.args.PyTreeSave(numbered(map(np.asarray, arrays.values())))
    items[MANIFEST] = ocp.args.JsonSave({"text": text, "crc32": zlib.crc32(text.encode())})
    _checkpointer().save(_for_orbax(path), args=ocp.args.Composite(**items), force=True)


def wait():
    """Returns when the last state is complete; all processes must call it. Raises the error with which it failed."""
    _checkpointer().wait_until_finished()
    _checkpointer().check_for_errors()


class ShardedState:
    """A saved state.

    Args:
        path: of its directory.

    Raises: DamagedState; OSError or ValueError if it cannot be read.
    """

    def __init__(self, path):
        self.path = path
        try:
            # Not by Orbax, for which all processes would have to read at once.
            found = json.loads((path / MANIFEST / "metadata").read_text())
            if zlib.crc32(found["text"].encode()) != found["crc32"]:
                raise DamagedState(f"{path}: the checksum of the manifest differs.")
            self.manifest = json.loads(found["text"])
            self.notes = self.manifest["notes"]
        except (KeyError, TypeError, AttributeError, UnicodeDecodeError, json.JSONDecodeError) as error:
            raise DamagedState(f"{path}: the manifest is not readable ({error!r}).") from None

    def count(self, group):
        """The number of a group's arrays."""
        return len(self.manifest["shapes"].get(group, []))

    def values(self, group, variables):
        """The arrays of a group, of which each device has received only its part.

        Args:
            group: its name.
            variables: as many, in whose layout the arrays are returned.

        Raises: DamagedState; ValueError if a variable has another shape, or if the state cannot be read.
        """
        import orbax.checkpoint as ocp

        if not variables:
            return []
        for variable, shape in zip(variables, self.manifest["shapes"][group], strict=True):
            check_shape(variable, shape)
        layouts = [
            ocp.ArrayRestoreArgs(sharding=one.value.sharding, global_shape=one.value.shape, dtype=dtype)
            for one, dtype in zip(variables, self.manifest["dtypes"][group], strict=True)
        ]
        empty = numbered([0] * len(variables))
        read = ocp.args.PyTreeRestore(item=empty, restore_args=numbered(layouts))
        found = in_order(self._restored(group, read))
        for variable, value, saved in zip(variables, checksums(found), self.manifest["checksums"][group], strict=True):
            if value != saved:
                raise DamagedState(f"{self.path}: the checksum of {variable.path} is {value:08x}, not {saved:08x}.")
        return found

    def arrays(self):
        """The NumPy arrays that were saved, by their names. Raises DamagedState."""
        import orbax.checkpoint as ocp

        names = self.manifest["arrays"]
        if not names:
            return {}
        kinds = numbered([ocp.RestoreArgs(restore_type=np.ndarray)] * len(names))
        read = ocp.args.PyTreeRestore(item=numbered([0] * len(names)), restore_args=kinds)
        found = dict(zip(names, in_order(self._restored(FILE_ARRAYS, read)), strict=True))
        for name, array in found.items():
            if zlib.crc32(np.ascontiguousarray(array)) != names[name]:
                raise DamagedState(f"{self.path}: the checksum of {name} differs.")
        return found

    def _restored(self, item, arguments):
        import orbax.checkpoint as ocp

        try:
            return _checkpointer().restore(_for_orbax(self.path), args=ocp.args.Composite(**{item: arguments}))[item]
        except (OSError, ValueError, KeyError) as error:
            # One process alone may see it: that is no reason to go on without the others.
            reason = str(error).strip().splitlines()[-1][:300]
            raise ValueError(
                f"{self.path} cannot be read ({type(error).__name__}: {reason}). Nothing was removed: run again when "
                "all processes can read it, or move it away to resume from the state before it."
            ) from error


def path_of(directory):
    """A directory as a pathlib.Path; a remote one, such as gs://bucket/folder, as etils' path with the same methods."""
    if "://" not in str(directory):
        return pathlib.Path(directory)
    check_orbax()
    is_google = str(directory).startswith("gs://")
    if is_google and not any(map(importlib.util.find_spec, ("tensorflow", "gcsfs"))):
        raise ImportError(f"{directory} cannot be opened without gcsfs: pip install 'keras_bert_impl[gcs]'.")
    from etils import epath

    return epath.Path(directory)


def is_complete(path):
    """Whether the directory of a state was written completely, and not left by a process that was killed."""
    check_orbax()
    import orbax.checkpoint as ocp

    return path.is_dir() and ocp.utils.is_checkpoint_finalized(path)


def remove_directory(path):
    """Removes the directory of a state; if this is interrupted, what is left does not count as complete."""
    if isinstance(path, pathlib.Path):
        shutil.rmtree(path if UNFINISHED in path.name else path.rename(path.with_name(path.name + UNFINISHED)))
        return
    (path / "commit_success.txt").unlink(missing_ok=True)
    path.rmtree()


def _for_orbax(path):
    return path.absolute() if isinstance(path, pathlib.Path) else path


@functools.cache
def _checkpointer():
    """Orbax's; its threads live as long as the process."""
    import orbax.checkpoint as ocp

    return ocp.AsyncCheckpointer(ocp.CompositeCheckpointHandler())


def check_shape(variable, shape):
    """Raises ValueError if a variable has another shape than it was saved with."""
    if tuple(shape) != tuple(variable.shape):
        raise ValueError(
            f"The saved {variable.path} has shape {tuple(shape)}, this run's has {tuple(variable.shape)}: resume with "
            "the same configuration, or name another directory."
        )


def numbered(values):
    """The dict {"0": first, "1": second, ...}: names of variables may hold what Orbax cannot use in a file's name."""
    return {str(place): value for place, value in enumerate(values)}


def in_order(found):
    """The values of a dict that `numbered` made."""
    return [found[str(place)] for place in range(len(found))]


def checksums(arrays):
    """A checksum of each array's bits, as numbers below 2**32; all processes must call this function."""
    import jax

    mesh = keras.distribution.distribution()
    whole = None if mesh is None else jax.sharding.NamedSharding(mesh.device_mesh.backend_mesh, jax.P())
    compute = _compiled(whole)
    return [int(value) for value in jax.device_get([compute(array) for array in arrays])]


@functools.cache
def _compiled(sharding):
    import jax

    return jax.jit(_checksum, out_shardings=sharding)


def _checksum(array):
    """The sum, modulo 2**32, of a hash of each value's bits and its position (MurmurHash3's last step)."""
    import jax
    from jax import numpy as jnp

    if array.dtype == bool:
        array = array.astype("uint8")
    width = min(array.dtype.itemsize, 4)  # a value of 8 bytes becomes two of 4
    bits = jax.lax.bitcast_convert_type(array, f"uint{8 * width}").astype("uint32")
    place, stride = jnp.zeros(bits.shape, "uint32"), 1
    for axis in reversed(range(bits.ndim)):
        place += jax.lax.broadcasted_iota("uint32", bits.shape, axis) * np.uint32(stride % 2**32)
        stride *= bits.shape[axis]
    mixed = bits ^ (place * np.uint32(0x9E3779B1))
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        mixed = (mixed ^ (mixed >> shift)) * np.uint32(factor)
    return jnp.sum(mixed ^ (mixed >> 16), dtype="uint32")
