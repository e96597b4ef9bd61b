"""Errors and Ctrl-C on JAX, where Keras computes with the weights outside the model: they come back into it.

Each step is given the memory of the weights before it, so that those it returns are the only ones (keras 3.15).
"""

import contextlib
import signal
import threading

KINDS = ("trainable_variables", "non_trainable_variables", "optimizer_variables", "metrics_variables")


@contextlib.contextmanager
def weights_given_back(model):
    """Gives a model its weights back when a call of Keras within this context ends, or is interrupted.

    Keras does so after an error in `fit` alone. A callback of `fit` may call the model, too: what was trained so far is
    given back before. What is left of an earlier call would be given back a second time.
    """
    if not hasattr(model, "jax_state_sync"):
        yield
        return
    model.jax_state_sync()
    model._jax_state = None
    try:
        yield
    finally:
        model.jax_state_sync()


def kept_step(model, step):
    """A step of Keras' trainer, which Ctrl-C interrupts only when the model has what it returns."""
    if not hasattr(model, "jax_state_sync"):
        return step

    def call(state, iterator):
        with _after_this(signal.SIGINT):
            outputs, state = step(state, iterator)
            kinds = KINDS if len(state) == 4 else (*KINDS[:2], KINDS[3])
            model._jax_state = dict(zip(kinds, state, strict=False))
        return outputs, state

    return call


@contextlib.contextmanager
def _after_this(number):
    """Handles a signal when this context ends, or when it is sent a second time."""
    handle = signal.getsignal(number)
    if threading.current_thread() is not threading.main_thread() or not callable(handle):
        yield
        return
    received = []

    def note(*arguments):
        if received:
            handle(*arguments)
        received.append(arguments)

    signal.signal(number, note)
    try:
        yield
    finally:
        signal.signal(number, handle)
    if received:
        handle(*received[0])
