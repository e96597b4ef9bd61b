"""What has to happen before Keras and TensorFlow are imported; the package imports this module first.

- A backend is chosen that is installed: Keras itself insists on TensorFlow where nothing says otherwise.
- TensorFlow's start-up messages on oneDNN and missing GPUs stay unseen. They are written before TensorFlow reads its
  own log level, so that only closing stderr keeps them away; an import that fails is an exception and is still seen.
- Where another backend trains, TensorFlow, which reads the data, leaves the accelerator's memory to it.
"""

import contextlib
import importlib.util
import os
import pathlib
import sys

BACKENDS = ("tensorflow", "jax", "torch")  # in the order of preference where no one has chosen


@contextlib.contextmanager
def without_native_output():
    """Sends what C++ writes to stderr nowhere; Python's own stderr is flushed before."""
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
    """Sets KERAS_BACKEND to the first backend that is installed, unless it or Keras' own file says which."""
    home = pathlib.Path(os.environ.get("KERAS_HOME", pathlib.Path.home() / ".keras"))
    if "KERAS_BACKEND" in os.environ or (home / "keras.json").is_file():
        return
    installed = [name for name in BACKENDS if importlib.util.find_spec(name)]
    if not installed:
        raise ImportError(
            "No backend is installed: keras_bert_impl runs on TensorFlow, JAX or PyTorch. "
            "pip install 'keras_bert_impl[tensorflow]', [jax] or [torch]."
        )
    os.environ["KERAS_BACKEND"] = installed[0]


def leave_accelerators_to_the_backend():
    """Keeps TensorFlow from the GPUs where it only reads data; to be called before its first operation."""
    import keras

    if keras.backend.backend() == "tensorflow":
        return
    with without_native_output():
        import tensorflow as tf

        # A RuntimeError says that TensorFlow has begun to use them: the program before us has decided.
        with contextlib.suppress(RuntimeError):
            tf.config.set_visible_devices([], "GPU")


os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
choose_backend()
if os.environ.get("KERAS_BACKEND") != "tensorflow":
    # For programs that import TensorFlow themselves, a notebook with tf.data for one: it takes memory as it needs it,
    # where its default is all of the GPU's.
    os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")
with without_native_output():
    import keras  # noqa: F401
