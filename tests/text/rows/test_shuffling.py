"""The order of training rows. In these tests, each row holds its file and its place in that file."""

import numpy as np
import pytest
from tiers import full_but, on, once

from keras_bert_impl.text.rows.example_files import write_records
from keras_bert_impl.text.rows.numpy_shuffling import plan_reading, shuffled_windows

pytestmark = once

BATCH, WINDOW = 20, 3000


@pytest.fixture
def write(tmp_path):
    """Writes files with so many rows each, "file place"; returns the paths and numbers."""

    def call(counts):
        paths = [str(tmp_path / f"{number:04d}") for number in range(len(counts))]
        for number, (path, count) in enumerate(zip(paths, counts, strict=True)):
            write_records(path, [f"{number} {place}".encode() for place in range(count)])
        return paths, list(counts)

    return call


def rows_of_epoch(files, epoch=0, seed=3, stream=0, open_files=128, window=WINDOW):
    """Files and places, (rows, 2), in the order in which the rows are read."""
    windows = shuffled_windows(plan_reading(*files, window, open_files), seed, epoch, stream)
    return np.array([record.split() for records in windows for record in records]).astype(int)


def correlation(values):
    return np.corrcoef(np.arange(len(values)), values)[0, 1]


EQUAL = [500] * 60
# Very uneven files, in the most difficult order: long ones last.
UNEVEN = np.linspace(10, 990, 60).astype(int).tolist()


@pytest.mark.parametrize(("counts", "open_files"), [(EQUAL, 128), (UNEVEN, 15)], ids=["all_open", "some_open"])
def test_when_a_row_comes_says_nothing_of_its_file(write, counts, open_files):
    """Ten windows of rows. If files were read one by one, the correlation would be 0.9."""
    found = rows_of_epoch(write(counts), open_files=open_files)
    assert abs(correlation(found[:, 0])) < 0.05


def test_every_tenth_of_an_epoch_has_the_share_of_every_file(write):
    tenths = np.array_split(rows_of_epoch(write(UNEVEN))[:, 0], 10)
    shares = np.array([np.bincount(tenth, minlength=len(UNEVEN)) for tenth in tenths])
    expected = np.array(UNEVEN) / 10
    assert (np.abs(shares - expected) <= 0.12 * expected + 2).all()


def test_rows_of_a_file_that_follow_one_another_on_disk_do_not_when_they_come(write):
    """If rows were read in turn and not shuffled, the places in a file would always rise."""
    found = rows_of_epoch(write([400] * 25), window=10_000)
    of_one = found[found[:, 0] == 11, 1]
    assert abs(correlation(of_one)) < 0.15 and abs(correlation(found[:, 1])) < 0.02


def test_an_epoch_has_every_row_once(write):
    counts = [2, 301, 57, 0, 5, 400, 333]
    for open_files in (128, 3):
        found = [tuple(row) for row in rows_of_epoch(write(counts), open_files=open_files, window=90)]
        assert len(found) == len(set(found)) == sum(counts)


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
    first = rows_of_epoch(files)
    np.testing.assert_array_equal(first, rows_of_epoch(files))
    orders = [first, rows_of_epoch(files, epoch=1), rows_of_epoch(files, seed=4)]
    orders += [rows_of_epoch(files, stream=1), rows_of_epoch(files, epoch=1, seed=2)]  # 1 + 2 is not 0 + 3
    assert len({order.tobytes() for order in orders}) == 5


def test_an_epoch_does_not_end_with_a_short_window(write):
    """With one row more than a window, the rows at the ends of the files would come last in every epoch."""
    found = rows_of_epoch(write([505] * 2), window=1000)
    assert (found[-10:, 1] < 400).any()


COUNTS = {"few": [2, 301, 57, 0, 5, 400, 333], "tiny": [3, 1, 20], "uneven": UNEVEN, "equal": [120] * 25}


@on("tensorflow")
@pytest.mark.parametrize("counts", full_but(COUNTS, "few", "tiny"))
@pytest.mark.parametrize("open_files", full_but([128, 7], 7))
def test_the_order_of_tf_data_is_the_same(write, counts, open_files):
    """Windows have fewer and more rows than turns, and groups fewer rows than turns."""
    from keras_bert_impl.preprocessing.graphs.tf_data import shuffled_batches

    paths, counts = write(COUNTS[counts])
    for window in (90, 3000):
        batches = shuffled_batches(paths, counts, BATCH, 3, 2, window=window, open_files=open_files)
        expected = [record for batch in batches.as_numpy_iterator() for record in batch]
        plan = plan_reading(paths, counts, window, open_files)
        for skip in (0, 7, sum(counts) // 2):
            found = [record for records in shuffled_windows(plan, 3, 2, skip=skip) for record in records]
            assert len(found) == sum(counts) - skip
            assert found[: max(0, len(expected) - skip)] == expected[skip:]
