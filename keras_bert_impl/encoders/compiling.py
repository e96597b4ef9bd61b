"""Says that a step is being compiled, while `fit`, `evaluate` or `predict` seems to do nothing."""

import threading

from keras_bert_impl.console import say
from keras_bert_impl.distribution import compiles_steps, kept_step

PATIENCE = 2.0  # seconds


class CompilingMixin:
    """Keras traces and compiles a step when it is first called, silently; after two seconds a line says so.

    With XLA each shape of a batch is compiled when it first comes, which is why texts are padded to few lengths.

    Attributes:
        says_compiling: False for `verbose=0`.
    """

    says_compiling = True

    def make_train_function(self, force=False):
        self._announce("train_function", "training step", super().make_train_function, force)

    def make_test_function(self, force=False):
        self._announce("test_function", "evaluation step", super().make_test_function, force)

    def make_predict_function(self, force=False):
        self._announce("predict_function", "prediction step", super().make_predict_function, force)
        return self.predict_function

    def _announce(self, name, what, make, force):
        before = getattr(self, name)
        make(force)
        made = getattr(self, name)
        if made is not before:
            made = kept_step(self, made)
            says = self.says_compiling and compiles_steps(self)
            setattr(self, name, announced(made, what, bool(self.jit_compile)) if says else made)


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
