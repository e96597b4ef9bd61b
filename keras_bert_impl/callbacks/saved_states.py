"""The states of a training run, saved so that the run resumes bit for bit where it stopped.

A state consists of the model's weights and random generators, the optimizer's variables, and what the caller adds. A
single process, or the first of several that TensorFlow joins, writes files `step-NNNNNNNN.npz`. Several JAX processes,
and a single one whose directory is remote, write directories `step-NNNNNNNN`, each process its parts, while training
goes on. Either kind can be resumed by any number of JAX processes; other backends read files.
"""

import contextlib
import errno
import json
import os
import re
import struct
import zipfile
import zlib

import keras
import numpy as np

from keras_bert_impl import distribution
from keras_bert_impl.callbacks import sharded_state
from keras_bert_impl.callbacks.sharded_state import UNFINISHED, DamagedState
from keras_bert_impl.console import say

KEPT = 2  # states: the last one, and the one before it in case the last one is damaged
NAME, DAMAGED = re.compile(r"step-(\d{8,})(\.npz)?"), ".damaged"
NO_STEP = 2**31 - 1


class TrainingState:
    """The saved states of one training run.

    Args:
        directory: created when the first state is saved. JAX can also save to a remote one, such as
            gs://bucket/folder.

    Raises: ImportError if saving takes Orbax and it is missing; ValueError for a remote directory on another backend.
    """

    def __init__(self, directory):
        self.is_remote = "://" in str(directory)
        backend = keras.backend.backend()
        if self.is_remote and backend != "jax":
            raise ValueError(
                f"{directory} is remote, and {backend} saves training states only to local directories: name one, or a "
                "mounted bucket, or train with KERAS_BACKEND=jax."
            )
        self.is_sharded = backend == "jax" and (self.is_remote or distribution.num_processes() > 1)
        if self.is_sharded or self.is_remote:
            sharded_state.check_orbax()
        self.directory = sharded_state.path_of(directory)
        self.last_saved = None

    def save(self, model, step, notes=None, arrays=None, metrics=False):
        """Saves the state after `step` steps, and removes all but the last two. All processes must call this method.

        Args:
            model: a compiled model whose optimizer is built.
            step: number of steps trained so far.
            notes: a JSON value to save with the state.
            arrays: dict of further arrays to save.
            metrics: whether to save the metrics, too, which matter within an epoch.

        Raises: OSError if the disk is full; the earlier states are not touched in that case. What is written in the
            background fails at the next call, or in `finish`.
        """
        groups = variables_of(model) | ({"metrics": model.metrics_variables} if metrics else {})
        name = f"step-{step:08d}"
        if distribution.is_chief():
            self.directory.mkdir(parents=True, exist_ok=True)
        if not self.is_sharded:
            write_file(self.directory / f"{name}.npz", groups, arrays or {}, notes)
        elif step != self.last_saved:  # it may be due for two reasons
            self.finish()
            sharded_state.write(self.directory / name, groups, arrays or {}, notes)
        self.last_saved = step
        if not self.is_sharded:
            self._remove_old()

    def finish(self):
        """Returns when the last state is complete. All processes must call this method."""
        if self.is_sharded and self.last_saved is not None:
            sharded_state.wait()
            self._remove_old()

    def paths(self):
        """The files and directories of complete states, oldest first."""
        if not self.directory.is_dir():
            return []
        found = [path for path in self.directory.iterdir() if NAME.fullmatch(path.name)]
        complete = [path for path in found if path.suffix == ".npz" or sharded_state.is_complete(path)]
        return sorted(complete, key=lambda path: path.name)

    def _remove_old(self):
        if distribution.is_chief():
            for old in self.paths()[:-KEPT]:
                old.unlink() if old.suffix == ".npz" else sharded_state.remove_directory(old)

    def newest_first(self):
        """Yields the saved states as FileState or ShardedState; all processes get those that the chief finds.

        Asking for the next one says that a state is damaged. It is then renamed, so that it is found no more, and
        reported, but not removed.

        Raises: ValueError in all processes if they do not share the directory, if one of them cannot read a state, or
            if all states are damaged.
        """
        self.finish()
        distribution.check_shared(self.directory)
        while True:
            with distribution.failing_together():
                found = self._newest_intact() if distribution.is_chief() else None
            step = distribution.from_chief(NO_STEP if found is None else step_of(found))
            is_file = distribution.from_chief(found is not None and found.suffix == ".npz")
            if step == NO_STEP:
                return
            path = self.directory / f"step-{step:08d}{'.npz' if is_file else ''}"
            with distribution.failing_together():
                state = opened(path)
            yield state
            if distribution.is_chief():
                set_aside(path)

    def _newest_intact(self):
        """The path of the newest state whose checksums are right, so far as one process can tell; None without any."""
        self._remove_unfinished()
        for path in reversed(self.paths()):
            try:
                state = opened(path)
                if isinstance(state, FileState):
                    state.check()
                return path
            except DamagedState as error:
                say(f"  {error}")
                set_aside(path)
        if self.directory.is_dir() and any(path.name.endswith(DAMAGED) for path in self.directory.iterdir()):
            raise ValueError(
                f"All states in {self.directory} are damaged, and have been renamed to *{DAMAGED}: restore them from a "
                "copy, or remove the directory to start again from the first step."
            )
        return None

    def _remove_unfinished(self):
        """Removes the directories that processes had begun to write when they were killed."""
        for path in self.directory.iterdir() if self.directory.is_dir() else ():
            is_begun = NAME.fullmatch(path.name) and path.suffix != ".npz" and not sharded_state.is_complete(path)
            if is_begun or UNFINISHED in path.name:
                sharded_state.remove_directory(path)


def opened(path):
    """The state at a path. Raises DamagedState; ValueError or ImportError if it cannot be read here."""
    try:
        if path.suffix == ".npz":
            return FileState(path)
        if keras.backend.backend() != "jax":
            raise ValueError(f"{path} was saved by several JAX processes: resume with KERAS_BACKEND=jax.")
        sharded_state.check_orbax()
        return sharded_state.ShardedState(path)
    except OSError as error:
        raise ValueError(
            f"{path} cannot be read ({error}). Nothing was removed: run again when all processes can read it, or move "
            "it away to resume from the state before it."
        ) from None


def step_of(path):
    """The training step at which the state of this path was saved."""
    return int(NAME.fullmatch(path.name)[1])


def set_aside(path):
    """Renames a damaged state."""
    aside = path.with_name(path.name + DAMAGED)
    path.rename(aside)
    say(f"  {path.name} is damaged, and is now {aside.name}: resuming from the state before it")


def restore(model, state):
    """Assigns a saved state to a compiled model of the same shape; returns the arrays saved beside the variables.

    Raises: DamagedState; ValueError if the variables of the model or its optimizer do not match the saved ones.
    """
    model.optimizer.build(model.trainable_variables)
    for group, variables in variables_of(model).items():
        assign(group, variables, state)
    return state.arrays()


def assign(group, variables, state):
    """Assigns a group of a saved state to variables. Raises DamagedState; ValueError if they do not match."""
    if state.count(group) != len(variables):
        raise ValueError(
            f"The saved state has {state.count(group)} variables of the {group}, this run has {len(variables)}: resume "
            "with the same configuration and the same versions, or name another directory."
        )
    for variable, value in zip(variables, state.values(group, variables), strict=True):
        sharded_state.check_shape(variable, value.shape)
        distribution.assign_whole(variable, value)


def variables_of(model):
    """The variables that decide how training continues: weights, states of random generators, and the optimizer's.

    A model's `constant_variables`, such as those of a frozen teacher, have the same values when it is built again.
    """
    left_out = {id(variable) for variable in (*model.metrics_variables, *getattr(model, "constant_variables", ()))}
    return {
        "model": [variable for variable in model.variables if id(variable) not in left_out],
        "optimizer": model.optimizer.variables,
    }


def write_file(path, groups, arrays, notes):
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

    def _read(self, name):
        try:
            return self.file[name]
        except (ValueError, EOFError, zipfile.BadZipFile) as error:
            raise OSError(f"{self.path} was intact when it was checked, but can no longer be read: {error}") from None


# What zipfile and NumPy raise for damaged files; RuntimeError where a byte says that the file is encrypted.
UNREADABLE = (ValueError, KeyError, EOFError, RuntimeError, OverflowError, zipfile.BadZipFile, zlib.error, struct.error)


@contextlib.contextmanager
def reporting_damage(path):
    """Turns what NumPy raises for a damaged file into DamagedState; that a file cannot be read now is no damage."""
    try:
        yield
    except DamagedState:
        raise
    except (OSError, *UNREADABLE) as error:
        # A damaged directory of the file names a place before its beginning.
        if isinstance(error, OSError) and error.errno != errno.EINVAL:
            raise
        raise DamagedState(f"{path}: {error}") from None


def as_storable(array):
    """Converts bfloat16, which NumPy's files cannot hold, to float32, which represents all its values exactly."""
    array = np.asarray(array)
    return array.astype("float32") if array.dtype.name == "bfloat16" else array
