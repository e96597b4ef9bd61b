"""How weights are initialised: at random, or from a checkpoint."""

import contextlib
import contextvars

import keras

# The checkpoint that the model being built is filled from, and the paths of the weights that already have its values.
_filling = contextvars.ContextVar("filling", default=None)


def kernel_initializer(config, path=None, scale=1.0):
    """BERT's truncated normal (Devlin et al. 2019's code: standard deviation 0.02); zeros within `filling`.

    Args:
        config: of an encoder of any family.
        path: of a weight that within `filling` starts with the checkpoint's values instead.
        scale: what the standard deviation is multiplied by.
    """
    found = _filling.get()
    if found is None:
        return keras.initializers.TruncatedNormal(stddev=scale * config.initializer_range)
    checkpoint, filled = found
    if path is None or not checkpoint.has(path):
        return keras.initializers.Zeros()
    filled.add(path)
    return StoredValues(config.initializer_range, checkpoint, path)


@contextlib.contextmanager
def filling(checkpoint, filled):
    """Within this context, encoders are built with zeros, and with the checkpoint's values where a path is given, which
    is then added to the set `filled`."""
    token = _filling.set((checkpoint, filled))
    try:
        yield
    finally:
        _filling.reset(token)


@keras.saving.register_keras_serializable(package="keras_bert_impl")  # layers of a `.keras` file name it
class StoredValues(keras.initializers.TruncatedNormal):
    """A checkpoint's values; a truncated normal where the layer is built from its configuration alone."""

    def __init__(self, stddev, checkpoint=None, path=None, **kwargs):
        super().__init__(stddev=stddev, **kwargs)
        self.checkpoint, self.path = checkpoint, path

    def __call__(self, shape, dtype=None):
        if self.checkpoint is None:
            return super().__call__(shape, dtype)
        checkpoint, self.checkpoint = self.checkpoint, None
        return keras.ops.convert_to_tensor(checkpoint.read(self.path), dtype)

    def clone(self):
        return self
