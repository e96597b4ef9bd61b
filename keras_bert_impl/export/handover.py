"""Runs the writer of an export on the backend that it needs: here, or in a process of its own.

A writer is a module of this folder with a function `write(model, tokenizer, sequence_length, target)`. On another
backend, this process writes the model to a directory and starts the module, which calls `main(write)`:

    python -m keras_bert_impl.export.text_signatures HANDOVER TARGET
"""

import importlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import keras

from keras_bert_impl.encoders.asked import kind_of
from keras_bert_impl.text.tokenizers import tokenizer_from_config, tokenizer_to_config


def write_on(backend, writer, model, tokenizer, sequence_length, target):
    """Calls `write` of the module `writer`, by its full name, on a backend.

    Raises: ValueError if a class of the user's own cannot be imported there; RuntimeError with the error messages of
        the other process if that fails.
    """
    if keras.backend.backend() == backend:
        # Imported here and not at the top: on another backend it may not be installed.
        importlib.import_module(writer).write(model, tokenizer, sequence_length, target)
        return
    described = class_for_another_process(model)
    with tempfile.TemporaryDirectory() as handover:
        # Not a .keras file: it would also hold the loss, which may be a function that the other process cannot find.
        description = {
            "class": (described.__module__, described.__name__),
            "config": model.get_config(),
            "tokenizer": tokenizer_to_config(tokenizer),
            "sequence_length": sequence_length,
        }
        pathlib.Path(handover, "model.json").write_text(json.dumps(description), encoding="utf-8")
        model.save_weights(pathlib.Path(handover, "model.weights.h5"))
        command = [sys.executable, "-m", writer, handover, target]
        process = subprocess.run(command, env=_environment(backend), capture_output=True, text=True)
    if process.returncode:
        raise RuntimeError(f"The process that writes the export on {backend} failed:\n{process.stderr.strip()}")


def main(write):
    """Calls `write` with the model that `write_on` put into the directory that the command line names first."""
    handover, target = sys.argv[1:]
    description = json.loads(pathlib.Path(handover, "model.json").read_text(encoding="utf-8"))
    module, name = description["class"]
    model = getattr(importlib.import_module(module), name).from_config(description["config"])
    model.load_weights(pathlib.Path(handover, "model.weights.h5"))
    tokenizer = tokenizer_from_config(description["tokenizer"])
    write(model, tokenizer, description["sequence_length"], pathlib.Path(target))


def class_for_another_process(model):
    """The class from which another process builds the model: for a subclass that computes what its parent does, the
    parent.

    Raises: ValueError if a class of the user's own changes what is computed and another process cannot import it.
    """
    kind, own = kind_of(model), type(model)
    between = own.__mro__[: own.__mro__.index(kind)]
    if not any(name in vars(parent) for parent in between for name in ("__init__", "call", "get_config")):
        return kind
    if own.__module__ == "__main__" or "<locals>" in own.__qualname__:
        raise ValueError(
            f"{own.__name__} changes what its parent {kind.__name__} computes, but the process that writes the "
            f"export cannot import it from {own.__module__}: define the class at the top level of a module of its "
            "own."
        )
    return own


def _environment(backend):
    # The new process can import whatever this one can, including a user's class.
    paths = filter(None, sys.path)
    return {
        **os.environ,
        "KERAS_BACKEND": backend,
        "PYTHONPATH": os.pathsep.join(paths),
        "CUDA_VISIBLE_DEVICES": "-1",  # the training process may hold all memory of the GPU; writing needs none
        "TF_CPP_MIN_LOG_LEVEL": "2",
    }
