"""Batches of arrays for `fit`, in an order that can be repeated."""

import keras
import numpy as np

from keras_bert_impl.batching import drawn_seed


class ArrayBatches(keras.utils.PyDataset):
    """Batches of arrays in an order that depends only on seed and epoch; Keras' own cannot be repeated.

    Args:
        x, y, sample_weight: arrays (examples, ...), nested or not; y and sample_weight may be None.
        batch_size: the last batch may be smaller.
        shuffle: False keeps the order given.
        seed: of the order; None draws it from Python's random module, which keras.utils.set_random_seed seeds.
    """

    def __init__(self, x, y, sample_weight, batch_size, shuffle, seed=None):
        super().__init__()
        parts = (x, y, sample_weight)[: 3 if sample_weight is not None else 2 if y is not None else 1]
        self.arrays = keras.tree.map_structure(keras.ops.convert_to_numpy, parts)
        sizes = {len(array) for array in keras.tree.flatten(self.arrays)}
        if len(sizes) != 1:
            raise ValueError(f"The arrays have {' and '.join(map(str, sorted(sizes)))} rows: all need the same number.")
        (self.examples,) = sizes
        self.batch_size, self.shuffle = batch_size, shuffle
        self.is_seed_drawn, self.seed = seed is None, drawn_seed() if seed is None else seed
        self.start_epoch(0)

    @property
    def num_batches(self):
        return -(-self.examples // self.batch_size)

    def start_epoch(self, epoch):
        random = np.random.default_rng((self.seed, epoch))
        self.order = random.permutation(self.examples) if self.shuffle else np.arange(self.examples)

    def __getitem__(self, index):
        places = self.order[index * self.batch_size : (index + 1) * self.batch_size]
        return keras.tree.map_structure(lambda array: array[places], self.arrays)
