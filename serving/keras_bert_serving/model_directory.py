"""The directory of a model: its versions, or a checkpoint, which is exported to a SavedModel before it is served."""

import asyncio
import os
import pathlib
import subprocess
import sys
import tempfile

from keras_bert_impl.checkpoints import local_directory
from keras_bert_impl.console import say

SAVED_MODEL = "saved_model.pb"
# A version is written completely once one of these is there: an export is renamed when it is whole.
MAIN_FILES = (SAVED_MODEL, "openvino/openvino_model.xml", "onnx/model.onnx")
LARGEST_VERSION = 2**63 - 1  # clients give a version as a 64-bit number


def highest_version(directory):
    """(number, directory) of the highest version in a model's directory that is written completely, or None."""
    directory = pathlib.Path(directory)
    if holds_model(directory):
        return 1, directory
    numbered = [path for path in directory.iterdir() if path.name.isascii() and path.name.isdigit()]
    found = [(int(path.name), path) for path in numbered if len(path.name) < 20 and holds_model(path)]
    return max((one for one in found if one[0] <= LARGEST_VERSION), default=None)


def holds_model(directory):
    """Whether a directory holds a model in a format that is served."""
    return any((directory / name).is_file() for name in MAIN_FILES)


async def exported(directory, opened):
    """The directory of a model; of a checkpoint, a temporary one with its SavedModel, removed as the
    contextlib.ExitStack `opened` is closed. Raises ValueError as `export_checkpoint`."""
    checkpoint = pathlib.Path(local_directory(directory))  # that of a run holds it in a folder
    if not (checkpoint / "config.json").is_file() or highest_version(checkpoint) is not None:
        return directory
    directory = opened.enter_context(tempfile.TemporaryDirectory(prefix="keras-bert-serve-"))
    say(f"{checkpoint} is a checkpoint: it is exported to a SavedModel first, which takes about half a minute.")
    await export_checkpoint(checkpoint, directory)
    return directory


async def export_checkpoint(directory, target):
    """Writes the checkpoint in `directory` as the SavedModel `target`/1, for what the checkpoint was trained for.

    A process of its own does it, which ends if the server is to end: this one keeps no second copy of the weights.

    Raises: ValueError with the error of `keras-bert export` if it fails.
    """
    output = pathlib.Path(target) / "1"
    command = [sys.executable, "-m", "keras_bert_training", "export", f"--model={directory}", f"--output={output}"]
    paths = os.pathsep.join(filter(None, sys.path))
    environment = {**os.environ, "PYTHONPATH": paths, "CUDA_VISIBLE_DEVICES": "-1"}  # the GPU is for serving
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    process = await asyncio.create_subprocess_exec(*command, env=environment, **pipes)
    try:
        _, errors = await process.communicate()
    except asyncio.CancelledError:
        process.kill()
        await process.wait()
        raise
    if process.returncode:
        reason = (errors.decode().strip().splitlines() or ["no message"])[-1].removeprefix("error: ")
        raise ValueError(f"the checkpoint {directory} could not be exported to a SavedModel: {reason}")
