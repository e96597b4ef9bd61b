"""A frozen model inside another one."""

import keras


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class FrozenModel(keras.layers.Layer):
    """Runs a frozen model inside another model: without dropout and gradients, even while the other one is trained.

    Args:
        model (keras.Model): a functional model. Its weights are frozen from then on.

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
