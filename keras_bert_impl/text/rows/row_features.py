"""The features of rows in files, and the arrays that they make, in NumPy or in a tf.data graph.

Rows that are masked when written have exactly the features of google-research/bert's create_pretraining_data.py, so
either code base reads what the other wrote. Unmasked rows are the same before masking and without padding, with a
number that determines how each epoch masks them. They have about a third of the size.
"""

import numpy as np

from keras_bert_impl.text.rows import numpy_arrays
from keras_bert_impl.text.rows.masking import NO_PHRASES
from keras_bert_impl.text.rows.phrases import MARKS

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
PACKED_NAMES = ("input_ids", "lengths", "first_segment_lengths", "next_sentence_labels")


def google_features(rows):
    """The features of rows that are masked when written, from their arrays, see `features`."""
    return {google_name: rows[name] for name, google_name in GOOGLE_NAMES.items()}


def assign_rows(lengths, capacity, most):
    """Decides which pairs share a row, so that hardly any position is padding: best fit, longest pair first.

    Attention and positions stay within a pair (`sequence_ids`, `position_ids`), and every pair has its own [CLS], so
    the pairs of a packed row get the same results as if each were alone (Krell et al. 2021, "Efficient sequence packing
    without cross-contamination").

    Args:
        lengths: (pairs,), the number of tokens of each.
        capacity: tokens of a row.
        most: the most pairs in a row.

    Returns: a list of rows, each a list of indices into `lengths`; every pair is in exactly one row.
    """
    lengths = np.asarray(lengths)
    rows, open_rows = [], [[] for _ in range(capacity + 1)]  # numbers of rows, by the tokens that still fit
    for place in np.argsort(-lengths, kind="stable").tolist():
        length = int(lengths[place])
        room = next((room for room in range(length, capacity + 1) if open_rows[room]), None)
        if room is None:
            number, room = len(rows), capacity
            rows.append([])
        else:
            number = open_rows[room].pop()
        rows[number].append(place)
        if len(rows[number]) < most and room > length:
            open_rows[room - length].append(number)
    return rows


def most_sequences(sequence_length):
    """The most pairs in a row, and so the number of its `cls_positions`. A pair of fewer than 16 tokens is rare."""
    return max(1, sequence_length // 16)


def widths_of(rows, phrases=False):
    """The features of rows of a RowFormat and the number of values that each has: 0 for a single number, None where
    rows differ. With `phrases` also where these go on."""
    if rows.static_masks:
        lengths = dict.fromkeys(("token_ids", "padding_mask", "segment_ids"), rows.sequence_length)
        widths = {**lengths, "next_sentence_labels": 0}
        return {feature: widths.get(name, rows.predictions_per_sequence) for name, feature in GOOGLE_NAMES.items()}
    if rows.packed:
        widths = {**dict.fromkeys(PACKED_NAMES), "example_index": 0}
    else:
        widths = {"input_ids": None, "first_segment_length": 0, "next_sentence_labels": 0, "example_index": 0}
    return {**widths, MARKS: None} if phrases else widths


def features_in(columns, widths):
    """The features of these widths among those that `example_files.parse_rows` returns: a `Ragged` where rows differ,
    and otherwise arrays (rows,) or (rows, width)."""
    found = {}
    for name, width in widths.items():
        if width is None:
            if name == MARKS and name not in columns:
                raise ValueError(NO_PHRASES)
            found[name] = columns[name]
            continue
        values, lengths = columns[name]
        if (lengths != max(width, 1)).any():
            raise ValueError(
                f"An example has {lengths[lengths != max(width, 1)][0]} values of {name}, expected {width}."
            )
        found[name] = values.reshape(-1, width) if width else values
    return found


def padded_rows(features, sequence_length, tokenizer, arrays=numpy_arrays):
    """The arrays of rows, see `features`.

    Args:
        features: dict of the features in `widths_of`; where rows differ a `Ragged`, or in TensorFlow a RaggedTensor.
        sequence_length: tokens of a row.
        tokenizer: that the rows were written with.
        arrays: the module of the array operations, of which the features are arrays.

    Returns: dict of `token_ids`, `padding_mask`, `segment_ids`, int32 (rows, length); `next_sentence_labels`, int32
        (rows,); rows masked when written have `mask_positions`, `mask_ids`, `mask_weights`, others `example_index`,
        int64 (rows,), and `phrase_continuations`, int32 (rows, length), if they were read. Packed rows also have
        `position_ids`, `sequence_ids`, int32 (rows, length), `cls_positions`, int32, and `next_sentence_weights`,
        float32, (rows, sequences), as the labels then have.
    """
    if "input_mask" in features:
        rows = {name: features[google_name] for name, google_name in GOOGLE_NAMES.items()}
        weights = arrays.cast(rows["mask_weights"], arrays.float32)
        return {**{name: arrays.cast(array, arrays.int32) for name, array in rows.items()}, "mask_weights": weights}
    place, lengths = arrays.arange(sequence_length), arrays.lengths_of(features["input_ids"])
    token_ids = arrays.padded(features["input_ids"], sequence_length, tokenizer.pad_id)
    is_token = place < lengths
    if "lengths" in features:
        packed = _packed(features, is_token, most_sequences(sequence_length), arrays)
        within, first = packed["position_ids"], packed.pop("first_length")
    else:
        packed = {"next_sentence_labels": arrays.cast(features["next_sentence_labels"], arrays.int32)}
        within, first = place, arrays.cast(features["first_segment_length"], arrays.int32)[:, None]
    rows = {
        "token_ids": token_ids,
        "padding_mask": arrays.cast(is_token, arrays.int32),
        "segment_ids": arrays.cast(is_token & (within >= first), arrays.int32),
        "example_index": features["example_index"],
        **packed,
    }
    if MARKS in features:
        arrays.check_equal(arrays.lengths_of(features[MARKS]), lengths, NO_PHRASES)
        rows[MARKS] = arrays.padded(features[MARKS], sequence_length)
    return tokenizer.template.with_cls_segments(rows, tokenizer.cls_id, arrays.where)


def _packed(features, is_token, most, arrays):
    """The arrays that only packed rows have, of at most `most` pairs, and `first_length`, int32 (rows, length), the
    length of [CLS] a [SEP] in the pair that a token is in."""
    lengths, first_lengths, labels = (arrays.padded(features[name], most) for name in PACKED_NAMES[1:])
    is_pair = arrays.arange(most) < arrays.lengths_of(features["lengths"])  # (rows, sequences)
    starts = arrays.where(is_pair, arrays.running_sum(lengths) - lengths, 0)
    is_tokens = arrays.cast(is_token, arrays.int32)
    begun = arrays.put(0 * is_tokens, starts, arrays.cast(is_pair, arrays.int32), is_pair)
    numbers = arrays.running_sum(begun) * is_tokens  # of the pairs, from 1
    pair = arrays.where(is_token, numbers - 1, 0)
    return {
        "position_ids": (arrays.running_sum(is_tokens) - 1 - arrays.take(starts, pair)) * is_tokens,
        "sequence_ids": numbers,
        "cls_positions": starts,
        "next_sentence_labels": labels,
        "next_sentence_weights": arrays.cast(is_pair, arrays.float32),
        "first_length": arrays.take(first_lengths, pair),
    }
