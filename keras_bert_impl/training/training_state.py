"""The state of a training, kept so that it goes on bit for bit where it stopped.

State is the model's weights and random generators, the optimizer's variables, and what the caller adds. A file is
written under another name, flushed to the disk, and renamed; so whatever happens, files with a final name are whole,
and one that a disk damaged later is found by its checksums when it is read.
"""

import json
import os
import pathlib
import zipfile

import keras
import numpy as np

from keras_bert_impl import distribution
from keras_bert_impl.console import say

KEPT = 2  # files: the last, and the one before in case the last is damaged


class TrainingState:
    """States of one training in a directory, `step-NNNNNNNN.npz`.

    Args:
        directory: made when the first is saved.
    """

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)

    def save(self, model, step, notes=None, arrays=None):
        """Writes the state after `step` steps, and removes all but the last two. Of several processes all call it, and
        one writes.

        Args:
            model: compiled, its optimizer built.
            step: how far training is.
            notes: JSON to keep with it.
            arrays: dict of further arrays.

        Raises: OSError if the disk is full; the states before are untouched then.
        """
        content = {f"more/{name}": array for name, array in (arrays or {}).items()}
        for kind, variables in variables_of(model).items():
            content |= {f"{kind}/{p}": distribution.to_numpy(variable) for p, variable in enumerate(variables)}
        if not distribution.is_chief():
            return
        content["notes"] = np.array(json.dumps(notes))
        self.directory.mkdir(parents=True, exist_ok=True)
        path, writing = self.directory / f"step-{step:08d}.npz", self.directory / "writing.npz"
        with writing.open("wb") as file:
            np.savez(file, **{name: as_storable(array) for name, array in content.items()})
            file.flush()
            os.fsync(file.fileno())
        os.replace(writing, path)
        for old in self.paths()[:-KEPT]:
            old.unlink()

    def paths(self):
        """The files there are, oldest first."""
        return sorted(self.directory.glob("step-*.npz"))

    def read_last(self):
        """(step, arrays, notes) of the last whole file; None without any. A damaged one is named and passed over."""
        for path in reversed(self.paths()):
            try:
                with np.load(path) as file:
                    arrays = {name: file[name] for name in file.files}  # reading compares the checksums
                return int(path.stem.removeprefix("step-")), arrays, json.loads(str(arrays.pop("notes")))
            except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
                say(f"  {path} is damaged ({error}): going on from the state before it")
                path.unlink()
        return None


def restore(model, arrays):
    """Puts the arrays of `TrainingState.read_last` into a compiled model of the same shape; gives back the rest.

    Raises: ValueError if the model or its optimizer has other variables.
    """
    model.optimizer.build(model.trainable_variables)
    for kind, variables in variables_of(model).items():
        found = [name for name in arrays if name.startswith(f"{kind}/")]
        if len(found) != len(variables):
            raise ValueError(f"The saved state has {len(found)} variables of the {kind}, this one {len(variables)}.")
        for place, variable in enumerate(variables):
            array = arrays[f"{kind}/{place}"]
            if tuple(array.shape) != tuple(variable.shape):
                raise ValueError(f"The saved {variable.path} has shape {array.shape}, this one {variable.shape}.")
            variable.assign(array)
    return {name.removeprefix("more/"): array for name, array in arrays.items() if name.startswith("more/")}


def variables_of(model):
    """The variables that decide how training goes on: weights and states of random generators, and the optimizer's."""
    metrics = {id(variable) for variable in model.metrics_variables}
    return {
        "model": [variable for variable in model.variables if id(variable) not in metrics],
        "optimizer": model.optimizer.variables,
    }


def as_storable(array):
    """NumPy's files have no bfloat16: as float32, which holds each of its values."""
    array = np.asarray(array)
    return array.astype("float32") if array.dtype.name == "bfloat16" else array


def reseed(seed, step):
    """Starts the random generators that no variable holds, torch's own, where a run that goes on at `step` does."""
    keras.utils.set_random_seed((seed * 1_000_003 + step) % 2**32)
