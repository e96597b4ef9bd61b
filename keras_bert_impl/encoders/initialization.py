"""How weights are initialised: at random, or from a checkpoint."""

import contextvars

import keras

from keras_bert_impl import checkpoints

# The checkpoint that the model being built is filled from, and the paths of the weights that already have its values.
_filling = contextvars.ContextVar("filling", default=None)


def kernel_initializer(config, path=None):
    """BERT's truncated normal (Devlin et al. 2019's code: standard deviation 0.02); zeros within `build_filled`.

    Args:
        config: a BertConfig.
        path: of a weight that within `build_filled` starts with the checkpoint's values instead.
    """
    filling = _filling.get()
    if filling is None:
        return keras.initializers.TruncatedNormal(stddev=config.initializer_range)
    checkpoint, filled = filling
    if path is None or not checkpoint.has(path):
        return keras.initializers.Zeros()
    filled.add(path)
    return StoredValues(config.initializer_range, checkpoint, path)


def build_filled(build, checkpoint, except_for=(), report=False):
    """Builds a model with `build()` and fills it from a checkpoint; see `checkpoints.load`.

    It is built with zeros, since drawing a hundred million random numbers takes longer than reading them. Only the
    token embedding is read while the model is built: if it were in memory twice beside the other weights, memory would
    peak at 1.7 times their size.
    """
    filled = set()
    token = _filling.set((checkpoint, filled))
    try:
        model = build()
    finally:
        _filling.reset(token)
    checkpoints.load(model, checkpoint, except_for, report, filled)
    return model


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
