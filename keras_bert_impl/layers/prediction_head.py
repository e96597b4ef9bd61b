"""A dense layer, an activation and a norm, between an encoder and what is predicted."""

import keras

from keras_bert_impl.kernels.gelu import activation_function, checked_activation
from keras_bert_impl.layers.configured_layer import ConfiguredLayer
from keras_bert_impl.layers.dense import Dense


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class PredictionHead(ConfiguredLayer):
    """Dense layer, activation and norm between an encoder and a prediction, of the width of the input.

    Args:
        activation (str or callable, optional): a name in `kernels.gelu.ACTIVATIONS` or of Keras, or a function.
            Default: "gelu".
        layer_norm_epsilon (float, optional): epsilon of the norm. Default: 1e-12.
        initializer (str or Initializer, optional): initializer of the kernel. Default: "glorot_uniform".
        use_bias (bool, optional): whether the dense layer has a bias and the norm a centre. Default: True.

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
        self.transform, self.norm = dense_and_norm(self, input_shape, input_shape[-1])

    def call(self, inputs):
        return self.norm(self.transform(inputs))

    def compute_output_shape(self, input_shape):
        return input_shape


def dense_and_norm(owner, inputs_shape, width, ending=""):
    """Builds a dense layer of `width` columns and a norm, with the activation, biases, initializer, epsilon and dtype
    policy of their owner; their names end in `ending`."""
    policy = owner.dtype_policy
    transform = Dense(
        width,
        activation=activation_function(owner.activation),
        use_bias=owner.use_bias,
        kernel_initializer=owner.initializer.clone(),
        dtype=policy,
        name=f"transform{ending}",
    )
    transform.build(inputs_shape)
    norm = keras.layers.LayerNormalization(
        epsilon=owner.layer_norm_epsilon, center=owner.use_bias, dtype=policy, name=f"norm{ending}"
    )
    norm.build((*inputs_shape[:-1], width))
    return transform, norm
