"""Word vectors."""

import keras
from keras import ops

from keras_bert_impl.kernels.biased_product import product_with_rows
from keras_bert_impl.layers.kept_lora import KeptLora


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class TokenEmbedding(KeptLora, keras.layers.ReversibleEmbedding):
    """A `keras.layers.ReversibleEmbedding` whose table is looked up in its own type, float32, under any dtype policy.

    Keras may look up a copy in bfloat16 (keras 3.15: wherever no layer around it is in mixed precision, as in `fit`).
    The gradient of that adds up in bfloat16 what all places of a word receive, one after the other: of a word that
    stands in a batch more often than some 256 times, such as a comma or `[MASK]`, most is lost. On a GPU, JAX also
    takes several times as long for it, since its additions in bfloat16 wait for each other.

    Args, input, output, `reverse`: as there.
    """

    def add_weight(self, *args, **options):
        return super().add_weight(*args, **{"autocast": False, **options})

    def call(self, inputs, reverse=False):
        if reverse:  # in the type of the vectors; of a table of integers, Keras calls `quantized_call` instead
            return product_with_rows(inputs, ops.cast(self.embeddings, inputs.dtype))
        return super().call(inputs)
