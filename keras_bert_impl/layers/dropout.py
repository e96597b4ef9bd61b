"""Dropout that differs from replica to replica."""

import keras
from keras import ops

from keras_bert_impl.distribution import replica_number


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class Dropout(keras.layers.Dropout):
    """`keras.layers.Dropout`, whose generator has the same state on all replicas of a `tf.distribute` strategy: there
    each would drop the same units of its part of the batch. Here the number of the replica is part of the seed.
    """

    def call(self, inputs, training=False):
        if not training or self.rate == 0:
            return inputs
        seed = SeedOfReplica(self.seed_generator)
        return keras.random.dropout(inputs, self.rate, noise_shape=self.noise_shape, seed=seed)


class SeedOfReplica(keras.random.SeedGenerator):
    """Another generator's next seed, moved by the number of the replica; without a state of its own."""

    def __init__(self, generator):  # without super(), which would make a variable
        self.generator = generator
        # By which Keras tells on torch whether torch's own dropout will do.
        self._initial_seed = generator._initial_seed

    def next(self, ordered=True):
        seed = self.generator.next(ordered)
        return seed + ops.cast([replica_number(), 0], seed.dtype)
