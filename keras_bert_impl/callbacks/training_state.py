"""The state of a training run, saved so that the run resumes bit for bit where it stopped.

The state consists of the model's weights and random generators, the optimizer's variables, and what the caller adds. A
file is written under a temporary name, flushed to the disk, and then renamed: files with a final name are always
complete, and a file that the disk damages later is detected by its checksums when it is read.
"""

import json
import os
import pathlib
import zipfile

import numpy as np

from keras_bert_impl import distribution
from keras_bert_impl.console import say

KEPT = 2  # files: the last one, and the one before it in case the last one is damaged


class TrainingState:
    """The saved states of one training run: files `step-NNNNNNNN.npz` in a directory.

    Args:
        directory: created when the first state is saved.
    """

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)

    def save(self, model, step, notes=None, arrays=None, metrics=False):
        """Writes the state after `step` steps, and removes all but the last two. With several processes, all of them
        must call this method; only one of them writes.

        Args:
            model: a compiled model whose optimizer is built.
            step: number of steps trained so far.
            notes: a JSON value to save with the state.
            arrays: dict of further arrays to save.
            metrics: whether to save the metrics, too, which matter within an epoch.

        Raises: OSError if the disk is full; the earlier states are not touched in that case.
        """
        content = {f"more/{name}": array for name, array in (arrays or {}).items()}
        kinds = variables_of(model) | ({"metrics": model.metrics_variables} if metrics else {})
        for kind, variables in kinds.items():
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
        """The files that exist, oldest first."""
        return sorted(self.directory.glob("step-*.npz"))

    def read_last(self):
        """(step, arrays, notes) of the last intact file; None without any. Damaged files are reported and removed."""
        for path in reversed(self.paths()):
            try:
                with np.load(path) as file:
                    arrays = {name: file[name] for name in file.files}  # reading compares the checksums
                return int(path.stem.removeprefix("step-")), arrays, json.loads(str(arrays.pop("notes")))
            except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
                say(f"  {path} is damaged ({error}): resuming from the state before it")
                path.unlink()
        return None


def restore(model, arrays):
    """Assigns the arrays of `TrainingState.read_last` to a compiled model of the same shape; returns the other arrays.

    Raises: ValueError if the variables of the model or its optimizer do not match the arrays.
    """
    model.optimizer.build(model.trainable_variables)
    for kind, variables in variables_of(model).items():
        assign(kind, variables, arrays)
    return {name.removeprefix("more/"): array for name, array in arrays.items() if name.startswith("more/")}


def assign(kind, variables, arrays):
    """Assigns the arrays "kind/0", "kind/1", ... to the variables. Raises ValueError if they do not match."""
    found = [name for name in arrays if name.startswith(f"{kind}/")]
    if len(found) != len(variables):
        raise ValueError(
            f"The saved state has {len(found)} variables of the {kind}, this run has {len(variables)}: resume with "
            "the same configuration and the same versions, or name another output."
        )
    for place, variable in enumerate(variables):
        array = arrays[f"{kind}/{place}"]
        if tuple(array.shape) != tuple(variable.shape):
            raise ValueError(
                f"The saved {variable.path} has shape {array.shape}, this run's has {variable.shape}: resume with "
                "the same configuration, or name another output."
            )
        variable.assign(array)


def variables_of(model):
    """The variables that decide how training continues: weights, states of random generators, and the optimizer's."""
    metrics = {id(variable) for variable in model.metrics_variables}
    return {
        "model": [variable for variable in model.variables if id(variable) not in metrics],
        "optimizer": model.optimizer.variables,
    }


def as_storable(array):
    """Converts bfloat16, which NumPy's files cannot hold, to float32, which represents all its values exactly."""
    array = np.asarray(array)
    return array.astype("float32") if array.dtype.name == "bfloat16" else array
