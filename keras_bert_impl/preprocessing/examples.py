"""Pre-training examples on disk, as TFRecord files of `tf.train.Example`.

Masked examples have exactly the features of google-research/bert's create_pretraining_data.py, so either code base
reads what the other wrote. Unmasked examples are the same rows before masking and without padding, with a number that
determines how each epoch masks them. They have about a third of the size, and every epoch masks them differently.
"""

import contextlib

import numpy as np
import tensorflow as tf

from keras_bert_impl.preprocessing.packing import pad_rows
from keras_bert_impl.preprocessing.row_packing import unpack_features
from keras_bert_impl.preprocessing.serialized_rows import serialize_rows

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

ROWS_WRITTEN_AT_ONCE = 4096


def write_masked_examples(path, batches):
    """Writes one file of masked examples in Google's format. The file gets its name only when it is complete.

    Args:
        path: the file; an existing one is replaced.
        batches: iterable of dicts of arrays or tensors: `token_ids`, `padding_mask`, `segment_ids` (batch, length);
            `mask_positions`, `mask_ids`, `mask_weights` (batch, predictions); `next_sentence_labels` (batch,).

    Returns: the number of examples written.
    """
    columns = ({google_name: rows[name] for name, google_name in GOOGLE_NAMES.items()} for rows in batches)
    return _write(path, columns)


def write_unmasked_examples(path, batches):
    """Writes one file of examples that are masked when read. The file gets its name only when it is complete.

    Args:
        path: the file; an existing one is replaced.
        batches: iterable of dicts: `token_ids`, RaggedTensor (batch, tokens); `first_segment_length`, the
            length of [CLS] a [SEP], `next_sentence_labels`, `example_index`, arrays (batch,).

    Returns: the number of examples written.
    """
    return _write(path, map(_unmasked_columns, batches))


def write_packed_examples(path, batches, share_out, first_index):
    """Writes one file of rows that hold several pairs each, masked when read.

    Args:
        path: the file; an existing one is replaced.
        batches: as for `write_unmasked_examples`; all of them are held in memory, without padding.
        share_out: function that takes the lengths of all examples, (examples,), and returns rows, each a list of
            indices of examples, see `row_packing.assign_rows`.
        first_index: `example_index` of the first row written; the others count from it.

    Returns: the number of rows written.
    """
    parts = list(map(_unmasked_columns, batches))
    if not parts:
        return _write(path, [])
    columns = {name: tf.concat([part[name] for part in parts], axis=0) for name in parts[0]}
    rows_of_pairs = share_out(columns["input_ids"].row_lengths().numpy())

    def columns_of_rows():
        for start in range(0, len(rows_of_pairs), ROWS_WRITTEN_AT_ONCE):
            part = rows_of_pairs[start : start + ROWS_WRITTEN_AT_ONCE]
            places, counts = np.concatenate(part), list(map(len, part))

            def by_row(values, places=places, counts=counts):
                return tf.RaggedTensor.from_row_lengths(tf.gather(values, places), counts)

            tokens = by_row(columns["input_ids"])  # (rows, pairs, tokens)
            yield {
                "input_ids": tokens.merge_dims(1, 2),
                "lengths": by_row(columns["input_ids"].row_lengths()),
                "first_segment_lengths": by_row(columns["first_segment_length"]),
                "next_sentence_labels": by_row(columns["next_sentence_labels"]),
                "example_index": tf.range(first_index + start, first_index + start + len(part), dtype=tf.int64),
            }

    return _write(path, columns_of_rows())


def parse_packed_examples(records, sequence_length, pad_id=0):
    """Parses rows of `write_packed_examples`.

    Args:
        records: strings (batch,).
        sequence_length: the value that they were written with.
        pad_id: id of [PAD].

    Returns: dict of arrays, see `row_packing.unpack_features`, and `example_index`, int64 (batch,).
    """
    names = ("input_ids", "lengths", "first_segment_lengths", "next_sentence_labels")
    features = {name: tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int64) for name in names}
    features["example_index"] = tf.io.FixedLenFeature([], tf.int64)
    parsed = tf.io.parse_example(records, features)
    arrays = unpack_features(*(parsed[name] for name in names), sequence_length, pad_id)
    return {**arrays, "example_index": parsed["example_index"]}


def parse_masked_examples(records, sequence_length, predictions_per_sequence):
    """Parses examples that were masked when written, by this package or by Google's code.

    Args:
        records: strings (batch,).
        sequence_length: tokens of a row, as written.
        predictions_per_sequence: predictions of a row, as written.

    Returns: dict of `token_ids`, `padding_mask`, `segment_ids`, int32 (batch, length); `mask_positions`, `mask_ids`,
        int32 (batch, predictions); `mask_weights`, float32 (batch, predictions); `next_sentence_labels`, int32
        (batch,).
    """
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
    """Parses examples for `masking.mask_tokens`.

    Args:
        records: strings (batch,).
        sequence_length: length that rows are padded to; at least the value that they were written with.
        pad_id: id of [PAD].

    Returns: dict of `token_ids`, `padding_mask`, `segment_ids`, int32 (batch, length); `next_sentence_labels`, int32
        (batch,); `example_index`, int64 (batch,).
    """
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
    rows = pad_rows({"token_ids": parsed.pop("input_ids"), **parsed}, sequence_length, pad_id)
    return {**rows, "next_sentence_labels": tf.cast(rows["next_sentence_labels"], tf.int32)}


def _unmasked_columns(rows):
    return {"input_ids" if name == "token_ids" else name: values for name, values in rows.items()}


def _write(path, batches_of_columns):
    # A half-written shard under its final name would be taken for a whole one by the next run.
    partial = f"{path}.partial"
    num_examples = 0
    try:
        with tf.io.TFRecordWriter(partial) as writer:
            for columns in batches_of_columns:
                for record in serialize_rows(columns):
                    writer.write(record)
                    num_examples += 1
        tf.io.gfile.rename(partial, str(path), overwrite=True)
    except BaseException:
        with contextlib.suppress(tf.errors.NotFoundError):
            tf.io.gfile.remove(partial)
        raise
    return num_examples
