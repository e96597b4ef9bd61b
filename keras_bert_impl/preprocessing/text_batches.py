"""Batches of texts as the batches of ids that Keras trains on, on every backend."""

import itertools
import math
import warnings

import keras
import numpy as np

from keras_bert_impl.text.tokenizers.rows import ROW_MULTIPLE, warn_of_cut

LONG_COUNT = 10_000  # batches


class TextBatches(keras.utils.PyDataset):
    """The batches of a `tf.data.Dataset` or `DataLoader` of texts, each tokenized when Keras asks for it.

    Args:
        source: a `texts.BatchSource`.
        convert: function from one of its batches, a random generator that depends only on the seed, the epoch and the
            batch's index, and the length of its rows (None for that of this batch), to what Keras trains on, and (the
            number of truncated texts, the number of texts). At the end of the first epoch a warning reports both.
        sequence_length: the number of tokens that texts are cut to, for the warning.
        steps: the number of batches in an epoch, if Keras was given one. A dataset that has as many is not read to its
            end, since it may be endless; the next epoch continues where this one stopped, and a dataset that ends
            starts again.
        seed: of the random generators.
    """

    is_seed_drawn = True

    def __init__(self, source, convert, sequence_length, steps=None, seed=0):
        super().__init__()
        self.source, self.convert, self.sequence_length = source, convert, sequence_length
        self.iterator, self.position, self.epoch, self.is_begun = None, 0, 0, False
        self.seed = seed
        self.counted, self.num_cut, self.num_texts = 0, 0, 0
        self.size = self._size(steps)
        self.epoch_batches = min((count for count in (self.size, steps) if count is not None), default=None)

    def _size(self, steps):
        size = self.source.num_batches
        if size is not None:
            return None if size == math.inf else size
        if steps is None:
            return self._count()
        found = sum(1 for _ in itertools.islice(self.source.open(), steps))
        return None if found == steps else found

    def _count(self):
        count = 0
        for count, _ in enumerate(self.source.open(), start=1):
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

    def on_epoch_begin(self):
        self.is_begun = True

    def on_epoch_end(self):
        self.start_epoch(self.epoch + 1)

    def start_epoch(self, epoch):
        """Starts `epoch`, counted from 0: of an endless dataset, the same batches are converted anew."""
        self.epoch, self.is_begun = epoch, True

    def check_first(self):
        """Converts the first batch, so that what is wrong with it is raised before Keras runs.

        On JAX, Keras takes the weights out of the model while it runs: an error in the first batch would lose them.
        """
        batch = next(iter(self.source.open()), None)
        if batch is None:
            raise ValueError("The dataset yields no batch: it is empty, or all its elements were filtered out.")
        self._converted(batch, 0)

    def sample(self, index):
        """Batch `index` as Keras' TensorFlow backend is to see it: before the first epoch it looks at two batches, to
        learn which axes vary, and batches of one length would hide it. These two are not computed. A dataset of one
        batch has one length.
        """
        return self._converted(self._batch(index), index, self.sequence_length + ROW_MULTIPLE * index)[0]

    def __getitem__(self, index):
        if not self.is_begun:
            return self.sample(index)
        pad_to = self.sequence_length if self.num_batches == 1 else None
        converted, (num_cut, num_texts) = self._converted(self._batch(index), index, pad_to)
        if index >= self.counted:
            self.counted, self.num_cut, self.num_texts = index + 1, self.num_cut + num_cut, self.num_texts + num_texts
            # Not in on_epoch_end, which Keras also calls after it has peeked at the first batches.
            if self.counted == self.epoch_batches:
                warn_of_cut(self.num_cut, self.num_texts, self.sequence_length)
        return converted

    def _batch(self, index):
        # Keras asks in order, but peeks at the first batches before an epoch: an earlier index starts again.
        if self.iterator is None or index < self.position:
            self.iterator, self.position = self.source.open(), 0
        while self.position <= index:
            batch = self._next()
            self.position += 1
        return batch

    def _converted(self, batch, index, pad_to=None):
        return self.convert(batch, np.random.default_rng((self.seed, self.epoch, index)), pad_to)

    def _next(self):
        batch = next(self.iterator, None)
        if batch is None:
            self.iterator = self.source.open()
            batch = next(self.iterator)
        return batch
