"""Batches of pre-training rows without TensorFlow, byte for byte those of `tf_data`.

TFRecord -> interleave and shuffle -> batch -> parse -> mask
"""

import collections
import concurrent.futures
import contextlib
import itertools
import sys
import typing

import keras
import numpy as np

from keras_bert_impl import features
from keras_bert_impl.text.rows import numpy_arrays
from keras_bert_impl.text.rows.example_files import DamagedRecords, RecordReader, count_records, parse_rows
from keras_bert_impl.text.rows.numpy_shuffling import OPEN_FILES, WINDOW, plan_reading, shuffled_windows
from keras_bert_impl.text.rows.pretraining_rows import RowFormat
from keras_bert_impl.text.rows.row_features import features_in, padded_rows, widths_of

# NumPy needs about a thousand rows at once to be fast, and no more, so that they stay in the processor's cache.
ROWS_AT_ONCE = 1024


class RowFiles(typing.NamedTuple):
    """Files of pre-training examples, as `keras-bert prepare-data` writes them.

    Fields:
        paths (list): the files.
        tokenizer (Tokenizer): the tokenizer that they were written with.
        rows (RowFormat): the format that they were written in. For examples that are masked when they are read, only
            its length matters, and whether they are packed.
        num_examples (list of int, optional): number of examples in each file. Default: None, they are counted.
    """

    paths: list
    tokenizer: typing.Any
    rows: RowFormat
    num_examples: list | None = None


class TrainingBatches(keras.utils.PyDataset):
    """Batches of pre-training examples for `Pretrainer.fit`. Batch N depends only on the seed and N, so a training can
    resume.

    Batches are read in order, ahead of their use; reading another batch than the next one is slow. Each is (inputs,
    labels), two dicts of arrays: the names are `features.PRETRAINING_INPUTS` and `features.PRETRAINING_LABELS`, or
    those with PACKED_ before them.

        paths = sorted(pathlib.Path("data/pretraining/128/train").iterdir())  # by keras-bert prepare-data
        files = RowFiles(paths, kbi.tokenizers.open_tokenizer("data"), RowFormat(128, 20))
        batches = TrainingBatches(files, MaskingRule(files.tokenizer), batch_size=256)
        model.fit(batches, steps_per_epoch=1000)  # a Pretrainer

    Args:
        files (RowFiles): the files.
        masking (MaskingRule): how to mask; or a NextTokens, which masks nothing; None for files with static masks.
        batch_size (int): number of examples in a batch; with `repeat`, a last, smaller batch is dropped.
        seed (int, optional): random seed of the order. Default: 0.
        start_step (int, optional): number of batches to skip, those before a training is resumed. Default: 0.
        repeat (bool, optional): True gives epochs without end, each in its own order; False one epoch in the order of
            the files. Default: True.
        whole_batches (bool, optional): whether to drop a last, smaller batch even without `repeat`, so that devices can
            share each batch evenly. Default: False.
        part (tuple of int, optional): (number, number of parts), the part of each batch to read, for one of several
            processes; needs whole batches. Default: (0, 1), all.
        streams (int, optional): with `repeat`, number of groups of files that are shuffled separately; a batch has
            equally many examples of each. A process then reads only the files of its part, and any number of parts that
            divides `streams` gives the same batches. Default: 1.
        most_rows (int, optional): without `repeat`, the largest number of examples to read, from each file in
            proportion to its size. Default: None, all.

    Raises: ValueError if there are too few examples for a whole batch, if a batch cannot be divided evenly, if there
        are more streams than files, or if examples would be masked twice.
    """

    def __init__(
        self,
        files,
        masking,
        batch_size,
        *,
        seed=0,
        start_step=0,
        repeat=True,
        whole_batches=False,
        part=(0, 1),
        streams=1,
        most_rows=None,
    ):
        super().__init__()
        self.paths, self.tokenizer, self.rows, counts = files
        self.paths, self.masking, self.batch_size = list(map(str, self.paths)), masking, batch_size
        self.seed, self.start_step, self.repeat, self.part = seed, start_step, repeat, part
        self.streams = streams if repeat else 1
        if self.rows.static_masks and masking is not None:
            raise ValueError(
                "These rows were masked while they were prepared (static_masks): read them with masking None, or "
                "prepare the data again without static_masks."
            )
        self.features = widths_of(self.rows, getattr(masking, "unit", None) == "phrase")
        self.whole_batches = whole_batches or repeat
        check_parts(part[1], batch_size, self.whole_batches)
        check_streams(self.streams, batch_size, part[1], len(self.paths))
        counts = counts or [count_records(path) for path in self.paths]
        self.counts = counts if repeat else shares(counts, most_rows)
        for number in range(self.streams):
            of_stream = sum(self.counts[number :: self.streams])
            check_fills(of_stream, batch_size // self.streams if self.whole_batches else 0)
        self._batches, self._next = iter(()), None

    @property
    def num_batches(self):
        """The number of batches; None if there is no end."""
        if self.repeat:
            return None
        total = sum(self.counts)
        return total // self.batch_size if self.whole_batches else -(-total // self.batch_size)

    def __getitem__(self, index):
        if index != self._next:
            self._batches = self.from_step(self.start_step + index)
        self._next = index + 1
        return next(self._batches)

    def __iter__(self):
        return self.from_step(self.start_step)

    def from_step(self, step):
        """The batches from number `step` on, an iterator."""
        batches = self._repeated(step) if self.repeat else self._once(step)
        return itertools.chain.from_iterable(prefetched(map(self._masked, self._blocks(batches)), 2))

    def _masked(self, block):
        """The batches of a block, a list of (records, their epoch or epochs): parsed and masked all at once."""
        sizes = [len(records) for records, _ in block]
        columns = parse_rows([record for records, _ in block for record in records])
        epochs = np.concatenate([np.broadcast_to(epoch, size) for (_, epoch), size in zip(block, sizes, strict=True)])
        arrays, ends = self.inputs_and_labels(features_in(columns, self.features), epochs), np.cumsum(sizes)
        return [
            tuple({name: array[end - size : end] for name, array in each.items()} for each in arrays)
            for end, size in zip(ends.tolist(), sizes, strict=True)
        ]

    def inputs_and_labels(self, columns, epoch, arrays=numpy_arrays):
        """The arrays that the model reads, and those that it is compared with: two dicts, see `features`.

        Args:
            columns: the features of rows, see `padded_rows`.
            epoch: integer, or one for each row, (batch,).
            arrays: the module of the array operations, of which the columns are arrays.
        """
        rows = padded_rows(columns, self.rows.sequence_length, self.tokenizer, arrays)
        if self.masking is not None:
            rows = self.masking.mask(rows, epoch, arrays)
        if self.rows.packed:
            inputs, labels = features.PACKED_PRETRAINING_INPUTS, features.PACKED_PRETRAINING_LABELS
        else:
            inputs, labels = features.PRETRAINING_INPUTS, features.PRETRAINING_LABELS
        return {name: rows[name] for name in inputs}, {name: rows[name] for name in labels}

    def _blocks(self, batches):
        """Lists of batches with about ROWS_AT_ONCE rows."""
        together = max(1, ROWS_AT_ONCE * self.part[1] // self.batch_size)
        while block := list(itertools.islice(batches, together)):
            yield block

    def _once(self, step):
        """The batches of (records of the part, epoch 0) in the order of the files, from number `step` on."""
        records = self._in_file_order(step * self.batch_size)
        for batch in rebatched(records, self.batch_size, drop_remainder=self.whole_batches):
            yield self.cut(batch), 0

    def _in_file_order(self, skip):
        for path, count in zip(self.paths, self.counts, strict=True):
            passed = min(skip, count)
            skip -= passed
            with contextlib.closing(RecordReader(path)) as reader:
                reader.skip(passed)
                for start in range(passed, count, ROWS_AT_ONCE):
                    records = reader.read(min(ROWS_AT_ONCE, count - start))
                    if start + len(records) < min(start + ROWS_AT_ONCE, count):
                        raise DamagedRecords(f"{path}: expected {count:,} rows, found fewer. Prepare the data again.")
                    yield records

    def _repeated(self, step):
        """Endless batches of (records of the part, their epoch or epochs), from number `step` on."""
        if self.streams == 1:
            return ((self.cut(records), epoch) for records, epoch in self._stream(0, step))
        return map(joined, zip(*(self._stream(stream, step) for stream in self.own_streams()), strict=True))

    def own_streams(self):
        """The numbers of the streams that the part consists of."""
        number, parts = self.part
        return range(number * self.streams // parts, (number + 1) * self.streams // parts)

    def stream(self, number):
        """A stream: its files, the rows in each, those of a batch, and the limits on rows in memory and on open files,
        which hold for all streams together."""
        limits = {"window": -(-WINDOW // self.streams), "open_files": -(-OPEN_FILES // self.streams)}
        own = slice(number, None, self.streams)
        return self.paths[own], self.counts[own], self.batch_size // self.streams, limits

    def _stream(self, number, step):
        """Endless batches of (records of a stream, their epoch); each epoch has its own order."""
        paths, counts, batch_size, limits = self.stream(number)
        plan = plan_reading(paths, counts, **limits)
        first, done = divmod(step, sum(counts) // batch_size)
        for epoch in itertools.count(first):
            windows = shuffled_windows(plan, self.seed, epoch, number, done * batch_size if epoch == first else 0)
            for records in rebatched(prefetched(windows, 1), batch_size, drop_remainder=True):
                yield records, epoch

    def cut(self, records):
        """The records of the part, (number, number of parts), of a batch; a list, or strings (batch,)."""
        number, parts = self.part
        count = self.batch_size // parts
        return records[number * count : (number + 1) * count]


def check_parts(parts, batch_size, whole_batches):
    """Raises ValueError if batches cannot be divided evenly among `parts` processes."""
    if batch_size % parts or (parts > 1 and not whole_batches):
        raise ValueError(
            f"Batches of {batch_size} rows (whole_batches={whole_batches}) cannot be divided evenly among {parts} "
            f"processes: use whole batches and a batch size that is a multiple of {parts}."
        )


def check_streams(streams, batch_size, parts, num_files):
    """Raises ValueError if the files cannot be divided among `streams` for batches of `parts` parts."""
    if streams > 1 and (batch_size % streams or streams % parts or streams > num_files):
        raise ValueError(
            f"{streams} streams: expected a divisor of the batch size, {batch_size}, and a multiple of the number of "
            f"processes, {parts}. There must be at most {num_files} streams, one for each training file."
        )


def check_fills(num_examples, batch_size):
    """Raises ValueError if there are fewer examples than a batch has rows."""
    if num_examples < batch_size:
        raise ValueError(f"{num_examples} examples do not fill a batch of {batch_size}: use smaller batches.")


def shares(num_examples, most_rows):
    """The number of rows to take from each file, in proportion to its size: `most_rows` altogether, or all."""
    if most_rows is None or most_rows >= sum(num_examples):
        return num_examples
    ends = np.cumsum(num_examples, dtype=np.int64) * most_rows // sum(num_examples)
    return np.diff(ends, prepend=0).tolist()


def rebatched(parts, batch_size, drop_remainder):
    """The items of lists of any length as lists of `batch_size`, and perhaps a last, shorter one."""
    waiting = []
    for part in parts:
        waiting += part
        whole = len(waiting) // batch_size * batch_size
        for start in range(0, whole, batch_size):
            yield waiting[start : start + batch_size]
        waiting = waiting[whole:]
    if waiting and not drop_remainder:
        yield waiting


def joined(parts):
    """Joins the batches of several streams to one, with the epoch of each row."""
    records = [record for records, _ in parts for record in records]
    return records, np.repeat([epoch for _, epoch in parts], [len(records) for records, _ in parts])


def prefetched(items, count):
    """The same items, computed in another thread, up to `count` ahead of their use."""
    items, thread = iter(items), concurrent.futures.ThreadPoolExecutor(1)
    is_ending = sys.is_finalizing  # while Python ends, modules are gone, and threads have been joined
    try:
        waiting = collections.deque(thread.submit(next, items, None) for _ in range(count))
        while (item := waiting.popleft().result()) is not None:
            waiting.append(thread.submit(next, items, None))
            yield item
    finally:
        # Without waiting: what is given up is closed by the garbage collector, which may run in the middle of the start
        # of another thread, and would wait there for a lock that this very start holds.
        if not is_ending():
            thread.shutdown(wait=False, cancel_futures=True)
