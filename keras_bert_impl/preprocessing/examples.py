"""Pre-training examples on disk, as TFRecord files of `tf.train.Example`.

Masked examples have exactly the features of google-research/bert's create_pretraining_data.py, so either code base
reads what the other wrote. Unmasked examples are the same rows before masking, without their padding, with the
number that decides how each epoch masks them: about a third of the size, and no two epochs alike.
"""

import contextlib

import numpy as np
import tensorflow as tf

from keras_bert_impl.preprocessing.row_packing import unpack_features

# Our names and Google's, see `features.py`.
GOOGLE_NAMES = {
    "token_ids": "input_ids",
    "padding_mask": "input_mask",
    "segment_ids": "segment_ids",
    "mask_positions": "masked_lm_positions",
    "mask_ids": "masked_lm_ids",
    "mask_weights": "masked_lm_weights",
    "next_sentence_labels": "next_sentence_labels",
}

# Parsing a batch costs little more than parsing a row.
ROWS_PARSED_AT_ONCE = 256


def write_masked_examples(path, batches):
    """Writes one file of masked examples in Google's format. It appears under its name when it is complete.

    Args:
        path: the file; an existing one is replaced.
        batches: iterable of dicts of arrays or tensors: `token_ids`, `padding_mask`, `segment_ids` (batch, length);
            `mask_positions`, `mask_ids`, `mask_weights` (batch, predictions); `next_sentence_labels` (batch,).

    Returns: the number of examples written.
    """
    return _write(path, _serialize(batches, _masked_columns))


def write_unmasked_examples(path, batches):
    """Writes one file of examples that are masked when read. It appears under its name when it is complete.

    Args:
        path: the file; an existing one is replaced.
        batches: iterable of dicts of arrays or tensors: `token_ids`, `padding_mask`, `segment_ids` (batch, length);
            `next_sentence_labels`, `example_index` (batch,).

    Returns: the number of examples written.
    """
    return _write(path, _serialize(batches, _unmasked_columns))


def write_packed_examples(path, rows_of_pairs, rows, first_index):
    """Writes one file of rows that hold several pairs each, masked when read.

    Args:
        path: the file; an existing one is replaced.
        rows_of_pairs: a list of lists of places in `rows`, see `row_packing.assign_rows`.
        rows: dict of arrays of unmasked examples, as for `write_unmasked_examples`.
        first_index: `example_index` of the first row written; the others count from it.

    Returns: the number of rows written.
    """
    columns = _unmasked_columns({name: np.asarray(values) for name, values in rows.items()})

    def records():
        for number, places in enumerate(rows_of_pairs):
            pairs = [columns["input_ids"][place] for place in places]
            yield _serialize_row(
                {
                    "input_ids": [token for pair in pairs for token in pair],
                    "lengths": [len(pair) for pair in pairs],
                    "first_segment_lengths": [columns["first_segment_length"][place] for place in places],
                    "next_sentence_labels": [columns["next_sentence_labels"][place] for place in places],
                    "example_index": first_index + number,
                }
            )

    return _write(path, records())


def read_packed_examples(paths, sequence_length, pad_id=0):
    """Reads rows of `write_packed_examples`: dicts of one row's arrays, see `row_packing.unpack_features`."""
    return _read(paths, lambda records: parse_packed_examples(records, sequence_length, pad_id))


def parse_packed_examples(records, sequence_length, pad_id=0):
    """Parses serialized rows, strings (batch,), into what `read_packed_examples` yields, batched."""
    names = ("input_ids", "lengths", "first_segment_lengths", "next_sentence_labels")
    features = {name: tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int64) for name in names}
    features["example_index"] = tf.io.FixedLenFeature([], tf.int64)
    parsed = tf.io.parse_example(records, features)
    arrays = unpack_features(*(parsed[name] for name in names), sequence_length, pad_id)
    return {**arrays, "example_index": parsed["example_index"]}


def read_masked_examples(paths, sequence_length, predictions_per_sequence):
    """Reads examples that were masked when written, ours or Google's.

    Args:
        paths: names of files, read in this order.
        sequence_length: tokens of a row, as written.
        predictions_per_sequence: predictions of a row, as written.

    Returns: Dataset of dicts of one example: `token_ids`, `padding_mask`, `segment_ids`, int32 (length,);
        `mask_positions`, `mask_ids`, int32 (predictions,); `mask_weights`, float32 (predictions,);
        `next_sentence_labels`, int32 ().
    """
    return _read(paths, lambda records: parse_masked_examples(records, sequence_length, predictions_per_sequence))


def read_unmasked_examples(paths, sequence_length, pad_id=0):
    """Reads examples for `masking.mask_tokens`.

    Args:
        paths: names of files, read in this order.
        sequence_length: rows are padded to it; at least what they were written with.
        pad_id: id of [PAD].

    Returns: Dataset of dicts of one example: `token_ids`, `padding_mask`, `segment_ids`, int32 (length,);
        `next_sentence_labels`, int32 (); `example_index`, int64 ().
    """
    return _read(paths, lambda records: parse_unmasked_examples(records, sequence_length, pad_id))


def parse_masked_examples(records, sequence_length, predictions_per_sequence):
    """Parses serialized examples, strings (batch,), into what `read_masked_examples` yields, batched."""
    shapes = {"mask_positions": [predictions_per_sequence], "mask_ids": [predictions_per_sequence]}
    shapes |= {"mask_weights": [predictions_per_sequence], "next_sentence_labels": []}
    features = {
        google_name: tf.io.FixedLenFeature(
            shapes.get(name, [sequence_length]), tf.float32 if name == "mask_weights" else tf.int64
        )
        for name, google_name in GOOGLE_NAMES.items()
    }
    parsed = tf.io.parse_example(records, features)
    rows = {name: parsed[google_name] for name, google_name in GOOGLE_NAMES.items()}
    return {name: value if name == "mask_weights" else tf.cast(value, tf.int32) for name, value in rows.items()}


def parse_unmasked_examples(records, sequence_length, pad_id=0):
    """Parses serialized examples, strings (batch,), into what `read_unmasked_examples` yields, batched."""
    scalar = tf.io.FixedLenFeature([], tf.int64)
    features = {"input_ids": tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int64)}
    features |= {"first_segment_length": scalar, "next_sentence_labels": scalar, "example_index": scalar}
    parsed = tf.io.parse_example(records, features)
    num_tokens = parsed["input_ids"].row_lengths()
    tf.debugging.assert_less_equal(
        num_tokens,
        tf.cast(sequence_length, tf.int64),
        message=f"An example has more tokens than sequence_length {sequence_length}. Read it with the "
        "sequence_length it was written with.",
    )
    position = tf.range(sequence_length, dtype=tf.int64)[tf.newaxis]  # (1, length)
    is_token = position < num_tokens[:, tf.newaxis]  # (batch, length)
    is_second = is_token & (position >= parsed["first_segment_length"][:, tf.newaxis])
    token_ids = parsed["input_ids"].to_tensor(pad_id, shape=(None, sequence_length))  # (batch, length)
    return {
        "token_ids": tf.cast(token_ids, tf.int32),
        "padding_mask": tf.cast(is_token, tf.int32),
        "segment_ids": tf.cast(is_second, tf.int32),
        "next_sentence_labels": tf.cast(parsed["next_sentence_labels"], tf.int32),
        "example_index": parsed["example_index"],
    }


def _masked_columns(rows):
    return {google_name: rows[name].tolist() for name, google_name in GOOGLE_NAMES.items()}


def _unmasked_columns(rows):
    num_tokens = rows["padding_mask"].sum(axis=1)
    return {
        "input_ids": [ids[:stop].tolist() for ids, stop in zip(rows["token_ids"], num_tokens, strict=True)],
        "first_segment_length": (num_tokens - rows["segment_ids"].sum(axis=1)).tolist(),
        "next_sentence_labels": rows["next_sentence_labels"].tolist(),
        "example_index": rows["example_index"].tolist(),
    }


def _serialize(batches, columns_of):
    for batch in batches:
        columns = columns_of({name: np.asarray(values) for name, values in batch.items()})
        for row in zip(*columns.values(), strict=True):
            yield _serialize_row(dict(zip(columns, row, strict=True)))


def _serialize_row(row):
    example = tf.train.Example()
    for name, value in row.items():
        feature = example.features.feature[name]
        values = feature.float_list if name == "masked_lm_weights" else feature.int64_list
        values.value.extend(value if isinstance(value, list) else [value])
    # A map has no order of its own; the same row must give the same bytes.
    return example.SerializeToString(deterministic=True)


def _write(path, records):
    # A half-written shard under its final name would be taken for a whole one by the next run.
    partial = f"{path}.partial"
    num_examples = 0
    try:
        with tf.io.TFRecordWriter(partial) as writer:
            for record in records:
                writer.write(record)
                num_examples += 1
        tf.io.gfile.rename(partial, str(path), overwrite=True)
    except BaseException:
        with contextlib.suppress(tf.errors.NotFoundError):
            tf.io.gfile.remove(partial)
        raise
    return num_examples


def _read(paths, parse):
    records = tf.data.TFRecordDataset([str(path) for path in paths])
    return records.batch(ROWS_PARSED_AT_ONCE).map(parse, num_parallel_calls=tf.data.AUTOTUNE).unbatch()
