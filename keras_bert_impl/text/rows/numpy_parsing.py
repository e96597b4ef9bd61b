"""Rows of the files of `example_writing`, parsed in NumPy to the arrays of `example_parsing`, byte for byte."""

import numpy as np

from keras_bert_impl.text.rows.bin_packing import most_sequences
from keras_bert_impl.text.rows.example_writing import GOOGLE_NAMES, PACKED_NAMES
from keras_bert_impl.text.rows.phrases import MARKS
from keras_bert_impl.text.rows.ragged import Ragged, padded


def masked_rows(columns, sequence_length, predictions_per_sequence):
    """As `example_parsing.parse_masked_examples`, from the features that `serialized_rows.parse_rows` returns."""
    widths = {"mask_positions": predictions_per_sequence, "mask_ids": predictions_per_sequence}
    widths |= {"mask_weights": predictions_per_sequence, "next_sentence_labels": 1}
    rows = {}
    for name, google_name in GOOGLE_NAMES.items():
        values, lengths = columns[google_name]
        width = widths.get(name, sequence_length)
        if (lengths != width).any():
            raise ValueError(f"A row has {lengths[lengths != width][0]} values of {google_name}, expected {width}.")
        rows[name] = values.reshape(-1, width).astype(np.float32 if name == "mask_weights" else np.int32)
    return {**rows, "next_sentence_labels": rows["next_sentence_labels"][:, 0]}


def unmasked_rows(columns, sequence_length, pad_id=0, phrases=False):
    """As `example_parsing.parse_unmasked_examples`, from the features that `serialized_rows.parse_rows` returns."""
    rows = {"token_ids": columns["input_ids"], "first_segment_length": columns["first_segment_length"].values}
    rows |= {MARKS: columns[MARKS]} if phrases and MARKS in columns else {}
    return {
        **pad_rows(rows, sequence_length, pad_id),
        "next_sentence_labels": columns["next_sentence_labels"].values.astype(np.int32),
        "example_index": columns["example_index"].values,
    }


def packed_rows(columns, sequence_length, pad_id=0, phrases=False):
    """As `example_parsing.parse_packed_examples`, from the features that `serialized_rows.parse_rows` returns."""
    arrays = unpack_features(*(columns[name] for name in PACKED_NAMES), sequence_length, pad_id)
    marks = _marks(columns, sequence_length) if phrases else {}
    return {**arrays, "example_index": columns["example_index"].values, **marks}


def _marks(rows, sequence_length):
    """Where phrases go on, padded with 0, in a dict; nothing if the rows have none."""
    if MARKS not in rows:
        return {}
    return {MARKS: padded(rows[MARKS], sequence_length, 0, "marks").astype(np.int32)}


def pad_rows(rows, sequence_length, pad_id):
    """Pads rows to arrays (rows, sequence_length), as `preprocessing.graphs.rows.pad_rows` does.

    Args:
        rows: dict of `token_ids`, `Ragged` (rows, tokens), `first_segment_length` (rows,), and further entries that are
            passed through, `phrase_continuations`, `Ragged` (rows, tokens), padded with 0.
        sequence_length: length of the padded rows.
        pad_id: id of [PAD].

    Returns: dict of `token_ids`, `padding_mask`, `segment_ids`, int32 (rows, sequence_length), and the further entries.
    Raises: ValueError if a row is longer.
    """
    rows = dict(rows)
    token_ids, first_length = rows.pop("token_ids"), rows.pop("first_segment_length")
    position = np.arange(sequence_length)
    is_token = position < token_ids.lengths[:, np.newaxis]  # (rows, length)
    is_second = is_token & (position >= first_length[:, np.newaxis])
    return {
        "token_ids": padded(token_ids, sequence_length, pad_id, "tokens").astype(np.int32),
        "padding_mask": is_token.astype(np.int32),
        "segment_ids": is_second.astype(np.int32),
        **rows,
        **_marks(rows, sequence_length),
    }


def unpack_features(token_ids, lengths, first_lengths, next_sentence_labels, sequence_length, pad_id=0):
    """As `example_parsing.unpack_features`, with a `Ragged` for each RaggedTensor."""
    most = most_sequences(sequence_length)
    total = lengths.values.sum()
    pair_starts = np.cumsum(lengths.values) - lengths.values  # in the tokens of all rows
    first_pairs = lengths.offsets[:-1]
    number = np.arange(len(lengths.values)) - np.repeat(first_pairs, lengths.lengths)  # of a pair in its row, from 0
    within = np.arange(total) - np.repeat(pair_starts, lengths.values)  # (tokens of all rows,)
    row_starts = np.repeat(token_ids.offsets[:-1], lengths.lengths)  # (pairs of all rows,)

    def of_tokens(values, fill=0):
        return padded(Ragged(values, token_ids.lengths), sequence_length, fill, "tokens").astype(np.int32)

    def of_pairs(values):
        return padded(Ragged(values, lengths.lengths), most, 0, "pairs").astype(np.int32)

    return {
        "token_ids": of_tokens(token_ids.values, pad_id),
        "padding_mask": of_tokens(np.ones(total, bool)),
        "segment_ids": of_tokens(within >= np.repeat(first_lengths.values, lengths.values)),
        "position_ids": of_tokens(within),
        "sequence_ids": of_tokens(np.repeat(number + 1, lengths.values)),
        "cls_positions": of_pairs(pair_starts - row_starts),
        "next_sentence_labels": of_pairs(next_sentence_labels.values),
        "next_sentence_weights": of_pairs(np.ones(len(lengths.values), bool)).astype(np.float32),
    }
