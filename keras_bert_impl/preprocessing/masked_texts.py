"""Texts whose words are masked when a batch is requested."""

import keras
import numpy as np

from keras_bert_impl.preprocessing.row_maker import RowMaker
from keras_bert_impl.preprocessing.texts import is_texts, to_strings
from keras_bert_impl.text.rows.masking import MaskingRule
from keras_bert_impl.text.tokenizers.rows import pack_rows, rounded_length


class MaskedTextRows(RowMaker):
    """Rows of texts, whose labels are the words that are masked."""

    def unlabelled(self, texts):
        if not is_texts(texts):  # a pair of columns
            to_strings(texts)
        return super().unlabelled(texts)

    def to_train(self, texts, labels, weights, batch_size, shuffle):
        """Batches that are masked when they are requested."""
        self._refuse_labels(labels, weights)
        ids, seed = self.rows_of(texts).first, self.seed()
        longest = self.tokenizer.template.first_length(max(map(len, ids)), is_pair=False)
        length = rounded_length(longest, self.sequence_length)
        return MaskedTexts(ids, batch_size or 32, length, self.masked, seed, shuffle)

    def to_judge(self, texts, labels, weights, batch_size):
        """All texts, with masks that depend only on the model's seed."""
        self._refuse_labels(labels, weights)
        seed = self.seed() if self.head.seed is None else self.head.seed
        return mask_rows(self.packed(self.rows_of(texts)), self.tokenizer, seed)

    def _refuse_labels(self, labels, weights):
        if labels is not None or weights is not None:
            raise ValueError("The labels of texts are the words that are masked: leave y and sample_weight out.")

    def validation(self, data):
        return (data,) if is_texts(data) else data

    def seed(self):
        return int(self.head.random.integers(2**31))

    def masked(self, ids, length, *counters):
        rows = pack_rows(self.tokenizer, ids, None, self.sequence_length, pad_to=length)
        return mask_rows(rows, self.tokenizer, *counters)

    def converted(self, texts, random, pad_to):
        """One element of a dataset of texts, masked, and (the number of texts that were cut, the number of texts)."""
        rows = self.unlabelled(texts)
        length = pad_to or self.length_of_batch(rows)
        return self.masked(rows.first, length, int(random.integers(2**31))), (rows.num_cut, len(rows))


def mask_rows(rows, tokenizer, seed, epoch=0, numbers=None):
    """Rows masked as in BERT, at rates of Devlin et al. 2019, section 3.1.

    Args:
        rows: dict of `token_ids` and `padding_mask`, int (batch, length); other entries are passed through.
        tokenizer: of the rows.
        seed: integer, on which the masks depend.
        epoch: integer, on which they depend, too.
        numbers: int (batch,), the number of each row, on which its masks depend, too; None counts them.

    Returns: (inputs, mask_ids, mask_weights): inputs with new `token_ids` and with ascending `mask_positions`.
        `mask_positions`, `mask_ids` and `mask_weights` are (batch, predictions), where predictions is 15 % of the
        length, rounded up.
    """
    numbered = {**rows, "example_index": np.arange(len(rows["token_ids"])) if numbers is None else numbers}
    masked = MaskingRule(tokenizer, seed=seed).mask(numbered, epoch)
    inputs = {name: masked[name] for name in (*rows, "mask_positions")}
    return inputs, masked["mask_ids"], masked["mask_weights"]


class MaskedTexts(keras.utils.PyDataset):
    """Batches of tokenized texts, each masked when it is requested, all of the same length.

    The order depends only on seed and epoch, the masks of a text also on its number: a `fit` resumed within epoch 3
    gets the batches that it would have got.

    Args:
        ids: for each text the list of its ids, without special tokens.
        batch_size: texts in a batch; the last may be smaller.
        length: of every row.
        mask: function from such lists, the length of a row, seed, epoch and the numbers of the texts to (inputs,
            mask_ids, mask_weights).
        seed: of order and masks.
        shuffle: False keeps the order given.
    """

    is_seed_drawn = True

    def __init__(self, ids, batch_size, length, mask, seed, shuffle=True):
        super().__init__()
        self.ids, self.batch_size, self.length, self.mask = ids, batch_size, length, mask
        self.shuffle, self.seed = shuffle, seed
        self.start_epoch(0)

    def __len__(self):
        return -(-len(self.ids) // self.batch_size)

    def __getitem__(self, index):
        places = self.order[index * self.batch_size : (index + 1) * self.batch_size]
        return self.mask([self.ids[place] for place in places], self.length, self.seed, self.epoch, places)

    def on_epoch_end(self):
        self.start_epoch(self.epoch + 1)

    def start_epoch(self, epoch):
        """Starts `epoch`, counted from 0: the next batches are those of this epoch."""
        self.epoch = epoch
        random, count = np.random.default_rng((self.seed, epoch)), len(self.ids)
        self.order = random.permutation(count) if self.shuffle else np.arange(count)
