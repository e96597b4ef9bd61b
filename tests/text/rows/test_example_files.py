import numpy as np
import pytest
import tensorflow as tf
from made_text import TOKENIZER, ragged
from tiers import on

from keras_bert_impl.preprocessing.graphs import tensorflow_arrays
from keras_bert_impl.preprocessing.graphs.tf_data import parsed
from keras_bert_impl.text.ragged import Ragged, take
from keras_bert_impl.text.rows.example_files import parse_rows, serialize_rows, write_examples
from keras_bert_impl.text.rows.pretraining_rows import RowFormat
from keras_bert_impl.text.rows.row_features import google_features, padded_rows, widths_of

pytestmark = on("tensorflow")

LENGTH, PREDICTIONS = 7, 3

ROWS = {
    "input_ids": ragged([[1, 7, 8, 2, 9, 2], [1, 5, 2, 6, 7, 8, 2], [1, 5, 2]]),
    "first_segment_length": np.array([4, 3, 3]),
    "next_sentence_labels": np.array([0, 1, 1], np.int32),
    "example_index": np.array([5, 2**40, 7], np.int64),
}

# The same examples, as they are read.
UNMASKED = {
    "token_ids": np.array([[1, 7, 8, 2, 9, 2, 0], [1, 5, 2, 6, 7, 8, 2], [1, 5, 2, 0, 0, 0, 0]], np.int32),
    "segment_ids": np.array([[0, 0, 0, 0, 1, 1, 0], [0, 0, 0, 1, 1, 1, 1], [0, 0, 0, 0, 0, 0, 0]], np.int32),
    "padding_mask": np.array([[1, 1, 1, 1, 1, 1, 0], [1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 0, 0, 0, 0]], np.int32),
    "next_sentence_labels": np.array([0, 1, 1], np.int32),
    "example_index": np.array([5, 2**40, 7], np.int64),
}

MASKED = {name: values for name, values in UNMASKED.items() if name != "example_index"} | {
    "mask_positions": np.array([[1, 4, 0], [3, 0, 0], [1, 0, 0]], np.int32),
    "mask_ids": np.array([[7, 9, 0], [6, 0, 0], [5, 0, 0]], np.int32),
    "mask_weights": np.array([[1, 1, 0], [1, 0, 0], [1, 0, 0]], np.float32),
}


def read(*paths, length=LENGTH, static_masks=False):
    records = tf.stack(list(tf.data.TFRecordDataset([str(path) for path in paths])))
    features = parsed(records, widths_of(RowFormat(length, PREDICTIONS, static_masks=static_masks)))
    return padded_rows(features, length, TOKENIZER, tensorflow_arrays)


def assert_rows_equal(rows, expected):
    assert rows.keys() == expected.keys()
    for name, values in expected.items():
        assert rows[name].dtype == values.dtype, name
        np.testing.assert_array_equal(rows[name], values, err_msg=name)


def test_masked_examples_come_back(tmp_path):
    assert write_examples(tmp_path / "shard", [google_features(MASKED)]) == 3
    assert_rows_equal(read(tmp_path / "shard", static_masks=True), MASKED)


def test_google_reads_masked_examples(tmp_path):
    # The feature description of `input_fn_builder` in google-research/bert's run_pretraining.py.
    description = {
        "input_ids": tf.io.FixedLenFeature([LENGTH], tf.int64),
        "input_mask": tf.io.FixedLenFeature([LENGTH], tf.int64),
        "segment_ids": tf.io.FixedLenFeature([LENGTH], tf.int64),
        "masked_lm_positions": tf.io.FixedLenFeature([PREDICTIONS], tf.int64),
        "masked_lm_ids": tf.io.FixedLenFeature([PREDICTIONS], tf.int64),
        "masked_lm_weights": tf.io.FixedLenFeature([PREDICTIONS], tf.float32),
        "next_sentence_labels": tf.io.FixedLenFeature([1], tf.int64),
    }
    write_examples(tmp_path / "shard", [google_features(MASKED)])
    record = next(iter(tf.data.TFRecordDataset(str(tmp_path / "shard"))))
    row = tf.io.parse_single_example(record, description)
    assert row["input_ids"].numpy().tolist() == [1, 7, 8, 2, 9, 2, 0]
    assert row["masked_lm_positions"].numpy().tolist() == [1, 4, 0]
    assert row["masked_lm_weights"].numpy().tolist() == [1, 1, 0]
    assert row["next_sentence_labels"].numpy().tolist() == [0]
    assert set(tf.train.Example.FromString(record.numpy()).features.feature) == set(description)


def test_batches_and_files_are_read_in_order(tmp_path):
    rows = [{name: take(values, slice(i, i + 1)) for name, values in ROWS.items()} for i in range(3)]
    write_examples(tmp_path / "1", rows[:2])
    write_examples(tmp_path / "2", rows[2:])
    assert_rows_equal(read(tmp_path / "1", tmp_path / "2"), UNMASKED)


def test_rows_are_not_cut_in_silence(tmp_path):
    write_examples(tmp_path / "shard", [ROWS])
    with pytest.raises(tf.errors.InvalidArgumentError, match="more values than 5"):
        read(tmp_path / "shard", length=5)


def test_rows_are_serialized_as_protocol_buffers_does():
    generator = np.random.default_rng(0)
    columns = {
        "whole": np.array([0, 1, 127, 128, 2**14 - 1, 2**14, 2**31, 2**63 - 1, -1, -(2**63)]),
        "ragged": Ragged(generator.integers(0, 70_000, 9077), np.array([1, 1, 2, 60, 7, 1, 9000, 1, 3, 1])),
        "real": generator.random((10, 3)).astype(np.float32),
    }
    for row, record in enumerate(serialize_rows(columns)):
        example = tf.train.Example()
        for name, values in columns.items():
            feature = example.features.feature[name]
            values = np.ravel(take(values, [row]).values if name == "ragged" else values[row])
            (feature.float_list if name == "real" else feature.int64_list).value.extend(values)
        assert record == example.SerializeToString(deterministic=True)


def test_features_are_parsed_as_they_were_serialized():
    generator = np.random.default_rng(0)
    columns = {
        "whole": Ragged(np.array([0, 1, 127, 128, 2**14, 2**21 - 1, 2**31, 2**63 - 1, -1, -(2**63)]), np.ones(10, int)),
        "ragged": Ragged(generator.integers(0, 70_000, 9075), np.array([0, 1, 2, 60, 7, 1, 9000, 1, 3, 0])),
        "real": Ragged(generator.random(30).astype(np.float32), np.full(10, 3)),
    }
    parsed = parse_rows(serialize_rows(columns))
    assert parsed.keys() == columns.keys()
    for name, (values, lengths) in columns.items():
        np.testing.assert_array_equal(parsed[name].values, values)
        np.testing.assert_array_equal(parsed[name].lengths, lengths)


def test_features_of_another_program_are_parsed_in_any_order():
    """Maps have no order; a feature may be missing from some rows, or have an empty list."""
    records = []
    for names in (("ids", "weights"), ("weights", "ids"), ("ids",), ("weights", "ids", "none")):
        example = tf.train.Example()
        for name in names:
            feature = example.features.feature[name]
            if name == "ids":
                feature.int64_list.value.extend([300, len(names)])
            elif name == "weights":
                feature.float_list.value.extend([0.5, 0.25, 1.0])
            else:
                feature.int64_list.SetInParent()
        records.append(example.SerializeToString())
    parsed = parse_rows(records)
    assert parsed["ids"].values.tolist() == [300, 2, 300, 2, 300, 1, 300, 3]
    assert parsed["weights"].lengths.tolist() == [3, 3, 0, 3]
    assert parsed["weights"].values.tolist() == [0.5, 0.25, 1.0] * 3
    assert parsed["none"].lengths.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("record", [b"text", b"", b"\n", b"\n\x05\n\x03abc", b"\n\xff", b"\n" + b"\xff" * 8 + b"\x7f"])
def test_records_of_another_kind_are_refused(record):
    with pytest.raises(ValueError, match=r"not tf\.train\.Example"):
        parse_rows([record])
