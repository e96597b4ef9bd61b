"""Rows read without TensorFlow are those of tf.data, byte for byte, for the same seed, epoch and step."""

import copy
import itertools
import threading

import numpy as np
import pytest
from made_text import TOKENIZER, opened, tokens, write
from tiers import full_but, on, once

from keras_bert_impl.preprocessing.graphs.tf_data import read_training_data
from keras_bert_impl.text.rows import numpy_data
from keras_bert_impl.text.rows.example_files import DamagedRecords
from keras_bert_impl.text.rows.numpy_data import prefetched
from keras_bert_impl.text.rows.phrases import PhraseFinder
from keras_bert_impl.text.tokenizers.rows import XLNET_ROWS

pytestmark = once

SHAPE = {"sequence_length": 32, "predictions_per_sequence": 5}
FORMATS = {
    "dynamic": {},
    "whole_word": {"masking_unit": "whole_word"},
    "span": {"masking_unit": "span"},
    "ngram": {"masking_unit": "ngram"},
    "context_span": {"masking_unit": "context_span"},
    "phrase": {"masking_unit": "phrase"},
    "phrase_packed": {"masking_unit": "phrase", "packed": True},
    "static": {"static_masks": True},
    "packed": {"packed": True},
    "many_masks": {"masking_rate": 0.4, "predictions_per_sequence": 13},
    "masking_mix": {"mask_token_rate": 0.2, "random_token_rate": 0.5},
    "left_to_right": {"direction": "left_to_right"},
    "right_to_left_packed": {"packed": True, "direction": "right_to_left"},
}
OF_READING = (
    *("masking_unit", "masking_rate", "predictions_per_sequence", "mask_token_rate", "random_token_rate"),
    "direction",
)


@pytest.fixture(scope="module")
def written(request, tmp_path_factory):
    """Three files of very different size in one of the formats, and the options for reading them."""
    directory, options = tmp_path_factory.mktemp("written"), FORMATS[request.param]
    paths = [directory / str(number) for number in range(3)]
    of_writing = {name: value for name, value in options.items() if name not in OF_READING}
    for number, (path, count) in enumerate(zip(paths, (3, 40, 17), strict=True)):
        documents, phrases = tokens(count), options.get("masking_unit") == "phrase"
        if phrases:
            documents, _ = PhraseFinder(TOKENIZER, ["the cat", "dog ran", "rain in"]).mark(documents)
        write(path, documents, number=number, phrases=phrases, **SHAPE, **of_writing)
    return paths, options


def of_formats(*formats):
    """A test of TensorFlow by formats."""
    by_format = pytest.mark.parametrize("written", formats, indirect=True, scope="module")
    return lambda test: on("tensorflow")(by_format(test))


def assert_same_bytes(paths, count, batch_size=4, **options):
    """Reads `count` batches both ways, or all."""
    arguments = {"batch_size": batch_size, **SHAPE, **options}
    expected = read_training_data(opened(paths, **arguments)).as_numpy_iterator()
    found = iter(opened(paths, **arguments))
    batches = 0
    for one, other in itertools.islice(itertools.zip_longest(found, expected), count):
        for ours, theirs in zip(one, other, strict=True):
            assert ours.keys() == theirs.keys()
            for name, array in theirs.items():
                assert ours[name].dtype == array.dtype and ours[name].shape == array.shape, name
                assert ours[name].tobytes() == array.tobytes(), name
        batches += 1
    return batches


# Masks of the other units are compared by themselves, in test_masking.py.
@of_formats(*full_but(FORMATS, "static", "right_to_left_packed"))
def test_epochs_are_those_of_tf_data(written):
    """Two epochs or so: their orders and their masks."""
    paths, options = written
    assert assert_same_bytes(paths, 25, seed=5, **options) == 25


@of_formats("dynamic")
@pytest.mark.full
def test_a_run_goes_on_where_tf_data_would(written):
    paths, options = written
    for start_step in (9, 100):
        assert_same_bytes(paths, 3, start_step=start_step, **options)


@of_formats("phrase_packed")
def test_windows_smaller_than_the_files_and_few_open_files_give_the_same_order(written, monkeypatch):
    paths, options = written
    monkeypatch.setattr(numpy_data, "WINDOW", 13)
    monkeypatch.setattr(numpy_data, "OPEN_FILES", 2)
    assert_same_bytes(paths, 30, start_step=7, batch_size=3, **options)


@of_formats("packed")
def test_rows_for_evaluation_are_those_of_tf_data(written):
    paths, options = written
    for more in ({}, {"most_rows": 11, "whole_batches": True}):
        assert_same_bytes(paths, None, repeat=False, **options, **more)


@of_formats("whole_word")
def test_processes_read_the_parts_of_tf_data(written):
    paths, options = written
    for more in ({"streams": 2}, {"repeat": False, "whole_batches": True}):
        assert_same_bytes(paths, 12, part=(1, 2), **options, **more)


@pytest.fixture
def path(tmp_path):
    write(tmp_path / "rows", tokens(40), **SHAPE)
    return tmp_path / "rows"


def test_any_batch_may_be_asked_for(path):
    """Keras asks for batch 0 again in each validation."""
    batches = opened([path], batch_size=4, repeat=False, **SHAPE)
    found = list(batches)
    assert len(found) == batches.num_batches > 10
    for index in (0, 1, 9, 0, 3):
        np.testing.assert_array_equal(batches[index][0]["token_ids"], found[index][0]["token_ids"])


@pytest.mark.parametrize("repeat", [True, False])
def test_damage_is_reported_with_the_file(path, repeat):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(DamagedRecords, match=r"rows is damaged in the record before byte"):
        next(iter(opened([path], batch_size=4, repeat=repeat, num_examples=[83], **SHAPE)))


@pytest.mark.parametrize("repeat", [True, False])
def test_a_file_with_fewer_rows_than_expected_is_not_read_in_silence(path, repeat):
    with pytest.raises(DamagedRecords, match=r"rows.*fewer"):
        batches = opened([path], batch_size=4, repeat=repeat, num_examples=[99], **SHAPE)
        list(itertools.islice(batches, 30))


def test_batches_that_cannot_be_are_refused_as_by_tf_data(path):
    for options, message in (
        ({"batch_size": 500}, "examples do not fill a batch of 500"),
        ({"batch_size": 4, "part": (0, 3)}, r"Batches of 4 rows .* among 3 processes"),
        ({"batch_size": 4, "streams": 2}, "2 streams: expected a divisor of"),
    ):
        with pytest.raises(ValueError, match=message):
            opened([path], **SHAPE, **options)


def test_batches_that_are_given_up_are_not_waited_for():
    """Closed by the garbage collector in the middle of another thread's start, a wait for theirs would never end."""
    may_go_on = threading.Event()

    def slow():
        yield 1
        may_go_on.wait(20)
        yield 2

    items = prefetched(slow(), 1)
    assert next(items) == 1
    closing = threading.Thread(target=items.close)
    closing.start()
    closing.join(5)
    was_closed = not closing.is_alive()
    may_go_on.set()
    closing.join()
    assert was_closed


@on("tensorflow")
@pytest.mark.parametrize("options", full_but([{}, {"packed": True}, {"static_masks": True}], {"packed": True}))
def test_cls_has_its_own_segment_in_rows_that_end_in_it(options, tmp_path):
    tokenizer, path = copy.copy(TOKENIZER), tmp_path / "rows"
    tokenizer.template = XLNET_ROWS
    write(path, tokens(17), tokenizer, number=0, **SHAPE, **options)
    nothing_hidden = {} if "static_masks" in options else {"mask_token_rate": 0.0, "random_token_rate": 0.0}
    reading = {**SHAPE, **options, **nothing_hidden, "batch_size": 4, "repeat": False}
    both = zip(
        opened([path], tokenizer, **reading),
        read_training_data(opened([path], tokenizer, **reading)).as_numpy_iterator(),
        strict=True,
    )
    for (rows, _), (of_tensorflow, _) in both:
        for name, array in rows.items():
            np.testing.assert_array_equal(array, of_tensorflow[name])
        last = rows["padding_mask"] > np.pad(rows["padding_mask"], [(0, 0), (0, 1)])[:, 1:]
        assert (rows["segment_ids"][last] == 2).all() and (rows["token_ids"][last] == tokenizer.cls_id).all()
        assert "packed" in options or (rows["segment_ids"] == 2).sum() == len(last)
        assert set(rows["segment_ids"].ravel()) == {0, 1, 2}
