"""A dense layer, an activation and a norm, between an encoder and what is predicted."""

import keras

from keras_bert_impl.kernels.gelu import activation_function, checked_activation
from keras_bert_impl.layers.dense import Dense


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class PredictionHead(keras.layers.Layer):
    """Dense, activation and norm, of the width of its input.

    Args:
        activation: a name in `kernels.gelu.ACTIVATIONS` or of Keras, or a function.
        layer_norm_epsilon: of the norm.
        initializer: of the kernel.
        use_bias: whether the kernel has a bias, and the norm a centre.

    Input:  (..., width).
    Output: the same shape.
    """

    def __init__(
        self, activation="gelu", layer_norm_epsilon=1e-12, initializer="glorot_uniform", use_bias=True, **kwargs
    ):
        super().__init__(**kwargs)
        self.activation, self.layer_norm_epsilon = checked_activation(activation), float(layer_norm_epsilon)
        self.initializer, self.use_bias = keras.initializers.get(initializer), bool(use_bias)

    def build(self, input_shape):
        self.transform = Dense(
            input_shape[-1],
            activation=activation_function(self.activation),
            use_bias=self.use_bias,
            kernel_initializer=self.initializer.clone(),
            dtype=self.dtype_policy,
            name="transform",
        )
        self.transform.build(input_shape)
        self.norm = keras.layers.LayerNormalization(
            epsilon=self.layer_norm_epsilon, center=self.use_bias, dtype=self.dtype_policy, name="norm"
        )
        self.norm.build(input_shape)

    def call(self, inputs):
        return self.norm(self.transform(inputs))

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return {
            **super().get_config(),
            "activation": self.activation,
            "layer_norm_epsilon": self.layer_norm_epsilon,
            "initializer": keras.initializers.serialize(self.initializer),
            "use_bias": self.use_bias,
        }
