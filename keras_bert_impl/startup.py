"""What has to happen before Keras is imported, whoever imports it; the package imports this module first.

- An installed backend is chosen: Keras by default insists on TensorFlow.
- TensorFlow's start-up messages about oneDNN and missing GPUs are hidden. They are written before TensorFlow reads its
  own log level, so only redirecting stderr hides them; a failing import raises an exception and is still reported.
- If another backend trains, TensorFlow only reads the data and leaves the accelerator's memory to that backend.
"""

import contextlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import sys

VERSION = "0.1.0"  # pyproject.toml reads it
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

    Returns: whether there is a backend.
    """
    if os.environ.get("KERAS_BACKEND"):
        return True  # if it is not installed, Keras names it
    named = _backend_of_file(pathlib.Path(os.environ.get("KERAS_HOME", pathlib.Path.home() / ".keras")) / "keras.json")
    if named is not None and importlib.util.find_spec(named):
        return True
    installed = [name for name in BACKENDS if importlib.util.find_spec(name)]
    if installed:
        os.environ["KERAS_BACKEND"] = installed[0]
    return bool(installed)


def _backend_of_file(path):
    """The backend that Keras' configuration file names, or None."""
    try:
        return json.loads(path.read_text(encoding="utf-8")).get("backend")
    except (OSError, ValueError):
        return None  # Keras, too, ignores a file that it cannot read


class ImportsOfKeras(importlib.abc.MetaPathFinder):
    """Finds Keras when it is first imported, by us or by the user's program: importing us alone does not import it.

    Keras finds the classes of a `.keras` file only if they are registered, and nothing else tells that a program which
    imports us and then Keras, or only one of our modules, will load one.

    Args:
        package: the name of ours.
        register: a function without arguments, which registers our classes. It is called when Keras has been imported,
            and none of our modules is half made.
    """

    def __init__(self, package, register):
        self.package, self.register = package, register
        self.depth, self.has_keras = 0, False

    def find_spec(self, name, path=None, target=None):
        is_ours = name.startswith(f"{self.package}.")
        spec = importlib.machinery.PathFinder.find_spec(name, path) if is_ours or name == "keras" else None
        if spec is None:
            return None
        execute = spec.loader.exec_module

        def execute_ours(module):
            self.depth += 1
            try:
                execute(module)
            finally:
                self.depth -= 1
            self._register_if_ready()

        def execute_keras(module):
            if not choose_backend():
                raise ImportError(
                    "No backend is installed: keras_bert_impl runs on TensorFlow, JAX or PyTorch. "
                    "pip install 'keras_bert_impl[tensorflow]', [jax] or [torch]."
                )
            with without_native_output():
                execute(module)
            self.has_keras = True
            self._register_if_ready()

        spec.loader.exec_module = execute_ours if is_ours else execute_keras
        return spec

    def _register_if_ready(self):
        if self.has_keras and not self.depth and self in sys.meta_path:
            sys.meta_path.remove(self)
            self.register()


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
