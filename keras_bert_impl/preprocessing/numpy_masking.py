"""The masks of `masking`, token for token, in NumPy: for reading rows without TensorFlow, and for static masks.

`masking` explains what the functions do and why; the tests hold both equal.
"""

import numpy as np

from keras_bert_impl.preprocessing.numpy_randomness import (
    Stream,
    random_bits,
    random_keys,
    uniform_integers,
    uniforms,
)
from keras_bert_impl.preprocessing.phrases import MARKS

# SpanBERT's span lengths in words: geometric with p = 0.2, at most 10, 3.8 on average.
SPAN_LENGTHS = np.cumsum(0.2 * 0.8 ** np.arange(10) / (1 - 0.8**10)).astype("float32")
# ALBERT's n-grams of words: n of 1 to 3, in proportion to 1 / n, 1.6 on average.
NGRAM_LENGTHS = np.cumsum((1 / np.arange(1, 4)) / np.sum(1 / np.arange(1, 4))).astype("float32")
NO_PHRASES = (
    "The rows have no phrases to mask: prepare the data with --phrases, --phrase_field or --segmented, or use another "
    "unit."
)


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
    unit="token",
    is_continuation=None,
):
    """Chooses tokens to predict and hides most of them.

    Args: as `masking.mask_tokens`, with NumPy arrays; `epoch` is an integer, or one for each row, (batch,).
    Returns: as there.
    Raises: ValueError as there.
    """
    token_ids = rows["token_ids"]
    check_predictions(predictions_per_sequence, token_ids.shape[1], masking_rate)
    counters = (seed, epoch, rows["example_index"])
    is_candidate = (rows["padding_mask"] == 1) & ~np.isin(token_ids, special_ids)
    num_tokens = rows["padding_mask"].sum(axis=1)
    wanted = np.maximum(1, np.rint(num_tokens * masking_rate)).astype(np.int32)
    num_predictions = np.minimum(wanted, predictions_per_sequence)  # (batch,)
    if unit == "token":
        position, is_real = _choose_positions(is_candidate, num_predictions, predictions_per_sequence, counters)
        treated_as = position
    else:
        check_phrases(rows, unit)
        choose = {"whole_word": _choose_words, "phrase": _choose_words, "span": _choose_spans, "ngram": _choose_ngrams}
        goes_on = np.asarray(is_continuation)[token_ids]
        if unit == "phrase":
            goes_on |= rows[MARKS] == 1
        words = _words(is_candidate, goes_on)
        is_chosen, treated_as = choose[unit](words, is_candidate, num_predictions, counters)  # both (batch, length)
        position, is_real = _positions_of(is_chosen, predictions_per_sequence)
        treated_as = np.take_along_axis(treated_as, position, axis=1)
    original = np.take_along_axis(token_ids, position, axis=1)  # (batch, predictions)
    draw = uniforms(_keys(Stream.MASK_TREATMENT, counters), treated_as)
    random_ids = uniform_integers(_keys(Stream.MASK_REPLACEMENT, counters), position, vocabulary_size)
    shown = np.where(draw < np.float32(mask_token_rate + random_token_rate), random_ids, original)
    shown = np.where(draw < np.float32(mask_token_rate), mask_id, shown)
    masked, (row, column) = token_ids.copy(), np.nonzero(is_real)
    masked[row, position[row, column]] = shown[row, column]
    return {
        **rows,
        "token_ids": masked,
        "mask_positions": position,
        "mask_ids": np.where(is_real, original, 0).astype(np.int32),
        "mask_weights": is_real.astype(np.float32),
    }


def check_predictions(predictions_per_sequence, length, masking_rate):
    """Raises ValueError if a row of this length cannot have so many predictions."""
    if length is not None and predictions_per_sequence > length:
        raise ValueError(
            f"predictions_per_sequence {predictions_per_sequence} exceeds the {length} tokens of a row. "
            f"BERT predicts {masking_rate:.0%} of them: use {max(1, round(masking_rate * length))}."
        )


def check_phrases(rows, unit):
    """Raises ValueError if phrases are to be masked, but the rows have none."""
    if unit == "phrase" and MARKS not in rows:
        raise ValueError(NO_PHRASES)


def _keys(stream, counters):
    return random_keys(stream, *counters)[:, np.newaxis]  # (batch, 1)


def _choose_positions(is_candidate, num_predictions, predictions_per_sequence, counters):
    """Positions in ascending order, then zeros, int32 (batch, predictions); bool, same shape, False for the zeros."""
    length = is_candidate.shape[1]
    position = np.arange(length)
    draw = (random_bits(_keys(Stream.MASK_POSITION, counters), position) >> np.uint64(40)).astype(np.int64)
    # Sorting one integer is the fastest way to the largest draws: the draw's 24 bits, and below them the position, of
    # which tf.math.top_k takes the smaller one first where draws are equal.
    ranks = np.where(is_candidate, draw << 32 | (length - 1 - position), -1)
    ranks = np.sort(ranks, axis=1)[:, : -predictions_per_sequence - 1 : -1]  # (batch, predictions)
    num_real = np.minimum(num_predictions, is_candidate.sum(axis=1))
    is_chosen = np.arange(predictions_per_sequence) < num_real[:, np.newaxis]
    chosen = np.where(is_chosen, length - 1 - (ranks & 0xFFFFFFFF), length).astype(np.int32)
    return _zeros_for_unused(np.sort(chosen, axis=1), length)


def _positions_of(is_chosen, predictions_per_sequence):
    """As `_choose_positions`, for tokens already chosen, bool (batch, length), no more than there are columns."""
    length = is_chosen.shape[1]
    position = np.sort(np.where(is_chosen, np.arange(length, dtype=np.int32), np.int32(length)), axis=1)
    return _zeros_for_unused(position[:, :predictions_per_sequence], length)


def _zeros_for_unused(position, length):
    is_real = position < length
    return np.where(is_real, position, np.int32(0)), is_real


def _words(is_candidate, goes_on):
    """The number of the word or phrase that a token is in, counted from 1; 0 for what is not text: (batch, length)."""
    follows_text = np.pad(is_candidate[:, :-1], [(0, 0), (1, 0)])
    goes_on = goes_on & follows_text
    return np.where(is_candidate, np.cumsum(is_candidate & ~goes_on, axis=1), 0)


def _choose_words(words, is_candidate, num_predictions, counters):
    """Words in random order, without those that have more tokens than are still wanted; see `masking`."""
    batch, length = words.shape
    flat = words + (length + 1) * np.arange(batch)[:, np.newaxis]
    sizes = np.bincount(flat[is_candidate], minlength=batch * (length + 1)).reshape(batch, length + 1)  # of each word
    draw = uniforms(_keys(Stream.MASK_POSITION, counters), np.arange(length + 1))
    order = np.argsort(np.where(sizes > 0, -draw, 1.0), axis=1, kind="stable")
    sizes = np.take_along_axis(sizes, order, axis=1)
    is_open, is_accepted = sizes > 0, np.zeros(sizes.shape, bool)
    room = num_predictions[:, np.newaxis].astype(np.int64)
    while is_open.any():
        # Accepts the words before the first that does not fit. That one is skipped for good: the room only shrinks.
        is_open &= sizes <= room
        fits = is_open & (np.cumsum(np.where(is_open, sizes, 0), axis=1) <= room)
        room = room - np.where(fits, sizes, 0).sum(axis=1, keepdims=True)
        is_open, is_accepted = is_open & ~fits, is_accepted | fits
    is_accepted = np.take_along_axis(is_accepted, np.argsort(order, axis=1), axis=1)
    is_chosen = np.take_along_axis(is_accepted, words, axis=1) & is_candidate
    return is_chosen, np.broadcast_to(np.arange(length), words.shape)


def _choose_spans(words, is_candidate, num_predictions, counters):
    """Spans that begin with random words not chosen yet, until there are enough tokens; see `masking`."""
    segment = np.cumsum(~is_candidate, axis=1)
    anchors, lengths, num_words = _anchors_and_lengths(words, counters, SPAN_LENGTHS)
    turn, span, room = 0, np.zeros_like(words), num_predictions[:, np.newaxis].astype(np.int64)
    while ((room > 0) & (turn < num_words)).any():
        anchor = anchors[:, turn, np.newaxis]  # (batch, 1)
        is_first = (words == anchor) & is_candidate
        is_free = ~(is_first & (span > 0)).any(axis=1, keepdims=True) & (turn < num_words)
        last = anchor + np.take_along_axis(lengths, anchor, axis=1)
        within = (words >= anchor) & (words < last) & is_candidate
        own = np.where(is_first, segment, 0).max(axis=1, keepdims=True)
        is_new = within & (segment == own) & (span == 0) & is_free
        is_new &= np.cumsum(is_new, axis=1) <= room
        room = room - is_new.sum(axis=1, keepdims=True)
        turn, span = turn + 1, np.where(is_new, anchor, span)
    return span > 0, span


def _choose_ngrams(words, is_candidate, num_predictions, counters):
    """N-grams of whole words that begin with random words not chosen yet; see `masking`."""
    segment = np.cumsum(~is_candidate, axis=1)
    anchors, lengths, num_words = _anchors_and_lengths(words, counters, NGRAM_LENGTHS)
    is_chosen, room = np.zeros_like(is_candidate), num_predictions[:, np.newaxis].astype(np.int64)
    for turn in range(num_words.max(initial=0)):
        if not (room > 0).any():
            break
        anchor = anchors[:, turn, np.newaxis]  # (batch, 1)
        own = np.where((words == anchor) & is_candidate, segment, 0).max(axis=1, keepdims=True)
        wanted = np.take_along_axis(lengths, anchor, axis=1)
        goes_on = turn < num_words
        for offset in range(len(NGRAM_LENGTHS)):
            is_word = (words == anchor + offset) & is_candidate & (segment == own)
            size = is_word.sum(axis=1, keepdims=True)
            is_free = (size > 0) & ~(is_word & is_chosen).any(axis=1, keepdims=True)
            goes_on = goes_on & (offset < wanted) & is_free & (size <= room)
            is_chosen = is_chosen | (is_word & goes_on)
            room = room - np.where(goes_on, size, 0)
    return is_chosen, np.broadcast_to(np.arange(words.shape[1]), words.shape)


def _anchors_and_lengths(words, counters, shares):
    """The words of each row in random order, the length of a run that begins with each, and the number of words.

    Args:
        words: the number of the word of each token, (batch, length).
        counters: seed, epoch and example_index (batch,).
        shares: share of the runs that are at most 1, 2, ... words long.

    Returns: numbers of words (batch, length + 1); words in a run, by the number of its first word, same shape;
        (batch, 1).
    """
    number = np.arange(words.shape[1] + 1)
    num_words = words.max(axis=1, keepdims=True)
    draw = uniforms(_keys(Stream.MASK_POSITION, counters), number)
    anchors = np.argsort(np.where((number > 0) & (number <= num_words), -draw, 1.0), axis=1, kind="stable")
    draw = uniforms(_keys(Stream.SPAN_LENGTH, counters), number)
    return anchors, np.minimum(1 + np.searchsorted(shares, draw, side="right"), len(shares)), num_words
