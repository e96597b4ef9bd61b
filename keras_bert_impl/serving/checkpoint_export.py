"""A checkpoint directory, exported to a SavedModel before it is served."""

import os
import pathlib
import subprocess
import sys
import tempfile

from keras_bert_impl.checkpoints import local_directory
from keras_bert_impl.console import say
from keras_bert_impl.serving.models import highest_version


def is_checkpoint(directory):
    """Whether a directory is a checkpoint of weights, and not one of SavedModels."""
    directory = pathlib.Path(directory)
    return (directory / "config.json").is_file() and highest_version(directory) is None


def exported(model, opened):
    """The ServedModel, with a checkpoint replaced by a SavedModel in a temporary directory, removed as the
    contextlib.ExitStack `opened` is closed. Raises ValueError as `export_checkpoint`."""
    checkpoint = local_directory(model.directory)  # that of a run holds it in a folder
    if not is_checkpoint(checkpoint):
        return model
    directory = opened.enter_context(tempfile.TemporaryDirectory(prefix="keras-bert-serve-"))
    say(f"{checkpoint} is a checkpoint: it is exported to a SavedModel first, which takes about half a minute.")
    export_checkpoint(checkpoint, directory)
    return model._replace(directory=directory)


def export_checkpoint(directory, target):
    """Writes the checkpoint in `directory` as the SavedModel `target`/1, for what the checkpoint was trained for.

    A process of its own does it: this one keeps no second copy of the weights.

    Raises: ValueError with the error of `keras-bert export` if it fails.
    """
    output = pathlib.Path(target) / "1"
    command = [sys.executable, "-m", "keras_bert_impl", "export", f"--model={directory}", f"--output={output}"]
    root = str(pathlib.Path(__file__).parents[2])
    paths = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": paths, "CUDA_VISIBLE_DEVICES": "-1"}  # the GPU is for serving
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no message"])[-1].removeprefix("error: ")
        raise ValueError(f"the checkpoint {directory} could not be exported to a SavedModel: {reason}")
