"""Batches of pre-training rows without TensorFlow, byte for byte those of `tf_data`.

TFRecord -> interleave and shuffle -> batch -> parse -> mask
"""

import collections
import concurrent.futures
import contextlib
import itertools
import sys

import keras
import numpy as np

from keras_bert_impl import features
from keras_bert_impl.text.rows import numpy_parsing
from keras_bert_impl.text.rows.masking import MaskingRule
from keras_bert_impl.text.rows.next_tokens import predict_next_tokens
from keras_bert_impl.text.rows.numpy_shuffling import OPEN_FILES, WINDOW, plan_reading, shuffled_windows
from keras_bert_impl.text.rows.record_files import DamagedRecords, RecordReader, count_records
from keras_bert_impl.text.rows.serialized_rows import parse_rows

# NumPy needs about a thousand rows at once to be fast, and no more, so that they stay in the processor's cache.
ROWS_AT_ONCE = 1024


class TrainingBatches(keras.utils.PyDataset):
    """Batches for `Pretrainer.fit`: what batch N holds depends on the seed and N alone, so a run can resume.

    Batches are read in order, by two threads, ahead of their use; a batch that is not the next one makes them start
    again from there. Iterating gives (inputs, labels), two dicts of arrays, see `features.PRETRAINING_INPUTS` and
    `PRETRAINING_LABELS`, or their PACKED_ versions.

    Args:
        paths: files of `write_rows`.
        tokenizer: the Tokenizer they were written with.
        sequence_length: as written.
        predictions_per_sequence: as written; any number for dynamic masks.
        batch_size: rows of a batch; with `repeat`, a last, smaller batch is dropped.
        seed: seed of the order and the masks.
        start_step: number of batches to skip, those that a resumed run has already seen.
        static_masks: whether the files were written with static masks.
        packed: whether their rows hold several pairs.
        masking_unit: "token", "whole_word", "span", "ngram" or "phrase", see `masking.MaskingRule`.
        masking_rate: share of a row's tokens that are chosen to be predicted, see there.
        mask_token_rate: share of the chosen tokens that become [MASK], see there.
        random_token_rate: share of them that become a random token, see there.
        direction: "both" masks tokens; "left_to_right" and "right_to_left" mask none, and every token predicts the next
            one in this direction, see `next_tokens`.
        repeat: True gives epochs without end, each in its own order, see `shuffling`; False one epoch in file order.
        whole_batches: drop a last, smaller batch even without `repeat`, so that devices can share each batch evenly.
        part: (number, number of parts): the part of each batch to read, for one of several processes; needs whole
            batches. The rows of the other parts are neither parsed nor masked.
        streams: with `repeat`, the files are divided among this many streams, each shuffled by itself, and a batch
            takes equally many rows from each. A part of the batch then reads only its own streams, and any number of
            parts that divides `streams` gives the same batches.
        num_examples: list, the number of examples in each file; None counts them.
        most_rows: without `repeat`, the most rows to read, from each file in proportion to its size; None reads all.

    Raises: ValueError if there are too few examples for a whole batch, if a batch cannot be divided evenly, if
        there are more streams than files, or for rows with static masks in one direction.
    """

    def __init__(
        self,
        paths,
        tokenizer,
        *,
        sequence_length,
        predictions_per_sequence,
        batch_size,
        seed=0,
        start_step=0,
        static_masks=False,
        packed=False,
        masking_unit="token",
        masking_rate=0.15,
        mask_token_rate=0.8,
        random_token_rate=0.1,
        direction="both",
        repeat=True,
        whole_batches=False,
        part=(0, 1),
        streams=1,
        num_examples=None,
        most_rows=None,
    ):
        super().__init__()
        self.paths, self.batch_size = [str(path) for path in paths], batch_size
        self.seed, self.start_step = seed, start_step
        self.static_masks, self.packed, self.repeat, self.part = static_masks, packed, repeat, part
        self.sequence_length, self.predictions_per_sequence = sequence_length, predictions_per_sequence
        self.tokenizer, self.streams = tokenizer, streams if repeat else 1
        self.masking = MaskingRule(
            tokenizer, predictions_per_sequence, seed, masking_unit, masking_rate, mask_token_rate, random_token_rate
        )
        check_direction(direction, static_masks)
        self.direction = direction
        self.whole_batches = whole_batches or repeat
        check_parts(part[1], batch_size, self.whole_batches)
        check_streams(self.streams, batch_size, part[1], len(self.paths))
        counts = num_examples or [count_records(path) for path in self.paths]
        self.counts = counts if repeat else shares(counts, most_rows)
        for number in range(self.streams):
            of_stream = sum(self.counts[number :: self.streams])
            check_fills(of_stream, batch_size // self.streams if self.whole_batches else 0)
        self._batches, self._next = iter(()), None

    @property
    def num_batches(self):
        """The number of batches; None if they have no end."""
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
        if self.static_masks:
            rows = numpy_parsing.masked_rows(columns, self.sequence_length, self.predictions_per_sequence)
        else:
            parse = numpy_parsing.packed_rows if self.packed else numpy_parsing.unmasked_rows
            rows = parse(columns, self.sequence_length, self.tokenizer.pad_id, self.masking.unit == "phrase")
            rows = self.tokenizer.template.with_cls_segments(rows, self.tokenizer.cls_id, np.where)
            if self.direction == "both":
                rows = self.masking.mask(rows, epochs)
            else:
                rows = predict_next_tokens(rows, self.direction)
        arrays, ends = inputs_and_labels(rows, self.packed), np.cumsum(sizes)
        return [
            tuple({name: array[end - size : end] for name, array in each.items()} for each in arrays)
            for end, size in zip(ends.tolist(), sizes, strict=True)
        ]

    def _blocks(self, batches):
        """Lists of batches with about ROWS_AT_ONCE rows."""
        together = max(1, ROWS_AT_ONCE * self.part[1] // self.batch_size)
        while block := list(itertools.islice(batches, together)):
            yield block

    def _once(self, step):
        """The batches of (records of the part, epoch 0) in the order of the files, from number `step` on."""
        records = self._in_file_order(step * self.batch_size)
        for batch in rebatched(records, self.batch_size, drop_remainder=self.whole_batches):
            yield self._cut(batch), 0

    def _in_file_order(self, skip):
        for path, count in zip(self.paths, self.counts, strict=True):
            passed = min(skip, count)
            skip -= passed
            with contextlib.closing(RecordReader(path)) as reader:
                reader.skip(passed)
                for start in range(passed, count, ROWS_AT_ONCE):
                    records = reader.read(min(ROWS_AT_ONCE, count - start))
                    if start + len(records) < min(start + ROWS_AT_ONCE, count):
                        raise DamagedRecords(f"{path} has fewer than the {count:,} rows expected.")
                    yield records

    def _repeated(self, step):
        """Endless batches of (records of the part, their epoch or epochs), from number `step` on."""
        number, parts = self.part
        if self.streams == 1:
            return ((self._cut(records), epoch) for records, epoch in self._stream(0, step))
        own = range(number * self.streams // parts, (number + 1) * self.streams // parts)
        return map(joined, zip(*(self._stream(stream, step) for stream in own), strict=True))

    def _stream(self, number, step):
        """Endless batches of (records of a stream, their epoch); each epoch has its own order."""
        counts, batch_size = self.counts[number :: self.streams], self.batch_size // self.streams
        # These limits on rows in memory and on open files hold for all streams together.
        limits = {"window": -(-WINDOW // self.streams), "open_files": -(-OPEN_FILES // self.streams)}
        plan = plan_reading(self.paths[number :: self.streams], counts, **limits)
        first, done = divmod(step, sum(counts) // batch_size)
        for epoch in itertools.count(first):
            windows = shuffled_windows(plan, self.seed, epoch, number, done * batch_size if epoch == first else 0)
            for records in rebatched(prefetched(windows, 1), batch_size, drop_remainder=True):
                yield records, epoch

    def _cut(self, records):
        """The records of the part, (number, number of parts), of a batch."""
        number, parts = self.part
        count = len(records) // parts
        return records if parts == 1 else records[number * count : (number + 1) * count]


def check_parts(parts, batch_size, whole_batches):
    """Raises ValueError if batches cannot be divided evenly among `parts` processes."""
    if batch_size % parts or (parts > 1 and not whole_batches):
        raise ValueError(
            f"Batches of {batch_size} rows (whole_batches={whole_batches}) cannot be divided evenly among {parts} "
            f"processes: use whole batches, of a multiple of {parts} rows."
        )


def check_streams(streams, batch_size, parts, num_files):
    """Raises ValueError if the files cannot be divided among `streams` for batches of `parts` parts."""
    if streams > 1 and (batch_size % streams or streams % parts or streams > num_files):
        raise ValueError(
            f"{streams} streams must divide the {batch_size} rows of a batch, be a multiple of the number of "
            f"processes, {parts}, and not be more than the {num_files} files of training rows."
        )


def check_fills(num_examples, batch_size):
    """Raises ValueError if there are fewer examples than a batch has rows."""
    if num_examples < batch_size:
        raise ValueError(f"{num_examples} examples do not fill a batch of {batch_size}: use smaller batches.")


def check_direction(direction, static_masks):
    """Raises ValueError for a direction that needs the words that static masks hide."""
    if direction != "both" and static_masks:
        raise ValueError(
            f"direction {direction!r} predicts the words of unmasked rows, but these were masked while they were "
            "prepared: prepare the data without static_masks."
        )


def shares(num_examples, most_rows):
    """The number of rows to take from each file, in proportion to its size: `most_rows` altogether, or all."""
    if most_rows is None or most_rows >= sum(num_examples):
        return num_examples
    ends = np.cumsum(num_examples, dtype=np.int64) * most_rows // sum(num_examples)
    return np.diff(ends, prepend=0).tolist()


def inputs_and_labels(rows, packed):
    """The arrays of rows that the model reads, and those that it is compared with: two dicts, see `features`."""
    if packed:
        inputs, labels = features.PACKED_PRETRAINING_INPUTS, features.PACKED_PRETRAINING_LABELS
    else:
        inputs, labels = features.PRETRAINING_INPUTS, features.PRETRAINING_LABELS
    return {name: rows[name] for name in inputs}, {name: rows[name] for name in labels}


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
