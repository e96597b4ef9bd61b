"""Draws tokens from a distribution over the vocabulary."""

import keras
from keras import ops

from keras_bert_impl.kernels.random_numbers import categorical
from keras_bert_impl.layers.configured_layer import ConfiguredLayer
from keras_bert_impl.layers.dropout import SeedOfReplica

EVALUATION_SEED = 0


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class SampleTokens(ConfiguredLayer):
    """Samples a token for each prediction from softmax(logits), without a gradient (Clark et al. 2020, section 3.1).

    Training draws from a generator whose state is saved with the weights. Evaluation draws with a fixed seed, so that
    results can be compared and do not change what training draws.

    Args:
        seed (int, optional): random seed. Default: None, a random one.

    Input:  logits (batch, predictions, vocabulary).
    Output: (batch, predictions), int32.
    """

    def __init__(self, seed=None, **kwargs):
        super().__init__(**kwargs)
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)

    def call(self, logits, training=False):
        flat = ops.reshape(ops.stop_gradient(ops.cast(logits, "float32")), (-1, logits.shape[-1]))
        seed = SeedOfReplica(self.seed_generator) if training else EVALUATION_SEED
        return ops.reshape(categorical(flat, seed), ops.shape(logits)[:2])

    def compute_output_spec(self, logits, training=False):
        return keras.KerasTensor(logits.shape[:2], dtype="int32")
