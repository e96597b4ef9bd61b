"""The order of training rows. In these tests, each row holds its file and its place in that file."""

import numpy as np
import pytest
import tensorflow as tf
from tiers import full_but, on

from keras_bert_impl.preprocessing.graphs.shuffling import shuffled_batches
from keras_bert_impl.text.rows.numpy_shuffling import plan_reading, shuffled_windows

pytestmark = on("tensorflow")

BATCH, WINDOW = 20, 3000


@pytest.fixture
def write(tmp_path):
    """Writes files with so many rows each, "file place"; returns the arguments of `shuffled_batches` for them."""

    def call(counts):
        paths = [str(tmp_path / f"{number:04d}") for number in range(len(counts))]
        for number, (path, count) in enumerate(zip(paths, counts, strict=True)):
            with tf.io.TFRecordWriter(path) as writer:
                for place in range(count):
                    writer.write(f"{number} {place}")
        return paths, list(counts)

    return call


def rows_of_epoch(files, epoch=0, seed=3, stream=0, open_files=128, window=WINDOW):
    """Files and places, (rows, 2), in the order in which the rows are read."""
    batches = shuffled_batches(*files, BATCH, seed, epoch, stream, window=window, open_files=open_files)
    return np.array([record.split() for batch in batches.as_numpy_iterator() for record in batch]).astype(int)


def correlation(values):
    return np.corrcoef(np.arange(len(values)), values)[0, 1]


EQUAL = [500] * 60
# Very uneven files, in the most difficult order: long ones last.
UNEVEN = np.linspace(10, 990, 60).astype(int).tolist()


@pytest.mark.parametrize("counts", [EQUAL, UNEVEN], ids=["equal", "uneven"])
@pytest.mark.parametrize("open_files", full_but([128, 15], 15), ids=["all_open", "some_open"])
def test_when_a_row_comes_says_nothing_of_its_file(write, counts, open_files):
    """Ten windows of rows, in each of two epochs. If files were read one by one, the correlation would be 0.9."""
    files = write(counts)
    for epoch in range(2):
        assert abs(correlation(rows_of_epoch(files, epoch, open_files=open_files)[:, 0])) < 0.05


@pytest.mark.parametrize("counts", [EQUAL, UNEVEN], ids=["equal", "uneven"])
def test_every_tenth_of_an_epoch_has_the_share_of_every_file(write, counts):
    tenths = np.split(rows_of_epoch(write(counts))[:, 0], 10)
    shares = np.array([np.bincount(tenth, minlength=len(counts)) for tenth in tenths])
    expected = np.array(counts) / 10
    assert (np.abs(shares - expected) <= 0.12 * expected + 2).all()


def test_rows_of_a_file_that_follow_one_another_on_disk_do_not_when_they_come(write):
    """If rows were read in turn and not shuffled, the places in a file would always rise."""
    found = rows_of_epoch(write([400] * 25), window=10_000)
    of_one = found[found[:, 0] == 11, 1]
    assert abs(correlation(of_one)) < 0.15 and abs(correlation(found[:, 1])) < 0.02


def test_an_epoch_has_every_row_once(write):
    """All rows are read, except an incomplete last batch."""
    counts = [2, 301, 57, 0, 5, 400, 333]
    for open_files in (128, 3):
        found = [tuple(row) for row in rows_of_epoch(write(counts), open_files=open_files, window=90)]
        assert len(found) == len(set(found)) == sum(counts) // BATCH * BATCH


def test_of_more_files_than_are_open_each_epoch_begins_with_others(write):
    """Files are read in groups of five: which group comes first is drawn for each epoch and seed."""
    files = write([120] * 25)

    def firsts(epoch, seed):
        return set(rows_of_epoch(files, epoch, seed, open_files=5, window=300)[:300, 0])

    found = [firsts(0, 3), firsts(1, 3), firsts(2, 3), firsts(0, 4)]
    assert len(set(map(frozenset, found))) == 4
    for files_of_one in found:
        assert {file // 5 for file in files_of_one} == set(range(5)), "the start has files from the whole of the list"


def test_an_order_depends_on_seed_epoch_and_stream_alone(write):
    files = write([210])  # with several files, the order would change even if that of their rows did not
    tf.random.set_seed(0)
    first = rows_of_epoch(files)
    tf.random.set_seed(5)
    np.testing.assert_array_equal(first, rows_of_epoch(files))
    orders = [first, rows_of_epoch(files, epoch=1), rows_of_epoch(files, seed=4)]
    orders += [rows_of_epoch(files, stream=1), rows_of_epoch(files, epoch=1, seed=2)]  # 1 + 2 is not 0 + 3
    assert len({order.tobytes() for order in orders}) == 5


def test_an_epoch_does_not_end_with_a_short_window(write):
    """With one row more than a window, the rows at the ends of the files would come last in every epoch."""
    found = rows_of_epoch(write([505] * 2), window=1000)
    assert (found[-10:, 1] < 400).any()


@pytest.mark.parametrize(
    "counts", [UNEVEN, [2, 301, 57, 0, 5, 400, 333], [3, 1, 20], [120] * 25], ids=["uneven", "few", "tiny", "equal"]
)
@pytest.mark.parametrize("open_files", full_but([128, 7], 7))
def test_the_order_in_numpy_is_the_same(write, counts, open_files):
    """Windows have fewer and more rows than turns, and groups fewer rows than turns."""
    paths, counts = write(counts)
    for window in (90, 3000):
        expected = rows_of_epoch((paths, counts), 2, open_files=open_files, window=window)
        plan = plan_reading(paths, counts, window, open_files)
        for skip in (0, 1, 7, sum(counts) // 2):
            windows = shuffled_windows(plan, 3, 2, skip=skip)
            found = [record for records in windows for record in records]
            assert len(found) == sum(counts) - skip
            found = np.array([record.split() for record in found]).astype(int)
            np.testing.assert_array_equal(found[: max(0, len(expected) - skip)], expected[skip:])
