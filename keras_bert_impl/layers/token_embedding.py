"""Word vectors."""

import keras
from keras import ops

from keras_bert_impl.kernels.biased_product import product_with_rows
from keras_bert_impl.layers.kept_lora import KeptLora


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class TokenEmbedding(KeptLora, keras.layers.ReversibleEmbedding):
    """A `keras.layers.ReversibleEmbedding` whose table stays float32 under any dtype policy.

    Keras may look up a copy in bfloat16 (keras 3.15: wherever no layer around it is in mixed precision, as in `fit`).
    Its gradient sums up all occurrences of a word in bfloat16, one after the other: for a word that occurs in a batch
    more than about 256 times, such as a comma or `[MASK]`, most is lost. On a GPU, JAX also takes several times as long
    for it, since its additions in bfloat16 wait for each other.

    Arguments, input, output and `reverse` are those of Keras.
    """

    def add_weight(self, *args, **options):
        return super().add_weight(*args, **{"autocast": False, **options})

    def call(self, inputs, reverse=False):
        if reverse:  # in the type of the vectors; of a table of integers, Keras calls `quantized_call` instead
            return product_with_rows(inputs, ops.cast(self.embeddings, inputs.dtype))
        return super().call(inputs)
