"""Batches of rows of about the same length, so that little of a batch is padding."""

import dataclasses
import functools
import random
import typing

import keras
import numpy as np

from keras_bert_impl.distribution import batch_of_all, outputs_of_batch
from keras_bert_impl.losses import NO_LABEL
from keras_bert_impl.text.tokenizers.rows import ROW_MULTIPLE, ids_from_texts, pack_rows


@dataclasses.dataclass
class Rows:
    """Rows of a task before they are packed, with their labels.

    Args:
        first: the ids of each row without control tokens, as `tokenizers.rows.ids_from_texts` gives them.
        second: likewise for the second texts, or None.
        labels: None, an array or list (examples, ...), or for several outputs a dict of them.
        weights: None, or sample weights nested as `labels`.
        per_token: whether labels are (examples, sequence_length), which are cut to the length of the batch; weights
            have the same shape, or (examples,).
        choices: None, or the number of consecutive rows that form an example, (batch, choices, length), with one label.
        windows: None, or how many consecutive rows are windows of each text, int (texts,): labels and weights belong to
            rows, the outputs of `predict_rows` to texts.
        source: anything that the caller needs again to interpret the outputs.
        num_cut: number of rows that were too long and lost tokens.
    """

    first: list
    second: list | None = None
    labels: typing.Any = None
    weights: typing.Any = None
    per_token: bool = False
    choices: int | None = None
    windows: np.ndarray | None = None
    source: typing.Any = None
    num_cut: int = 0

    @classmethod
    def from_texts(cls, tokenizer, first, second, sequence_length, labels=None, truncate="longest_first", **arguments):
        """Rows made from texts, or from pairs of texts; see `tokenizers.rows.ids_from_texts`."""
        first, second, num_cut = ids_from_texts(tokenizer, first, second, sequence_length, truncate)
        return cls(first, second, labels, num_cut=num_cut, **arguments)

    def __post_init__(self):
        # Keras treats a list as a tree, and would flatten it into single numbers.
        self.labels, self.weights = _arrays(self.labels), _arrays(self.weights)
        for array in keras.tree.flatten((self.labels, self.weights)):
            if array is not None and len(array) != len(self):
                raise ValueError(f"{len(self)} examples but {len(array)} labels or weights: each example needs one.")

    def __len__(self):
        return len(self.first) // (self.choices or 1)

    def of_texts(self, array):
        """An array (rows, ...) whose entries are equal for the windows of a text, as (texts, ...)."""
        return array if self.windows is None else array[np.cumsum(self.windows) - self.windows]

    def packed(self, tokenizer, sequence_length, pad_to=None, places=None):
        """(inputs, labels, weights) as a model takes them, for all examples or those at `places`: arrays (examples,
        length), with choices (examples, choices, length), as long as `pad_to`, or as the longest rounded up to a
        multiple of 32; None for what there is not."""
        places = np.arange(len(self)) if places is None else places
        numbers = (places[:, None] * (self.choices or 1) + np.arange(self.choices or 1)).ravel()
        first, second = (
            None if part is None else [part[number] for number in numbers] for part in (self.first, self.second)
        )
        inputs = pack_rows(tokenizer, first, second, sequence_length, pad_to)
        width = inputs["token_ids"].shape[1]
        if self.choices is not None:
            inputs = {name: array.reshape(-1, self.choices, width) for name, array in inputs.items()}

        def taken(array, padding):
            is_wide = self.per_token and array.ndim > 1
            return of_width(array[places], width, padding) if is_wide else array[places]

        labels, weights = (
            None if arrays is None else keras.tree.map_structure(functools.partial(taken, padding=padding), arrays)
            for arrays, padding in ((self.labels, NO_LABEL[0]), (self.weights, 0))
        )
        return inputs, labels, weights

    def lengths(self, template):
        """Tokens of each example including control tokens, (examples,); with choices, those of the longest choice.

        `template` is the RowTemplate of the tokenizer.
        """
        control = template.num_control(self.second is not None)
        second = [()] * len(self.first) if self.second is None else self.second
        lengths = [len(a) + len(b) + control for a, b in zip(self.first, second, strict=True)]
        return np.array(lengths, "int32").reshape(-1, self.choices or 1).max(axis=1)


def of_width(array, width, padding):
    """The array with its rows cut to `width`, or padded if they hold a value for each token, not several."""
    more = max(0, width - array.shape[1])
    if array.ndim > 2:
        return array[:, :width]
    return np.pad(array, ((0, 0), (0, more)), constant_values=padding)[:, :width]


def _arrays(values):
    """Converts values, or each value of a dict, to a NumPy array; None stays None."""
    if isinstance(values, dict):
        return {name: _arrays(value) for name, value in values.items()}
    return None if values is None else np.asarray(values)


def drawn_seed():
    """A seed from Python's random module: it follows from `keras.utils.set_random_seed`, like Keras' own order."""
    return random.randrange(2**31)


class LengthBatches(keras.utils.PyDataset):
    """Batches of rows of about the same length, for `fit` on every backend.

    Lengths are rounded up to a multiple of 32; rows of one rounded length share batches. The shapes are few and the
    same in every epoch, because XLA compiles once for each shape: fewer than eight batches get no shape of their own.
    The batches and their order depend only on seed and epoch: a run resumed in epoch 3 gets the same batches as without
    the interruption.

    Args:
        tokenizer: gives the ids of the control tokens and the template of rows.
        rows: Rows.
        batch_size: examples per batch; one batch holds the remainder.
        sequence_length: length of the longest row.
        shuffle: False keeps the given order, and pads all rows to the longest.
        seed: seed of the order; None draws one, see `drawn_seed`.
        multiple: lengths are rounded up to a multiple of this; if nothing is compiled for each shape, 8 saves padding,
            and all shapes are kept.
    """

    def __init__(
        self, tokenizer, rows, batch_size=32, sequence_length=512, shuffle=True, seed=0, multiple=ROW_MULTIPLE
    ):
        super().__init__()
        self.tokenizer, self.rows = tokenizer, rows
        self.batch_size, self.sequence_length = batch_size, sequence_length
        self.shuffle, self.epoch = shuffle, 0
        self.is_seed_drawn, self.seed = seed is None, drawn_seed() if seed is None else seed
        self.lengths = np.minimum(-(-rows.lengths(tokenizer.template) // multiple) * multiple, sequence_length)
        if multiple == ROW_MULTIPLE:
            self.lengths = merged_lengths(self.lengths, least=8 * batch_size)
        self._plan()

    @property
    def num_batches(self):
        return -(-len(self.lengths) // self.batch_size)

    def on_epoch_end(self):
        self.start_epoch(self.epoch + 1)

    def start_epoch(self, epoch):
        """Starts `epoch`, counted from 0: the next batches are those of this epoch."""
        self.epoch = epoch
        self._plan()

    def _plan(self):
        """Decides which examples are in which batch of this epoch."""
        order = np.arange(len(self.lengths))
        if not self.shuffle:
            self.plan = np.split(order, order[self.batch_size :: self.batch_size])
            return
        generator = np.random.default_rng((self.seed, self.epoch))
        order = generator.permutation(order)
        batches = self._by_length(order)
        self.plan = [*batches[:2], *(batches[place + 2] for place in generator.permutation(len(batches[2:])))]

    def _by_length(self, order):
        """Batches of examples of about the same length: the longest batch first, the others from short to long."""
        order = order[np.argsort(self.lengths[order], kind="stable")]
        # The smaller batch is that of the shortest rows: the cuts are counted from the end.
        cuts = np.arange(len(order) % self.batch_size or self.batch_size, len(order), self.batch_size)
        batches = np.split(order, cuts)
        # The longest comes first, so that a batch too large for memory fails at once. The shortest comes next, because
        # Keras' TensorFlow backend learns from the first two batches which axes vary.
        return [batches.pop(), *batches]

    def __getitem__(self, index):
        """Batch `index` of the epoch: inputs, (inputs, labels) or (inputs, labels, weights)."""
        return batch_of_all(self.whole_batch(index))

    def whole_batch(self, index):
        """Batch `index` as plain NumPy arrays."""
        return self._batch(self.plan[index], self._length(index))

    def _length(self, index):
        # Without shuffling any two batches may come first, and Keras learns from them which axes vary. So none varies.
        return int(self.lengths[self.plan[index] if self.shuffle else ...].max())

    def _batch(self, places, length):
        return keras.utils.pack_x_y_sample_weight(
            *self.rows.packed(self.tokenizer, self.sequence_length, length, places)
        )

    def padding_share(self):
        """The share of this epoch's positions that hold padding, 0 to 1."""
        tokens = positions = 0
        for index in range(self.num_batches):
            batch = self.whole_batch(index)
            mask = (batch[0] if isinstance(batch, tuple) else batch)["padding_mask"]
            tokens, positions = tokens + mask.sum(), positions + mask.size
        return 1 - tokens / positions


def padded_length(longest, sequence_length):
    """The smallest of 32, 48, 64, 96, 128, 192, ... that holds `longest` tokens, at most `sequence_length`.

    For a stream of batches, whose lengths are not known before: XLA compiles once for each of these few lengths.
    """
    power = ROW_MULTIPLE
    while power < longest:
        power *= 2
    middle = power * 3 // 4
    return min(middle if ROW_MULTIPLE < longest <= middle else power, sequence_length)


def merged_lengths(lengths, least):
    """Lengths of rows, where those that fewer than `least` rows have are replaced by the next longer one."""
    found, places, counts = np.unique(lengths, return_inverse=True, return_counts=True)
    merged, first, rows = found.copy(), 0, 0
    for number, count in enumerate(counts):
        rows += count
        merged[first : number + 1] = found[number]
        if rows >= least:
            first, rows = number + 1, 0
    return merged[places]


class SortedBatches(LengthBatches):
    """The same batches in every epoch, for `predict`; `restore` puts the outputs back into the order of the rows."""

    def _plan(self):
        self.plan = self._by_length(np.arange(len(self.lengths)))

    def restore(self, outputs):
        """Puts arrays (examples, ...), nested or not, from the order of the batches into that of the rows."""
        places = np.argsort(np.concatenate(self.plan))
        return keras.tree.map_structure(lambda array: array[places], outputs)


def predict_rows(model, batches):
    """The model's outputs for every example of a LengthBatches, in the order of the examples, on every process.

    Returns: a list of arrays, one per example; if the output has a length axis, an array is as long as its batch. For a
        model with several outputs, such lists in the same nesting. For rows that are windows of texts, the means of
        each text, (texts, ...).
    """
    outputs = [None] * len(batches.lengths)
    for index, places in enumerate(batches.plan):
        batch = batches.whole_batch(index)
        found = outputs_of_batch(model, batch[0] if isinstance(batch, tuple) else batch)
        for row, place in enumerate(places):
            outputs[place] = keras.tree.map_structure(lambda array, row=row: array[row], found)
    if batches.rows.windows is not None:
        return means_of_texts(np.stack(outputs), batches.rows.windows)
    if outputs and isinstance(outputs[0], dict):
        return {name: [row[name] for row in outputs] for name in outputs[0]}
    if outputs and isinstance(outputs[0], list | tuple):
        return [[row[part] for row in outputs] for part in range(len(outputs[0]))]
    return outputs


def means_of_texts(outputs, counts):
    """The mean outputs (texts, ...) of the windows of each text.

    Args:
        outputs: (windows, ...), those of a text one after the other.
        counts: how many windows each text has, int (texts,).
    """
    sums = np.add.reduceat(outputs, np.cumsum(counts) - counts, axis=0)
    return sums / counts.reshape(-1, *[1] * (outputs.ndim - 1))
