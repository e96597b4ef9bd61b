"""What has to happen before Keras and TensorFlow are imported; the package imports this module first.

- An installed backend is chosen: Keras by default insists on TensorFlow.
- TensorFlow's start-up messages about oneDNN and missing GPUs are hidden. They are written before TensorFlow reads its
  own log level, so only redirecting stderr hides them; a failing import raises an exception and is still reported.
- If another backend trains, TensorFlow only reads the data and leaves the accelerator's memory to that backend.

The command `keras-bert` parses its options before Keras is imported, which takes seconds.
"""

import contextlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import multiprocessing
import os
import pathlib
import sys

VERSION = "0.1.0"  # pyproject.toml reads it
WITHOUT_KERAS = "KERAS_BERT_IMPL_WITHOUT_KERAS"  # set for processes that a command without Keras starts
BACKENDS = ("tensorflow", "jax", "torch")  # in order of preference, if the user has not chosen


@contextlib.contextmanager
def without_native_output():
    """Discards what C++ writes to stderr; Python's own stderr is flushed first."""
    sys.stderr.flush()
    saved, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(nowhere)


def choose_backend():
    """Sets KERAS_BACKEND to the first backend that is installed, unless the variable or Keras' own file names one.

    Keras writes that file itself when it is first imported, always with "tensorflow": a backend that is not installed
    counts as none.
    """
    if named := os.environ.get("KERAS_BACKEND"):
        if named not in BACKENDS:
            refuse(f"KERAS_BACKEND is {named!r}, expected tensorflow, jax or torch.")
        if importlib.util.find_spec(named) is None:
            refuse(
                f"KERAS_BACKEND is {named}, which is not installed: pip install 'keras_bert_impl[{named}]', or choose "
                "another backend."
            )
        return
    named = _backend_of_file(pathlib.Path(os.environ.get("KERAS_HOME", pathlib.Path.home() / ".keras")) / "keras.json")
    if named is not None and importlib.util.find_spec(named):
        return
    installed = [name for name in BACKENDS if importlib.util.find_spec(name)]
    if not installed:
        refuse(
            "No backend is installed: keras_bert_impl runs on TensorFlow, JAX or PyTorch. "
            "pip install 'keras_bert_impl[tensorflow]', [jax] or [torch]."
        )
    os.environ["KERAS_BACKEND"] = installed[0]


def is_command():
    """Whether this process is `keras-bert`, or `python -m keras_bert_impl`, and none of the processes it starts."""
    is_module = sys.argv[0] == "-m" and "keras_bert_impl" in sys.orig_argv
    return (is_module or pathlib.Path(sys.argv[0]).stem == "keras-bert") and multiprocessing.parent_process() is None


def refuse(message):
    """Raises ImportError; ends the command `keras-bert`, which has nothing else to import first, with one line."""
    if pathlib.Path(sys.argv[0]).stem == "keras-bert" or sys.argv[0] == "-m":
        sys.exit(f"error: {message}")
    raise ImportError(message)


def _backend_of_file(path):
    """The backend that Keras' configuration file names, or None."""
    try:
        return json.loads(path.read_text(encoding="utf-8")).get("backend")
    except (OSError, ValueError):
        return None  # Keras, too, ignores a file that it cannot read


def import_keras():
    """Imports Keras, and with it the backend, without the backend's messages."""
    with without_native_output():
        import keras  # noqa: F401


class QuietTensorFlow(importlib.abc.MetaPathFinder):
    """Imports TensorFlow without its messages wherever it is first imported. Keras does it late where another backend
    trains, for example in `set_random_seed`."""

    def find_spec(self, name, path=None, target=None):
        spec = importlib.machinery.PathFinder.find_spec(name, path, target) if name == "tensorflow" else None
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def execute_quietly(module):
            with without_native_output():
                execute(module)

        spec.loader.exec_module = execute_quietly
        return spec


def leave_accelerators_to_the_backend():
    """Hides the GPUs from TensorFlow if it only reads data; to be called before its first operation."""
    import keras

    if keras.backend.backend() == "tensorflow" or importlib.util.find_spec("tensorflow") is None:
        return
    with without_native_output():
        import tensorflow as tf

        # A RuntimeError means that the user's program already uses the GPUs with TensorFlow; its choice is kept.
        with contextlib.suppress(RuntimeError):
            tf.config.set_visible_devices([], "GPU")


os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
choose_backend()
if os.environ.get("KERAS_BACKEND") != "tensorflow":
    # For programs that import TensorFlow themselves, such as a notebook with tf.data: TensorFlow then takes GPU memory
    # as it needs it, instead of all of it, its default.
    os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")
sys.meta_path.insert(0, QuietTensorFlow())
# The command sets it when its options are parsed, and calls `import_keras`.
imports_keras = not is_command() and WITHOUT_KERAS not in os.environ
if imports_keras:
    import_keras()
