"""Word vectors."""

import keras
from keras import ops

from keras_bert_impl.kernels.biased_product import product_with_rows
from keras_bert_impl.layers.kept_lora import KeptLora


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class TokenEmbedding(KeptLora, keras.layers.ReversibleEmbedding):
    """A `keras.layers.ReversibleEmbedding` whose table stays float32 under any dtype policy.

    In bfloat16, most of the gradient would be lost for a word that occurs more than about 256 times in a batch, such as
    `[MASK]`. Arguments, input, output and `reverse` are those of Keras.
    """

    def add_weight(self, *args, **options):
        return super().add_weight(*args, **{"autocast": False, **options})

    def call(self, inputs, reverse=False):
        if reverse:  # in the type of the vectors; of a table of integers, Keras calls `quantized_call` instead
            return product_with_rows(inputs, ops.cast(self.embeddings, inputs.dtype))
        return super().call(inputs)
