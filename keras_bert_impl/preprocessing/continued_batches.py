"""Batches whose rows continue those of the batch before, of the files of `continued_text`, for every backend.

files in the order of an epoch -> their rows, one after the other -> as many equal parts as a batch has rows -> the
first rows of all parts, the second ones, ...
"""

import itertools

import numpy as np

from keras_bert_impl.preprocessing.masking import mask_tokens
from keras_bert_impl.preprocessing.numpy_data import TrainingBatches, check_fills
from keras_bert_impl.preprocessing.numpy_shuffling import OPEN_FILES
from keras_bert_impl.preprocessing.randomness import Stream, random_keys, uniforms
from keras_bert_impl.preprocessing.record_files import RecordsByPlace
from keras_bert_impl.preprocessing.shards import is_backward


class ContinuedBatches(TrainingBatches):
    """TrainingBatches in which row i of a batch continues row i of the batch before it (`batchify` of
    zihangdai/xlnet's data_utils.py).

    Each epoch has its own order of files. At the beginning of a file and of an epoch, where no row is continued,
    `continues` is 0; the original goes on with the memory of other text there. With `bi_data` every second row of a
    batch has the text read backwards, in which words are chosen as in the text read forwards.

    Without `whole_batches`, a batch has at most as many rows as there are; rows that do not fill one are left out.

    Args:
        bi_data: whether every second file holds text read backwards.
        others: as of TrainingBatches; each row has two `halves` as `mask_tokens` says.

    Raises: ValueError as there; with `bi_data` for batches with an odd number of rows.
    """

    def __init__(self, paths, tokenizer, *, batch_size, bi_data=False, most_rows=None, num_examples=None, **options):
        self.bi_data = bi_data
        if bi_data and batch_size % 2:
            raise ValueError(
                f"batch_size {batch_size} is odd, but half of the rows of a batch are read backwards: give an even one."
            )
        super().__init__(paths, tokenizer, batch_size=batch_size, num_examples=num_examples, **options)
        self.masking["halves"] = True
        kinds = ([], []) if bi_data else ([],)
        for path, count in zip(self.paths, self.counts, strict=True):
            kinds[is_backward(path) if bi_data else 0].append((path, count))
        self.kinds = kinds
        rows = min(sum(count for _, count in files) for files in kinds)
        if not self.whole_batches:
            self.batch_size = min(batch_size, rows * len(kinds))
        self.rows_of_kind = self.batch_size // len(kinds)
        for files in kinds:
            check_fills(sum(count for _, count in files), max(1, self.rows_of_kind))
        number, parts = self.part
        if self.rows_of_kind % parts:
            raise ValueError(
                f"{self.rows_of_kind} rows of each direction cannot be divided evenly among {parts} processes: give "
                f"--batch_size a multiple of {parts * len(kinds)}."
            )
        self.own_parts = range(*(place * self.rows_of_kind // parts for place in (number, number + 1)))
        self.steps = rows // self.rows_of_kind
        if most_rows is not None:
            self.steps = min(self.steps, max(1, most_rows // batch_size))

    @property
    def num_batches(self):
        return None if self.repeat else self.steps

    def _repeated(self, step):
        first, done = divmod(step, self.steps)
        records = RecordsByPlace(OPEN_FILES)
        for epoch in itertools.count(first):
            yield from self._epoch(epoch, self._in_order(epoch), done if epoch == first else 0, records)

    def _once(self, step):
        return self._epoch(0, self.kinds, step, RecordsByPlace(OPEN_FILES))

    def _in_order(self, epoch):
        """The files of each kind in the order of an epoch; those of the same text have the same place."""
        draws = uniforms(random_keys(Stream.FILE_ORDER, self.seed, epoch, 0), np.arange(len(self.kinds[0])))
        return [[files[place] for place in np.argsort(draws, kind="stable").tolist()] for files in self.kinds]

    def _epoch(self, epoch, kinds, done, records):
        """The batches of an epoch from number `done` on: (records, epoch, which rows continue others)."""
        ends = [np.cumsum([count for _, count in files]) for files in kinds]
        for step in range(done, self.steps):
            found, continues = [], []
            for part in self.own_parts:
                for files, end in zip(kinds, ends, strict=True):
                    row = part * (end[-1] // self.rows_of_kind) + step
                    number = int(np.searchsorted(end, row, side="right"))
                    path, count = files[number]
                    place = int(row - end[number] + count)
                    found.append(records.read(path, place))
                    continues.append(step > 0 and place > 0)
            yield found, epoch, np.array(continues, np.int32)

    def _masked(self, block):
        batches = super()._masked([(records, epoch) for records, epoch, _ in block])
        return [
            ({**inputs, "continues": continues}, labels)
            for (inputs, labels), (_, _, continues) in zip(batches, block, strict=True)
        ]

    def _hidden(self, rows, epochs):
        if not self.bi_data:
            return super()._hidden(rows, epochs)
        count, length = rows["token_ids"].shape
        is_backward = (np.arange(count) % 2 == 1)[:, np.newaxis]

        def turned(array):
            return np.where(is_backward, array[:, ::-1], array)

        of_tokens = ("token_ids", "padding_mask", "segment_ids")
        found = mask_tokens({**rows, **{name: turned(rows[name]) for name in of_tokens}}, epoch=epochs, **self.masking)
        # The places, which ascend, are turned, too, with those that only pad still behind them.
        is_real = found["mask_weights"] == 1
        place = np.where(is_backward, length - 1 - found["mask_positions"], found["mask_positions"])
        order = np.argsort(np.where(is_real, place, length), axis=1, kind="stable")
        found["mask_positions"] = np.where(is_real, place, 0).astype(np.int32)
        for name in ("mask_positions", "mask_ids", "mask_weights"):
            found[name] = np.take_along_axis(found[name], order, axis=1)
        return {**found, **{name: turned(found[name]) for name in of_tokens}}
