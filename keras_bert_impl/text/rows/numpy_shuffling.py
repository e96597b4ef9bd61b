"""The order of training rows, without TensorFlow; `tf_data` gives the same order in a tf.data graph.

files -> groups, each read file by file -> in turn, each group at its own pace -> windows -> shuffled
"""

import contextlib
from typing import NamedTuple

import numpy as np

from keras_bert_impl.text.rows.example_files import DamagedRecords, RecordReader
from keras_bert_impl.text.rows.randomness import Stream, random_keys, uniforms

# Rows that are shuffled together: the whole of a small corpus, a good mix of a large one. Up to four times as many rows
# are in memory, in the form they have on disk, some 300 bytes for 128 tokens.
WINDOW = 50_000
# An open file buffers 256 KB, so this many files need as much memory as the windows. Some systems allow a process no
# more than 256 open files.
OPEN_FILES = 128
# How often each group has its turn while a window is filled.
TURNS_IN_WINDOW = 10


class Plan(NamedTuple):
    """How the files of an epoch are read, the same in each epoch.

    `paths`: files that have rows; those without any could not take turns.
    `splits`: int (groups + 1,), where each group of consecutive files begins in `paths`.
    `rows`: int64 (groups,), rows of each group.
    `turns`: how often each group has its turn.
    `window`: rows of a window, except the last one.
    """

    paths: tuple
    splits: np.ndarray
    rows: np.ndarray
    turns: int
    window: int


def plan_reading(paths, num_examples, window, open_files):
    """The `Plan` for files with so many rows each, windows of about `window` rows and this many files open at once."""
    paths, num_examples = zip(*((p, n) for p, n in zip(paths, num_examples, strict=True) if n), strict=True)
    total = sum(num_examples)
    windows = max(1, round(total / window))  # of equal size, so that epochs do not always end with a short one
    splits = np.linspace(0, len(paths), min(open_files, len(paths)) + 1).astype(int)
    rows = np.add.reduceat(np.array(num_examples, np.int64), splits[:-1])
    return Plan(paths, splits, rows, windows * TURNS_IN_WINDOW, -(-total // windows))


def shuffled_windows(plan, seed, epoch, stream=0, skip=0):
    """The records of an epoch, in the order of `tf_data.shuffled_batches`.

    Args:
        plan: a `Plan`.
        seed: integer.
        epoch: integer.
        stream: number that distinguishes readers with the same seed and epoch.
        skip: rows to leave out at the beginning. Windows of which all rows are left out are not looked at.

    Yields: the records of a window, a list of bytes, without those to leave out.
    """
    draws = uniforms(random_keys(Stream.FILE_ORDER, seed, epoch, stream), np.arange(len(plan.paths)))
    first, waiting = skip // plan.window * plan.window, []  # the first row that is looked at
    place = 0  # of the next row in the epoch
    with contextlib.ExitStack() as opened:
        groups = [
            opened.enter_context(contextlib.closing(_Group(_in_order(plan.paths[start:end], draws[start:end]))))
            for start, end in zip(plan.splits[:-1].tolist(), plan.splits[1:].tolist(), strict=True)
        ]
        in_turn = np.argsort(draws[plan.splits[:-1]], kind="stable").tolist()
        for turn in range(plan.turns):
            counts = plan.rows * (turn + 1) // plan.turns - plan.rows * turn // plan.turns
            for number in in_turn:
                count = int(counts[number])
                passed = min(count, max(0, first - place))
                groups[number].read(passed, RecordReader.skip)
                waiting += groups[number].read(count - passed, RecordReader.read)
                place += count
                while len(waiting) >= plan.window:
                    yield [waiting[row] for row in _order(plan, first, seed, epoch, stream, skip)]
                    first, waiting = first + plan.window, waiting[plan.window :]
        if waiting:
            yield [waiting[row] for row in _order(plan, first, seed, epoch, stream, skip)]


def _order(plan, first, seed, epoch, stream, skip):
    """The order of the rows of a window, of which `first` is the first in the epoch, without those to leave out."""
    rows = min(plan.window, int(plan.rows.sum()) - first)
    draws = uniforms(random_keys(Stream.ROW_ORDER, seed, epoch, stream, first // plan.window), np.arange(rows))
    return np.argsort(draws, kind="stable")[max(0, skip - first) :].tolist()


def _in_order(paths, draws):
    return [paths[place] for place in np.argsort(draws, kind="stable").tolist()]


class _Group:
    """Files that are read one after the other, one of them open at a time."""

    def __init__(self, paths):
        self._waiting, self._reader, self._last = list(reversed(paths)), None, None

    def read(self, count, how):
        """`count` records; `how` is RecordReader.read, or RecordReader.skip, which returns None for each."""
        found = []
        while len(found) < count:
            if self._reader is None:
                if not self._waiting:
                    raise DamagedRecords(f"{self._last}, or a file read before it, has fewer rows than expected.")
                self._last = self._waiting.pop()
                self._reader = RecordReader(self._last)
            part = how(self._reader, count - len(found))
            found += part
            if not part:
                self.close()
        return found

    def close(self):
        if self._reader is not None:
            self._reader.close()
            self._reader = None
