"""How weights start: at random, or empty where a checkpoint is about to fill them."""

import contextlib
import contextvars

import keras

_filled_later = contextvars.ContextVar("filled_later", default=False)


def kernel_initializer(config):
    """BERT's truncated normal (Devlin et al. 2019's code: standard deviation 0.02); zeros within `filled_later`."""
    if _filled_later.get():
        return keras.initializers.Zeros()
    return keras.initializers.TruncatedNormal(stddev=config.initializer_range)


@contextlib.contextmanager
def filled_later():
    """Builds models whose kernels are zeros: `checkpoints.load` fills them, and draws those it has no values for.

    Drawing a hundred million random numbers takes longer than reading a checkpoint.
    """
    token = _filled_later.set(True)
    try:
        yield
    finally:
        _filled_later.reset(token)
