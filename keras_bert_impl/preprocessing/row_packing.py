"""Several sentence pairs in one row, so that hardly a position is padding.

Attention and positions stay within a pair (`sequence_ids`, `position_ids`), and every pair has its own [CLS], so a
packed row computes what its pairs would alone (Krell et al. 2021, "Efficient sequence packing without
cross-contamination").
"""

import numpy as np
import tensorflow as tf


def assign_rows(lengths, capacity, most):
    """Which pairs share a row: best fit, longest first.

    Args:
        lengths: (pairs,) tokens of each.
        capacity: tokens of a row.
        most: pairs of a row at most.

    Returns: a list of lists of places in `lengths`; each pair is in one of them.
    Raises: ValueError for a pair longer than a row.
    """
    lengths = np.asarray(lengths)
    if len(lengths) and lengths.max() > capacity:
        raise ValueError(f"A pair of {lengths.max()} tokens does not fit a row of {capacity}.")
    rows, open_rows = [], [[] for _ in range(capacity + 1)]  # numbers of rows, by the tokens they have room for
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
    """Pairs of a row at most: how many `cls_positions` there are. A pair of fewer than 16 tokens is rare."""
    return max(1, sequence_length // 16)


def unpack_features(token_ids, lengths, first_lengths, next_sentence_labels, sequence_length, pad_id=0):
    """The arrays of packed rows, see `features`.

    Args:
        token_ids: RaggedTensor (batch, tokens), the pairs of a row one after the other.
        lengths: RaggedTensor (batch, pairs), tokens of each pair.
        first_lengths: likewise, of `[CLS] a [SEP]` in it.
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
    # Of the pair that a position is in: how many ended before it.
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
