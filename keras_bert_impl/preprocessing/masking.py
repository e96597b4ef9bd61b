"""Dynamic masking: which tokens of a row the model must predict, drawn anew for every epoch.

Devlin et al. 2019, section 3.1, task 1, step for step as `create_masked_lm_predictions` of google-research/bert's
create_pretraining_data.py. Google masked each example ten times and wrote the copies to disk; here it happens in
the tf.data graph, so no two epochs show the same masks (Liu et al. 2019, "RoBERTa", section 4.1).
"""

import tensorflow as tf

from keras_bert_impl.preprocessing.randomness import Stream, random_keys, uniform_integers, uniforms


def mask_tokens(
    rows,
    *,
    vocabulary_size,
    mask_id,
    special_ids,
    seed,
    epoch,
    predictions_per_sequence,
    masking_rate=0.15,
    mask_token_rate=0.8,
    random_token_rate=0.1,
):
    """Chooses tokens to predict and hides most of them.

    Args:
        rows: dict with `token_ids` and `padding_mask`, int32 (batch, length), and `example_index`, int64 (batch,),
            the number of each row in the data set. The masks of a row follow from `seed`, `epoch` and that number,
            whatever else is in the batch. Further entries are handed through.
        vocabulary_size: random replacements are drawn below it.
        mask_id: id of [MASK].
        special_ids: ids never chosen: [CLS] and [SEP], and whatever else is not text.
        seed: integer scalar.
        epoch: integer scalar, a tensor where it changes inside a graph.
        predictions_per_sequence: columns of the outputs; a row predicts at most so many tokens. Google: 20 for
            length 128, about masking_rate * length in general.
        masking_rate: predictions for each token of the row. BERT: 0.15.
        mask_token_rate: share of the chosen tokens replaced by [MASK]. BERT: 0.8.
        random_token_rate: share replaced by a random id; the others stay as they are. BERT: 0.1.

    Returns: `rows` with new `token_ids` and, all (batch, predictions): `mask_positions`, int32, ascending;
        `mask_ids`, int32, what stood there; `mask_weights`, float32, 1 for a prediction. Unused columns are 0.
    Raises: ValueError if `predictions_per_sequence` exceeds the length.
    """
    token_ids = rows["token_ids"]
    length = token_ids.shape[1]
    if length is not None and predictions_per_sequence > length:
        raise ValueError(
            f"predictions_per_sequence {predictions_per_sequence} exceeds the {length} tokens of a row. "
            f"BERT predicts {masking_rate:.0%} of them: use {max(1, round(masking_rate * length))}."
        )
    counters = (seed, epoch, rows["example_index"])
    position, is_real = _choose_positions(
        _candidates(token_ids, rows["padding_mask"], special_ids),
        _predictions_of(rows["padding_mask"], masking_rate),
        predictions_per_sequence,
        counters,
    )  # both (batch, predictions)
    original = tf.gather(token_ids, position, batch_dims=1)  # (batch, predictions)
    draw = uniforms(_keys(Stream.MASK_TREATMENT, counters), position)
    # Any id, special ones included, as Google's `vocab_words[rng.randint(0, len(vocab_words) - 1)]`.
    random_ids = uniform_integers(_keys(Stream.MASK_REPLACEMENT, counters), position, vocabulary_size)
    shown = tf.where(draw < mask_token_rate + random_token_rate, tf.cast(random_ids, tf.int32), original)
    shown = tf.where(draw < mask_token_rate, mask_id, shown)
    return {
        **rows,
        "token_ids": _replace(token_ids, position, tf.where(is_real, shown - original, 0)),
        "mask_positions": position,
        "mask_ids": tf.where(is_real, original, 0),
        "mask_weights": tf.cast(is_real, tf.float32),
    }


def _keys(stream, counters):
    return random_keys(stream, *counters)[:, tf.newaxis]  # (batch, 1)


def _candidates(token_ids, padding_mask, special_ids):
    special_ids = tf.constant(special_ids, tf.int32)
    is_special = tf.reduce_any(token_ids[:, :, tf.newaxis] == special_ids, axis=-1)  # (batch, length)
    return (padding_mask == 1) & ~is_special


def _predictions_of(padding_mask, masking_rate):
    # Google's `max(1, int(round(len(tokens) * masked_lm_prob)))`: tokens include [CLS] and [SEP], halves go to the
    # even neighbour in Python 3 as in tf.round, and 0.15 * 190 is a half in float64 only.
    num_tokens = tf.cast(tf.reduce_sum(padding_mask, axis=1), tf.float64)  # (batch,)
    return tf.maximum(1, tf.cast(tf.round(num_tokens * masking_rate), tf.int32))


def _choose_positions(is_candidate, num_predictions, predictions_per_sequence, counters):
    """Draws positions without replacement: those of the largest draws, one draw for each candidate.

    Args:
        is_candidate: bool (batch, length).
        num_predictions: int32 (batch,), wanted in each row.
        predictions_per_sequence: columns of the result.
        counters: seed, epoch and example_index (batch,).

    Returns: int32 (batch, predictions) positions in ascending order, then zeros; bool, same shape, False for these.
    """
    length = tf.shape(is_candidate)[1]
    draw = uniforms(_keys(Stream.MASK_POSITION, counters), tf.range(length))  # (batch, length)
    _, position = tf.math.top_k(tf.where(is_candidate, draw, -1.0), predictions_per_sequence)  # (batch, predictions)
    num_real = tf.minimum(num_predictions, tf.reduce_sum(tf.cast(is_candidate, tf.int32), axis=1))  # (batch,)
    is_chosen = tf.range(predictions_per_sequence) < num_real[:, tf.newaxis]
    position = tf.sort(tf.where(is_chosen, position, length), axis=1)
    is_real = position < length
    return tf.where(is_real, position, 0), is_real


def _replace(token_ids, position, change):
    # Added, not assigned: unused columns all point at position 0, where a prediction may stand as well, and
    # adding their 0 disturbs nothing.
    row = tf.range(tf.shape(position)[0])[:, tf.newaxis] + tf.zeros_like(position)  # (batch, predictions)
    return tf.tensor_scatter_nd_add(token_ids, tf.stack([row, position], axis=-1), change)
