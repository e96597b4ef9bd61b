import itertools

import numpy as np
import pytest
from made_text import opened, tokens, write
from tiers import full_but, on, once

from keras_bert_impl.text.rows.example_files import count_records

# What tf.data reads has the same bytes, see test_numpy_data.py.
pytestmark = once

SHAPE = {"sequence_length": 16, "predictions_per_sequence": 3}
ROWS_OF_A_BATCH = 4


@pytest.fixture
def paths(tmp_path):
    paths = [tmp_path / "1", tmp_path / "2"]
    for number, path in enumerate(paths):
        write(path, tokens(5), number=number, **SHAPE)
    return paths


def batches(paths, count=None, **arguments):
    """The first batches as pairs of dicts of arrays."""
    found = opened(paths, batch_size=ROWS_OF_A_BATCH, **SHAPE, **arguments)
    return list(itertools.islice(found, count))


def assert_equal(ours, others):
    for pair, others_pair in zip(ours, others, strict=True):
        for one, other in zip(pair, others_pair, strict=True):
            assert one.keys() == other.keys()
            for name in one:
                np.testing.assert_array_equal(one[name], other[name], err_msg=name)


def unmasked(found):
    """The rows of batches before masking, in their order: equal rows compare equal, whatever their masks."""
    rows = []
    for inputs, labels in found:
        for row, token_ids in enumerate(inputs["token_ids"].copy()):
            chosen = labels["mask_weights"][row] > 0
            token_ids[inputs["mask_positions"][row][chosen]] = labels["mask_ids"][row][chosen]
            rows.append(token_ids.tobytes())
    return rows


FORMATS = {"dynamic": {}, "static": {"static_masks": True}, "packed": {"packed": True}}


@pytest.fixture(params=full_but(FORMATS, "packed", "static"))
def written(request, tmp_path):
    """Files of one of the formats, and the arguments of `batches` for it."""
    paths = [tmp_path / "1", tmp_path / "2"]
    for number, path in enumerate(paths):
        write(path, tokens(20), number=number, **SHAPE, **FORMATS[request.param])
    return paths, FORMATS[request.param]


def test_batches_depend_on_the_seed_alone(written):
    paths, options = written
    ours = batches(paths, 6, seed=5, **options)
    assert_equal(ours, batches(paths, 6, seed=5, **options))
    assert unmasked(ours) != unmasked(batches(paths, 6, seed=6, **options))


def test_every_epoch_has_its_own_order_of_rows_in_which_files_mix(written):
    paths, options = written
    of_file = [set(unmasked(batches([path], repeat=False, **options))) for path in paths]
    steps = len(unmasked(batches(paths, repeat=False, **options))) // ROWS_OF_A_BATCH
    found = batches(paths, 2 * steps, **options)
    first, second = unmasked(found[:steps]), unmasked(found[steps:])
    assert first != second
    for rows in first, second:
        half = rows[: len(rows) // 2]
        assert all(0.25 < sum(row in of_one for row in half) / len(half) for of_one in of_file)


def test_a_run_that_goes_on_sees_what_it_would_have_seen(written):
    paths, options = written
    steps = len(unmasked(batches(paths, repeat=False, **options))) // ROWS_OF_A_BATCH
    found = batches(paths, steps + 3, **options)
    for start in (2, steps, steps + 1):  # in the first epoch, at the end of it, in the second
        assert_equal(found[start:], batches(paths, steps + 3 - start, start_step=start, **options))


def joined(parts):
    """The batches put together from the parts that the processes read."""

    def of_both(*rows):
        return {name: np.concatenate([part[name] for part in rows]) for name in rows[0]}

    return [tuple(map(of_both, *batches)) for batches in zip(*parts, strict=True)]


def test_the_parts_of_processes_make_up_the_batches_of_one(paths):
    parts = [batches(paths, 9, part=(number, 2)) for number in range(2)]
    assert_equal(joined(parts), batches(paths, 9))


def test_streams_make_the_same_batches_in_any_number_of_processes(paths):
    whole = batches(paths, 20, streams=2)
    parts = [batches(paths, 20, streams=2, part=(number, 2)) for number in range(2)]
    assert_equal(joined(parts), whole)
    assert_equal(batches(paths, 7, streams=2, start_step=13), whole[13:])
    # The second of two processes reads only the second file, in each epoch all of it except an incomplete last batch.
    steps = count_records(paths[1]) // 2
    of_file = {row.tobytes() for inputs, _ in batches(paths[1:], repeat=False) for row in inputs["segment_ids"]}
    assert {row.tobytes() for inputs, _ in parts[1][:steps] for row in inputs["segment_ids"]} <= of_file
    assert unmasked(parts[1][:steps]) != unmasked(parts[1][steps : 2 * steps])


@on("tensorflow")
@pytest.mark.full
def test_shapes_of_whole_batches_are_static(paths):
    from keras_bert_impl.preprocessing.graphs.tf_data import read_training_data

    for options in {"part": (1, 2)}, {"streams": 2}:
        spec = read_training_data(opened(paths, batch_size=ROWS_OF_A_BATCH, **options, **SHAPE)).element_spec
        assert all(array.shape.is_fully_defined() for arrays in spec for array in arrays.values()), spec


def test_every_epoch_has_its_own_masks(paths):
    def masks(found):
        """Where the masks of each row are."""
        positions = np.concatenate([inputs["mask_positions"] for inputs, _ in found])
        return dict(zip(unmasked(found), positions.tolist(), strict=True))

    steps = len(batches(paths, repeat=False))
    found = batches(paths, 2 * steps)
    first, second = masks(found[:steps]), masks(found[steps:])
    assert any(first[row] != second[row] for row in first.keys() & second.keys())


@pytest.mark.parametrize("most_rows", full_but([2, 7, 12], 7))
def test_a_part_of_the_rows_has_rows_of_every_file(tmp_path, most_rows):
    """There are three files; the second and third have two and three times the text of the first."""
    paths = [tmp_path / str(number) for number in range(3)]
    counts = [write(path, tokens(9 * (n + 1)), number=n, **SHAPE)[0] for n, path in enumerate(paths)]
    found = batches(paths, repeat=False, most_rows=most_rows)
    rows = unmasked(found)
    assert len(rows) == most_rows and len(found) == -(-most_rows // ROWS_OF_A_BATCH)
    expected = [row for path in paths for row in unmasked(batches([path], repeat=False))]
    starts = np.cumsum([0, *counts[:-1]])
    ends = [0, *(np.cumsum(counts) * most_rows // sum(counts))]
    shares = np.diff(ends)
    assert rows == [row for start, share in zip(starts, shares, strict=True) for row in expected[start : start + share]]
    assert most_rows < 7 or (shares > 0).all()
    assert_equal(batches(paths, repeat=False, most_rows=10**6), batches(paths, repeat=False))


def test_static_masks_are_the_same_in_every_epoch(tmp_path):
    write(tmp_path / "1", tokens(9), static_masks=True, **SHAPE)
    paths = [tmp_path / "1"]

    def rows(found):
        return {inputs["token_ids"][row].tobytes() for inputs, _ in found for row in range(ROWS_OF_A_BATCH)}

    steps = len(batches(paths, repeat=False, static_masks=True)) - 1
    repeated = rows(batches(paths, 4 * steps, static_masks=True))
    assert len(repeated) <= count_records(paths[0])


@pytest.mark.parametrize("pairs", ["sentence_order", "full_sentences", "doc_sentences"])
def test_other_rows_than_next_sentences_are_read_alike(tmp_path, pairs):
    count, used, unused = write(tmp_path / "1", tokens(9), pairs=pairs, **SHAPE)
    found = batches([tmp_path / "1"], repeat=False)
    assert sum(len(inputs["token_ids"]) for inputs, _ in found) == count
    assert sum(inputs["padding_mask"].sum() for inputs, _ in found) == used
    has_second = any(inputs["segment_ids"].any() for inputs, _ in found)
    assert has_second == (pairs == "sentence_order") and (unused == 0 or has_second)
