"""Rows read without TensorFlow are those of tf.data, byte for byte, for the same seed, epoch and step."""

import itertools

import pytest
from made_text import TOKENIZER, tokens

from keras_bert_impl.preprocessing import numpy_data, tf_data
from keras_bert_impl.preprocessing.numpy_data import TrainingBatches
from keras_bert_impl.preprocessing.pretraining import write_rows
from keras_bert_impl.preprocessing.tf_data import read_training_data

SHAPE = {"sequence_length": 32, "predictions_per_sequence": 5}
FORMATS = {
    "dynamic": {},
    "whole_word": {"masking_unit": "whole_word"},
    "span": {"masking_unit": "span"},
    "static": {"static_masks": True},
    "packed": {"packed": True},
}


@pytest.fixture(scope="module", params=FORMATS)
def written(request, tmp_path_factory):
    """Three files of very different size in one of the formats, and the options for reading them."""
    directory, options = tmp_path_factory.mktemp("written"), FORMATS[request.param]
    paths = [directory / str(number) for number in range(3)]
    of_writing = {name: value for name, value in options.items() if name != "masking_unit"}
    for number, (path, count) in enumerate(zip(paths, (3, 40, 17), strict=True)):
        write_rows(path, tokens(count), TOKENIZER, number=number, **SHAPE, **of_writing)
    return paths, options


def assert_same_bytes(paths, count, batch_size=4, **options):
    """Reads `count` batches both ways, or all."""
    arguments = {"batch_size": batch_size, **SHAPE, **options}
    expected = read_training_data(paths, TOKENIZER, **arguments).as_numpy_iterator()
    found = iter(TrainingBatches(paths, TOKENIZER, **arguments))
    batches = 0
    for one, other in itertools.islice(itertools.zip_longest(found, expected), count):
        for ours, theirs in zip(one, other, strict=True):
            assert list(ours) == sorted(ours, key=list(ours).index) and ours.keys() == theirs.keys()
            for name, array in theirs.items():
                assert ours[name].dtype == array.dtype and ours[name].shape == array.shape, name
                assert ours[name].tobytes() == array.tobytes(), name
        batches += 1
    return batches


def test_epochs_are_those_of_tf_data(written):
    """Three epochs or so: their orders and their masks."""
    paths, options = written
    assert assert_same_bytes(paths, 40, seed=5, **options) == 40


def test_a_run_goes_on_where_tf_data_would(written):
    paths, options = written
    for start_step in (1, 9, 23, 1000):
        assert_same_bytes(paths, 5, start_step=start_step, **options)


def test_windows_smaller_than_the_files_and_few_open_files_give_the_same_order(written, monkeypatch):
    paths, options = written
    for module in (numpy_data, tf_data):
        monkeypatch.setattr(module, "WINDOW", 13)
        monkeypatch.setattr(module, "OPEN_FILES", 2)
    for start_step in (0, 7):
        assert_same_bytes(paths, 30, start_step=start_step, batch_size=3, **options)


def test_rows_for_evaluation_are_those_of_tf_data(written):
    paths, options = written
    for more in ({}, {"whole_batches": True}, {"most_rows": 7}, {"most_rows": 11, "whole_batches": True}):
        assert_same_bytes(paths, None, repeat=False, **options, **more)


def test_processes_read_the_parts_of_tf_data(written):
    paths, options = written
    for more in ({}, {"streams": 2}, {"repeat": False, "whole_batches": True}):
        for number in range(2):
            assert_same_bytes(paths, 25, part=(number, 2), **options, **more)
    assert_same_bytes(paths, 25, streams=2, **options)
