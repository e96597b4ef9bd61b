"""A linear layer of tokens."""

import keras

from keras_bert_impl.kernels.biased_product import biased_product
from keras_bert_impl.layers.kept_lora import KeptLora


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class Dense(KeptLora, keras.layers.Dense):
    """`keras.layers.Dense`, of which `kernels.biased_product` computes what has a bias: as one operation on torch, and
    so that in mixed precision the bias learns from all tokens of a batch.

    LoRA and int8 are those of Keras: the one changes what `kernel` gives, the other calls another method. Files keep
    LoRA as it is, see `KeptLora`.

    Input:  (..., rows of the kernel).
    Output: (..., units).
    """

    def call(self, inputs, training=None):
        if self.bias is None:
            return super().call(inputs, training=training)
        outputs = biased_product(inputs, self.kernel, self.bias)
        return outputs if self.activation is None else self.activation(outputs)

    def quantize(self, mode=None, type_check=True, config=None):
        # Keras leaves subclasses of Dense out, since it does not know what their `call` computes.
        return super().quantize(mode, type_check=False, config=config)
