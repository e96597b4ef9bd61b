"""A linear layer of tokens."""

import keras
from keras import ops

from keras_bert_impl.kernels.bias import add_bias


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class Dense(keras.layers.Dense):
    """A `keras.layers.Dense` whose bias learns from all tokens of a batch also in bfloat16, see `kernels.bias`.

    Args, input, output: as there.
    """

    def call(self, inputs, training=None):
        outputs = ops.matmul(inputs, self.kernel)
        if self.bias is not None:
            outputs = add_bias(outputs, self.bias)
        return outputs if self.activation is None else self.activation(outputs)
