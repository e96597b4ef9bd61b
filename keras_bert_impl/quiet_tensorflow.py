"""TensorFlow, imported without its start-up messages; if another backend trains, without the accelerators.

Only the modules of tf.data graphs import it, so that a run on JAX or torch needs no TensorFlow.
"""

import importlib.util

from keras_bert_impl.startup import leave_accelerators_to_the_backend

if importlib.util.find_spec("tensorflow") is None:
    raise ImportError(
        "tf.data graphs need TensorFlow, which is not installed: pip install 'keras_bert_impl[tensorflow]'."
    )
leave_accelerators_to_the_backend()

import tensorflow as tf  # noqa: E402

__all__ = ["tf"]
