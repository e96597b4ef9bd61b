"""A `tf.data.Dataset` of texts as the batches of ids that Keras trains on, on every backend."""

import itertools
import warnings

import keras
import numpy as np

from keras_bert_impl.models.text_inputs import first_spec
from keras_bert_impl.tokenizers.rows import warn_of_cut

LONG_COUNT = 10_000  # batches


class TextBatches(keras.utils.PyDataset):
    """The batches of a `tf.data.Dataset` of texts, tokenized one by one outside TensorFlow.

    Args:
        dataset: yields batches whose first part is texts: a vector of strings or a pair of them.
        convert: function from such a batch, as NumPy arrays, and a random generator that depends only on the seed, the
            epoch and the batch's index, to what Keras trains on, and (the number of texts that were cut, the number of
            texts). At the end of the first epoch a warning reports both.
        sequence_length: the number of tokens that texts are cut to, for the warning.
        steps: the number of batches in an epoch, if Keras was given one. A dataset that has as many is not read to its
            end, since it may be endless; the next epoch continues where this one stopped, and a dataset that ends
            starts again.

        seed: of the random generators.

    Raises: ValueError if the dataset yields single texts.
    """

    is_seed_drawn = True

    def __init__(self, dataset, convert, sequence_length, steps=None, seed=0):
        super().__init__()
        if first_spec(dataset).shape.rank == 0:
            raise ValueError("The dataset yields single texts, not batches of them: pass dataset.batch(32).")
        self.dataset, self.convert, self.sequence_length = dataset, convert, sequence_length
        self.iterator, self.position, self.epoch = None, 0, 0
        self.seed = seed
        self.counted, self.num_cut, self.num_texts = 0, 0, 0
        self.size = self._size(steps)
        self.epoch_batches = min((count for count in (self.size, steps) if count is not None), default=None)

    def _size(self, steps):
        size = int(self.dataset.cardinality())
        if size == -1:  # endless
            return None
        if size >= 0:
            return size
        # The size is unknown until the dataset is read.
        if steps is None:
            return self._count()
        found = sum(1 for _ in itertools.islice(self.dataset, steps))
        return None if found == steps else found

    def _count(self):
        count = 0
        for count, _ in enumerate(self.dataset, start=1):
            if count == LONG_COUNT:
                warnings.warn(
                    f"The dataset does not know its size and is read to count its batches: {count:,} so far. If it is "
                    "endless, counting never ends: pass steps_per_epoch to fit, or steps to evaluate and predict.",
                    stacklevel=2,
                )
        return count

    @property
    def num_batches(self):
        """Batches in an epoch; None if endless."""
        return self.size

    def on_epoch_end(self):
        self.start_epoch(self.epoch + 1)

    def start_epoch(self, epoch):
        """Starts `epoch`, counted from 0: of an endless dataset, the same batches are converted anew."""
        self.epoch = epoch

    def __getitem__(self, index):
        # Keras asks in order, but peeks at the first batches before an epoch: an earlier index starts again.
        if self.iterator is None or index < self.position:
            self.iterator, self.position = self.dataset.as_numpy_iterator(), 0
        while self.position <= index:
            batch = self._next()
            self.position += 1
        converted, (num_cut, num_texts) = self.convert(batch, np.random.default_rng((self.seed, self.epoch, index)))
        if index >= self.counted:
            self.counted, self.num_cut, self.num_texts = index + 1, self.num_cut + num_cut, self.num_texts + num_texts
            # Not in on_epoch_end, which Keras also calls after it has peeked at the first batches.
            if self.counted == self.epoch_batches:
                warn_of_cut(self.num_cut, self.num_texts, self.sequence_length)
        return converted

    def _next(self):
        batch = next(self.iterator, None)
        if batch is None:
            self.iterator = self.dataset.as_numpy_iterator()
            batch = next(self.iterator)
        return batch
