"""Says that a step is being compiled, while `fit`, `evaluate` or `predict` seems to do nothing.

Keras traces and compiles a step when it is first called, silently; after two seconds a line says so. With XLA each
shape of a batch is compiled when it first comes, which is why texts are padded to few lengths.
"""

import threading

from keras_bert_impl.console import say

PATIENCE = 2.0  # seconds


def announced(step, what, is_per_shape):
    """`step`, which prints a line if its first call takes long."""
    is_first = True

    def call(*arguments):
        nonlocal is_first
        if not is_first:
            return step(*arguments)
        is_first = False
        repeated = "; batches of other lengths will be compiled when they come" if is_per_shape else ""
        timer = threading.Timer(PATIENCE, say, [f"  compiling the {what}{repeated} ..."])
        timer.daemon = True
        timer.start()
        try:
            return step(*arguments)
        finally:
            timer.cancel()

    return call
