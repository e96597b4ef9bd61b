"""Loads Keras, its backend and TensorFlow without the latter's start-up lines; every script imports this first.

TensorFlow tells of oneDNN and missing GPUs before its own log level is read, so only closing stderr keeps it quiet. An
import that fails is still seen: that is an exception.
"""

import contextlib
import importlib.util
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


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


with without_native_output():
    import keras

    if keras.backend.backend() != "tensorflow" and importlib.util.find_spec("tensorflow"):
        import tensorflow as tf

        # It only reads data here: the accelerator's memory, all of which it would take, is for the backend that trains.
        tf.config.set_visible_devices([], "GPU")
