"""Texts whose words are masked when a batch is requested."""

import numpy as np

from keras_bert_impl.batching import LengthBatches
from keras_bert_impl.preprocessing.preprocessors import Masking
from keras_bert_impl.preprocessing.row_maker import RowMaker
from keras_bert_impl.preprocessing.texts import is_texts, to_strings


class MaskedTextRows(RowMaker):
    """Rows of texts, whose labels are the words that are masked."""

    def unlabelled(self, texts):
        if not is_texts(texts):  # a pair of columns
            to_strings(texts)
        return super().unlabelled(texts)

    def to_train(self, texts, labels, weights, batch_size, shuffle):
        """Batches that are masked when they are requested."""
        self._refuse_labels(labels, weights)
        rows = self.rows_of(texts)
        return MaskedTexts(self.tokenizer, rows, batch_size or 32, self.sequence_length, shuffle, self.seed())

    def to_judge(self, texts, labels, weights, batch_size):
        """All texts, with masks that depend only on the model's seed."""
        self._refuse_labels(labels, weights)
        seed = self.seed() if self.head.seed is None else self.head.seed
        return Masking(self.tokenizer, seed=seed)(self.packed(self.rows_of(texts)), epoch=0)

    def _refuse_labels(self, labels, weights):
        if labels is not None or weights is not None:
            raise ValueError("The labels of texts are the words that are masked: leave y and sample_weight out.")

    def validation(self, data):
        return (data,) if is_texts(data) else data

    def seed(self):
        return int(self.head.random.integers(2**31))

    def converted(self, texts, random, pad_to):
        """One element of a dataset of texts, masked, and (the number of texts that were cut, the number of texts)."""
        rows = self.unlabelled(texts)
        inputs = self.packed(rows, pad_to or self.length_of_batch(rows))
        return Masking(self.tokenizer, seed=int(random.integers(2**31)))(inputs, epoch=0), (rows.num_cut, len(rows))


class MaskedTexts(LengthBatches):
    """Batches of texts, each masked when it is requested, all of the same length.

    The order depends only on seed and epoch, the masks of a text also on its number: a `fit` resumed within epoch 3
    gets the batches that it would have got.
    """

    def __init__(self, tokenizer, rows, batch_size, sequence_length, shuffle, seed):
        super().__init__(tokenizer, rows, batch_size, sequence_length, shuffle, seed)
        self.masking, self.is_seed_drawn = Masking(tokenizer, seed=seed), True

    def __getitem__(self, index):
        places = self.plan[index]
        return self.masking.masked(self._pack(places, int(self.lengths.max())), self.epoch, numbers=places)

    def _plan(self):
        count = len(self.lengths)
        order = np.random.default_rng((self.seed, self.epoch)).permutation(count) if self.shuffle else np.arange(count)
        self.plan = np.split(order, range(self.batch_size, count, self.batch_size))
