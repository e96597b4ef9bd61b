"""A model that computes within another one, and does not change."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class FrozenModel(keras.layers.Layer):
    """Computes what a model computes when it is not trained: no dropout, no gradients, whatever trains around it.

    A functional model passes `training=True` on to each of its operations, also to one that was called with
    `training=False`; but not to a model within the call of a layer.

    Args:
        model: a functional model. Its weights are frozen from then on.

    Input and output: those of the model.
    """

    def __init__(self, model, **kwargs):
        super().__init__(**kwargs)
        self.model = model
        self.trainable = False  # those of its model, too

    def call(self, inputs):
        return self.model(inputs, training=False)

    def compute_output_spec(self, inputs):
        return keras.tree.map_structure(lambda output: keras.KerasTensor(output.shape, output.dtype), self.model.output)

    def get_config(self):
        return {**super().get_config(), "model": keras.saving.serialize_keras_object(self.model)}

    @classmethod
    def from_config(cls, config):
        return cls(**{**config, "model": keras.saving.deserialize_keras_object(config["model"])})


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class FrozenInChunks(FrozenModel):
    """A FrozenModel that reads `chunk` tokens at most: it computes longer rows in parts that do not see each other.

    Args:
        model: a functional model from arrays (batch, length) to a dict of arrays (batch, length, width).
        chunk: tokens of a part.

    Input and output: those of the model, of any length.
    """

    def __init__(self, model, chunk, **kwargs):
        super().__init__(model, **kwargs)
        self.chunk = int(chunk)

    def call(self, inputs):
        batch, length = ops.shape(next(iter(inputs.values())))
        count = -(-length // self.chunk)
        if isinstance(count, int) and count == 1:
            return super().call(inputs)
        rest = count * self.chunk - length
        parts = {
            name: ops.reshape(ops.pad(array, [(0, 0), (0, rest)]), (-1, self.chunk)) for name, array in inputs.items()
        }
        return {
            name: ops.reshape(array, (batch, count * self.chunk, array.shape[-1]))[:, :length]
            for name, array in super().call(parts).items()
        }

    def get_config(self):
        return {**super().get_config(), "chunk": self.chunk}
