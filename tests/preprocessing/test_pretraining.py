import itertools

import numpy as np
import pytest
import tensorflow as tf
from made_text import TOKENIZER, tokens

from keras_bert_impl.preprocessing.pretraining import read_training_data, write_rows

SHAPE = {"sequence_length": 16, "predictions_per_sequence": 3}
ROWS_OF_A_BATCH = 4


@pytest.fixture
def paths(tmp_path):
    paths = [tmp_path / "1", tmp_path / "2"]
    for number, path in enumerate(paths):
        write_rows(path, tokens(5), TOKENIZER, number=number, **SHAPE)
    return paths


def batches(paths, count=None, **arguments):
    """The first batches as pairs of dicts of arrays."""
    dataset = read_training_data(paths, TOKENIZER, batch_size=ROWS_OF_A_BATCH, **SHAPE, **arguments)
    return list(itertools.islice(dataset.as_numpy_iterator(), count))


def assert_equal(ours, others):
    for one, other in zip(ours, others, strict=True):
        tf.nest.map_structure(np.testing.assert_array_equal, one, other)


def differ(one, other):
    return not np.array_equal(one[0]["token_ids"], other[0]["token_ids"])


def test_batches_depend_on_the_seed_alone(paths):
    # A global seed of 0 made tf.data refuse a seed that is a tensor.
    tf.random.set_seed(0)
    ours = batches(paths, 12, seed=5)
    tf.random.set_seed(3)
    assert_equal(ours, batches(paths, 12, seed=5))
    assert any(map(differ, ours, batches(paths, 12, seed=6)))


def test_a_run_that_goes_on_sees_what_it_would_have_seen(paths):
    assert_equal(batches(paths, 20)[13:], batches(paths, 7, start_step=13))


def joined(parts):
    """The batches of which each process read a part."""
    return [tf.nest.map_structure(lambda *arrays: np.concatenate(arrays), *each) for each in zip(*parts, strict=True)]


def test_the_parts_of_processes_make_up_the_batches_of_one(paths):
    parts = [batches(paths, 9, part=(number, 2)) for number in range(2)]
    assert_equal(joined(parts), batches(paths, 9))
    with pytest.raises(ValueError, match="Batches of 4, whole_batches=True, have no 3 even parts"):
        batches(paths, 1, part=(0, 3))


def test_streams_make_the_same_batches_in_any_number_of_processes(paths):
    whole = batches(paths, 20, streams=2)
    parts = [batches(paths, 20, streams=2, part=(number, 2)) for number in range(2)]
    assert_equal(joined(parts), whole)
    assert_equal(batches(paths, 7, streams=2, start_step=13), whole[13:])
    # The second of two processes reads the second file alone, each epoch whole but for what fills no batch.
    steps = sum(1 for _ in tf.data.TFRecordDataset(str(paths[1]))) // 2
    of_file = {row.tobytes() for inputs, _ in batches(paths[1:], repeat=False) for row in inputs["segment_ids"]}
    assert {row.tobytes() for inputs, _ in parts[1][:steps] for row in inputs["segment_ids"]} <= of_file
    assert any(map(differ, parts[1][:steps], parts[1][steps : 2 * steps]))


@pytest.mark.parametrize(("streams", "part"), [(3, (0, 1)), (4, (0, 1)), (2, (0, 4))])
def test_streams_that_cannot_be_are_refused(paths, streams, part):
    with pytest.raises(ValueError, match=f"{streams} streams .* the 4 rows .* processes, {part[1]},.* the 2 files"):
        batches(paths, 1, streams=streams, part=part)


def test_shapes_of_whole_batches_are_static(paths):
    for options in {}, {"part": (1, 2)}, {"streams": 2}:
        spec = read_training_data(paths, TOKENIZER, batch_size=ROWS_OF_A_BATCH, **options, **SHAPE).element_spec
        assert all(each.shape.is_fully_defined() for each in tf.nest.flatten(spec)), spec


def test_every_epoch_has_its_own_order_and_masks(paths):
    steps = len(batches(paths, repeat=False))
    first, second = batches(paths, 2 * steps)[:steps], batches(paths, 2 * steps)[steps:]
    assert any(map(differ, first, second))


def test_evaluation_reads_every_row_once_and_says_how_many_batches(paths):
    dataset = read_training_data(paths, TOKENIZER, batch_size=ROWS_OF_A_BATCH, repeat=False, **SHAPE)
    found = list(dataset.as_numpy_iterator())
    assert int(dataset.cardinality()) == len(found)
    rows = sum(1 for _ in tf.data.TFRecordDataset([str(path) for path in paths]))
    assert sum(len(inputs["token_ids"]) for inputs, _ in found) == rows
    assert_equal(found, batches(paths, repeat=False))


def test_static_masks_are_the_same_in_every_epoch(tmp_path):
    write_rows(tmp_path / "1", tokens(9), TOKENIZER, static_masks=True, **SHAPE)
    paths = [tmp_path / "1"]

    def rows(found):
        return {inputs["token_ids"][row].tobytes() for inputs, _ in found for row in range(ROWS_OF_A_BATCH)}

    steps = len(batches(paths, repeat=False, static_masks=True)) - 1
    repeated = rows(batches(paths, 4 * steps, static_masks=True))
    assert len(repeated) <= sum(1 for _ in tf.data.TFRecordDataset([str(path) for path in paths]))


@pytest.mark.parametrize("pairs", ["sentence_order", "full_sentences", "doc_sentences"])
def test_other_rows_than_next_sentences_are_read_alike(tmp_path, pairs):
    count, used = write_rows(tmp_path / "1", tokens(9), TOKENIZER, pairs=pairs, **SHAPE)
    found = batches([tmp_path / "1"], repeat=False)
    assert sum(len(inputs["token_ids"]) for inputs, _ in found) == count
    assert sum(inputs["padding_mask"].sum() for inputs, _ in found) == used
    has_second = any(inputs["segment_ids"].any() for inputs, _ in found)
    assert has_second == (pairs == "sentence_order")
