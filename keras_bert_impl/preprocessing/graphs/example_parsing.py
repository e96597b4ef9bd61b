"""Parses the files of `example_writing` in a tf.data graph; `numpy_parsing` does the same in NumPy."""

from keras_bert_impl.preprocessing.graphs.rows import pad_rows
from keras_bert_impl.quiet_tensorflow import tf
from keras_bert_impl.text.rows.bin_packing import most_sequences
from keras_bert_impl.text.rows.example_writing import GOOGLE_NAMES, PACKED_NAMES
from keras_bert_impl.text.rows.masking import NO_PHRASES
from keras_bert_impl.text.rows.phrases import MARKS


def parse_packed_examples(records, sequence_length, pad_id=0, phrases=False):
    """Parses rows of `write_packed_examples`.

    Args:
        records: strings (batch,).
        sequence_length: the value that they were written with.
        pad_id: id of [PAD].
        phrases: whether to read where phrases go on, too.

    Returns: dict of arrays, see `unpack_features`, `example_index`, int64 (batch,), and with `phrases` also
        `phrase_continuations`, int32 (batch, length).
    """
    names = (*PACKED_NAMES, MARKS) if phrases else PACKED_NAMES
    features = {name: tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int64) for name in names}
    features["example_index"] = tf.io.FixedLenFeature([], tf.int64)
    parsed = tf.io.parse_example(records, features)
    arrays = unpack_features(*(parsed[name] for name in PACKED_NAMES), sequence_length, pad_id)
    return {**arrays, "example_index": parsed["example_index"], **_marks(parsed, sequence_length)}


def _marks(parsed, sequence_length):
    """Where phrases go on, padded with 0, in a dict; nothing if that was not read."""
    if MARKS not in parsed:
        return {}
    tf.debugging.assert_equal(
        parsed[MARKS].row_lengths(),
        parsed["input_ids"].row_lengths(),
        message=NO_PHRASES,
    )
    return {MARKS: tf.cast(parsed[MARKS].to_tensor(0, shape=(None, sequence_length)), tf.int32)}


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


def parse_unmasked_examples(records, sequence_length, pad_id=0, phrases=False):
    """Parses examples for `masking.MaskingRule`.

    Args:
        records: strings (batch,).
        sequence_length: length that rows are padded to; at least the value that they were written with.
        pad_id: id of [PAD].
        phrases: whether to read where phrases go on, too.

    Returns: dict of `token_ids`, `padding_mask`, `segment_ids`, int32 (batch, length); `next_sentence_labels`, int32
        (batch,); `example_index`, int64 (batch,); with `phrases` also `phrase_continuations`, int32 (batch, length).
    """
    scalar = tf.io.FixedLenFeature([], tf.int64)
    features = {"input_ids": tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int64)}
    if phrases:
        features[MARKS] = features["input_ids"]
    features |= {"first_segment_length": scalar, "next_sentence_labels": scalar, "example_index": scalar}
    parsed = tf.io.parse_example(records, features)
    num_tokens = parsed["input_ids"].row_lengths()
    tf.debugging.assert_less_equal(
        num_tokens,
        tf.cast(sequence_length, tf.int64),
        message=f"An example has more tokens than sequence_length {sequence_length}. Read it with the "
        "sequence_length it was written with.",
    )
    marks = _marks(parsed, sequence_length)
    rows = pad_rows({"token_ids": parsed.pop("input_ids"), **parsed, **marks}, sequence_length, pad_id)
    return {**rows, "next_sentence_labels": tf.cast(rows["next_sentence_labels"], tf.int32)}


def unpack_features(token_ids, lengths, first_lengths, next_sentence_labels, sequence_length, pad_id=0):
    """The arrays of packed rows, see `features`.

    Args:
        token_ids: RaggedTensor (batch, tokens), the pairs of a row one after the other.
        lengths: RaggedTensor (batch, pairs), tokens of each pair.
        first_lengths: likewise, tokens of `[CLS] a [SEP]` in each pair.
        next_sentence_labels: likewise.
        sequence_length: tokens of a row.
        pad_id: id of [PAD].

    Returns: dict of `token_ids`, `padding_mask`, `segment_ids`, `position_ids`, `sequence_ids`, int32 (batch, length);
        `cls_positions`, `next_sentence_labels`, int32, and `next_sentence_weights`, float32, (batch, sequences), padded
        with 0.
    """
    most = most_sequences(sequence_length)
    ends = tf.cumsum(lengths.to_tensor(0, shape=(None, most)), axis=1)  # (batch, sequences)
    starts = ends - lengths.to_tensor(0, shape=(None, most))
    is_pair = tf.range(most, dtype=tf.int64) < lengths.row_lengths()[:, tf.newaxis]  # (batch, sequences)
    position = tf.broadcast_to(tf.range(sequence_length, dtype=ends.dtype), [tf.shape(ends)[0], sequence_length])
    # The index of the pair that a position is in: the number of pairs that end before it.
    pair = tf.searchsorted(tf.where(is_pair, ends, tf.int64.max), position, side="right")  # (batch, length)
    is_token = pair < tf.cast(lengths.row_lengths(), tf.int32)[:, tf.newaxis]
    pair = tf.where(is_token, pair, 0)
    within = position - tf.gather(starts, pair, batch_dims=1)
    first = tf.gather(first_lengths.to_tensor(0, shape=(None, most)), pair, batch_dims=1)
    arrays = {
        "token_ids": token_ids.to_tensor(pad_id, shape=(None, sequence_length)),
        "padding_mask": is_token,
        "segment_ids": is_token & (within >= first),
        "position_ids": tf.where(is_token, within, 0),
        "sequence_ids": tf.where(is_token, pair + 1, 0),
        "cls_positions": tf.where(is_pair, starts, 0),
        "next_sentence_labels": next_sentence_labels.to_tensor(0, shape=(None, most)),
    }
    arrays = {name: tf.cast(array, tf.int32) for name, array in arrays.items()}
    return {**arrays, "next_sentence_weights": tf.cast(is_pair, tf.float32)}
