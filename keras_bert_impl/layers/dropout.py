"""Dropout that differs from replica to replica, and spends few random bits where those cost time."""

import keras
from keras import ops

from keras_bert_impl.distribution import replica_number
from keras_bert_impl.kernels.dropout import drop


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class Dropout(keras.layers.Dropout):
    """`keras.layers.Dropout` (Srivastava et al. 2014) with the replica's number in the seed, and fewer random bits.

    The generator has the same state on all replicas of a `tf.distribute` strategy, where Keras' own would drop the same
    units of each part of a batch. And on torch and a CPU, where Keras' dropout is a tenth of a training step of rows of
    128 tokens and more of longer ones, and on JAX a unit has sixteen random bits, not 64 or 32. (TensorFlow keeps its
    own: with sixteen XLA draws them anew for each use, and a step takes twice as long.)

    Args:
        rate: share of the units to drop, from 0 to less than 1.
        seed: of the generator.
        noise_shape: of the mask, 1 along the axes whose units are dropped together; None means that of the input. Then
            Keras' own dropout computes.

    Input:  any shape. Output: the same, in training with units dropped and the others divided by 1 - rate.
    Raises: ValueError for another rate.
    """

    def __init__(self, rate, seed=None, noise_shape=None, **kwargs):
        if not 0 <= rate < 1:
            raise ValueError(f"A dropout rate must be at least 0 and less than 1, not {rate}.")
        super().__init__(rate, noise_shape=noise_shape, seed=seed, **kwargs)

    def call(self, inputs, training=False):
        if not training or self.rate == 0:
            return inputs
        seed = SeedOfReplica(self.seed_generator)
        if self.noise_shape is not None:
            return keras.random.dropout(inputs, self.rate, self.noise_shape, seed)
        return drop(inputs, self.rate, seed)


class SeedOfReplica(keras.random.SeedGenerator):
    """Another generator's next seed, moved by the number of the replica; without a state of its own."""

    def __init__(self, generator):  # without super(), which would make a variable
        self.generator = generator
        # By which Keras tells on torch whether torch's own dropout will do.
        self._initial_seed = generator._initial_seed

    def next(self, ordered=True):
        seed = self.generator.next(ordered)
        return seed + ops.cast([replica_number(), 0], seed.dtype)
