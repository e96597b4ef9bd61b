"""Dropout that differs between replicas, and whose random bits are cheaper."""

import contextlib
import copy

import keras
from keras import ops

from keras_bert_impl.distribution import replica_number
from keras_bert_impl.kernels.dropout import drop


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class Dropout(keras.layers.Dropout):
    """`keras.layers.Dropout` (Srivastava et al. 2014) that differs between replicas, and whose random bits are cheaper.

    Keras' dropout would drop the same units in each replica of a `tf.distribute` strategy. On torch and JAX, this layer
    draws fewer random bits for each unit.

    Args:
        rate (float): fraction of the units to drop, from 0 to less than 1.
        seed (int, optional): random seed. Default: None, a random one.
        noise_shape (tuple, optional): shape of the mask, 1 along axes whose units are dropped together; Keras' dropout
            is then used. Default: None, that of the input.

    Input:  any shape.
    Output: the same shape; in training, units are dropped and the others divided by 1 - rate.
    """

    def __init__(self, rate, seed=None, noise_shape=None, **kwargs):
        super().__init__(rate, noise_shape=noise_shape, seed=seed, **kwargs)

    def call(self, inputs, training=False):
        if not training or self.rate == 0:
            return inputs
        seed = SeedOfReplica(self.seed_generator)
        if self.noise_shape is not None:
            return keras.random.dropout(inputs, self.rate, self.noise_shape, seed)
        return drop(inputs, self.rate, seed)


def dropped_as(dropout, training):
    """The fields of `kernels.attention.AttentionInputs` that drop probabilities as a dropout layer does."""
    rate = dropout.rate if training else 0.0
    return {"dropout_rate": rate, "seed": SeedOfReplica(dropout.seed_generator) if rate else None}


class SeedOfReplica(keras.random.SeedGenerator):
    """Another generator's next seed, shifted by the number of the replica; it has no state of its own."""

    def __init__(self, generator):  # without super(), which would make a variable
        self.generator = generator
        # On torch, Keras decides by this whether torch's own dropout can be used.
        self._initial_seed = generator._initial_seed

    def next(self, ordered=True):
        seed = self.generator.next(ordered)
        return seed + ops.cast([replica_number(), 0], seed.dtype)


class DrawnSeed(keras.random.SeedGenerator):
    """Draws the next seed of a generator once and always returns this one; it has no state of its own."""

    def __init__(self, generator):  # without super(), which would make a variable
        self.drawn = generator.next()
        # On torch, Keras decides by this whether torch's own dropout can be used.
        self._initial_seed = generator._initial_seed

    def next(self, ordered=True):
        return self.drawn

    def of_part(self, number):
        """Returns another such seed, for the part of a batch with this number, int32; it is unique among up to 4,096
        replicas."""
        other = copy.copy(self)
        other.drawn = self.drawn + ops.cast([number * 4096, 0], self.drawn.dtype)
        return other


@contextlib.contextmanager
def fixed_seeds(dropouts, seeds):
    """Within this context, dropout layers use these seeds instead of their generators."""
    generators = [layer.seed_generator for layer in dropouts]
    try:
        for layer, seed in zip(dropouts, seeds, strict=True):
            # Bypasses Keras' setter, which would track the seed as a part of the layer.
            object.__setattr__(layer, "seed_generator", seed)
        yield
    finally:
        for layer, generator in zip(dropouts, generators, strict=True):
            object.__setattr__(layer, "seed_generator", generator)
