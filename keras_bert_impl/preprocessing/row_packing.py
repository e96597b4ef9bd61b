"""Several sentence pairs in one row, so that hardly any position is padding.

Attention and positions stay within a pair (`sequence_ids`, `position_ids`), and every pair has its own [CLS], so the
pairs of a packed row get the same results as if each were alone (Krell et al. 2021, "Efficient sequence packing without
cross-contamination").
"""

import numpy as np
import tensorflow as tf


def assign_rows(lengths, capacity, most):
    """Decides which pairs share a row: best fit, longest pair first.

    Args:
        lengths: (pairs,), the number of tokens of each.
        capacity: tokens of a row.
        most: the most pairs in a row.

    Returns: a list of rows, each a list of indices into `lengths`; every pair is in exactly one row.
    Raises: ValueError for a pair longer than a row.
    """
    lengths = np.asarray(lengths)
    if len(lengths) and lengths.max() > capacity:
        raise ValueError(f"A pair of {lengths.max()} tokens does not fit a row of {capacity}.")
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
