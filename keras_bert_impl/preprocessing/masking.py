"""Dynamic masking: the tokens of a row that the model must predict are drawn again in every epoch.

Devlin et al. 2019, section 3.1, task 1, step for step as `create_masked_lm_predictions` of google-research/bert's
create_pretraining_data.py. Google masked each example ten times and wrote the copies to disk; here it happens in
the tf.data graph, so no two epochs show the same masks (Liu et al. 2019, "RoBERTa", section 4.1).
"""

from keras_bert_impl.preprocessing.numpy_masking import (
    NGRAM_LENGTHS,
    SPAN_LENGTHS,
    check_phrases,
    check_predictions,
)
from keras_bert_impl.preprocessing.phrases import MARKS
from keras_bert_impl.preprocessing.randomness import Stream, random_keys, uniform_integers, uniforms
from keras_bert_impl.text_graphs.quiet_tensorflow import tf


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

    Args:
        rows: dict with `token_ids` and `padding_mask`, int32 (batch, length), and `example_index`, int64 (batch,),
            the number of each row in the dataset. The masks of a row depend only on `seed`, `epoch` and that number,
            not on the rest of the batch. Other entries are passed through.
        vocabulary_size: random replacements are ids below this number.
        mask_id: id of [MASK].
        special_ids: ids that are never chosen: [CLS], [SEP] and any other that is not text.
        seed: integer scalar.
        epoch: integer scalar; a tensor if it changes inside a graph.
        predictions_per_sequence: columns of the outputs, the most tokens that a row predicts. Google: 20 for length
            128, about masking_rate * length in general.
        masking_rate: predictions for each token of the row. BERT: 0.15.
        mask_token_rate: share of the chosen tokens replaced by [MASK]. BERT: 0.8.
        random_token_rate: share replaced by a random id; the others stay as they are. BERT: 0.1.
        unit: what is chosen together. "token": single tokens, as in the paper; "whole_word": all pieces of a word, as
            Google's `do_whole_word_mask`; "span": several whole words, their number drawn from a geometric
            distribution, as in SpanBERT (Joshi et al. 2020, section 3.1), where all tokens of a span also get the same
            kind of replacement; "ngram": one to three whole words, n of them in proportion to 1 / n, as in ALBERT (Lan
            et al. 2020, section 4.1), where each token is replaced independently; "phrase": all tokens of a phrase, as
            in ERNIE (Sun et al. 2019, section 3.2), or of a word outside phrases.
        is_continuation: bool (vocabulary,), whether an id goes on with a word, like a "##piece"; needed for words,
            spans, n-grams and phrases.

    With the unit "phrase", `rows` also has `phrase_continuations`, int32 (batch, length): 1 for a token that goes on
    with the phrase of the token before it.

    Returns: `rows` with new `token_ids` and, all (batch, predictions): `mask_positions`, int32, ascending;
        `mask_ids`, int32, the original ids; `mask_weights`, float32, 1 for a prediction. Unused columns are 0.
    Raises: ValueError if `predictions_per_sequence` exceeds the length, or there are no phrases to mask.
    """
    token_ids = rows["token_ids"]
    check_predictions(predictions_per_sequence, token_ids.shape[1], masking_rate)
    counters = (seed, epoch, rows["example_index"])
    is_candidate = _candidates(token_ids, rows["padding_mask"], special_ids)
    num_predictions = tf.minimum(_predictions_of(rows["padding_mask"], masking_rate), predictions_per_sequence)
    if unit == "token":
        position, is_real = _choose_positions(is_candidate, num_predictions, predictions_per_sequence, counters)
        treated_as = position
    else:
        check_phrases(rows, unit)
        choose = {"whole_word": _choose_words, "phrase": _choose_words, "span": _choose_spans, "ngram": _choose_ngrams}
        goes_on = tf.gather(tf.constant(is_continuation), token_ids)
        if unit == "phrase":
            goes_on |= rows[MARKS] == 1
        words = _words(is_candidate, goes_on)
        is_chosen, treated_as = choose[unit](words, is_candidate, num_predictions, counters)  # both (batch, length)
        position, is_real = _positions_of(is_chosen, predictions_per_sequence)
        treated_as = tf.gather(treated_as, position, batch_dims=1)
    original = tf.gather(token_ids, position, batch_dims=1)  # (batch, predictions)
    draw = uniforms(_keys(Stream.MASK_TREATMENT, counters), treated_as)
    # Any id, special ones included, as in Google's `vocab_words[rng.randint(0, len(vocab_words) - 1)]`.
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
    # Google's `max(1, int(round(len(tokens) * masked_lm_prob)))`: tokens include [CLS] and [SEP]. Python 3
    # and tf.round both round halves to even, and 0.15 * 190 is exactly a half only in float64.
    num_tokens = tf.cast(tf.reduce_sum(padding_mask, axis=1), tf.float64)  # (batch,)
    return tf.maximum(1, tf.cast(tf.round(num_tokens * masking_rate), tf.int32))


def _choose_positions(is_candidate, num_predictions, predictions_per_sequence, counters):
    """Draws positions without replacement: each candidate gets a random number, and the largest numbers win.

    Args:
        is_candidate: bool (batch, length).
        num_predictions: int32 (batch,), wanted in each row.
        predictions_per_sequence: columns of the result.
        counters: seed, epoch and example_index (batch,).

    Returns: int32 (batch, predictions) positions in ascending order, then zeros; bool, same shape, False for the zeros.
    """
    length = tf.shape(is_candidate)[1]
    draw = uniforms(_keys(Stream.MASK_POSITION, counters), tf.range(length))  # (batch, length)
    _, position = tf.math.top_k(tf.where(is_candidate, draw, -1.0), predictions_per_sequence)  # (batch, predictions)
    num_real = tf.minimum(num_predictions, tf.reduce_sum(tf.cast(is_candidate, tf.int32), axis=1))  # (batch,)
    is_chosen = tf.range(predictions_per_sequence) < num_real[:, tf.newaxis]
    return _zeros_for_unused(tf.sort(tf.where(is_chosen, position, length), axis=1), length)


def _positions_of(is_chosen, predictions_per_sequence):
    """As `_choose_positions`, for tokens already chosen, bool (batch, length), no more than there are columns."""
    length = tf.shape(is_chosen)[1]
    position = tf.sort(tf.where(is_chosen, tf.range(length), length), axis=1)
    return _zeros_for_unused(position[:, :predictions_per_sequence], length)


def _zeros_for_unused(position, length):
    is_real = position < length
    return tf.where(is_real, position, 0), is_real


def _words(is_candidate, goes_on):
    """The number of the word or phrase that a token is in, counted from 1; 0 for what is not text.

    Args: is_candidate, goes_on: bool (batch, length), what is text, and what goes on with the token before it.
    Returns: int32 (batch, length).
    """
    follows_text = tf.pad(is_candidate[:, :-1], [[0, 0], [1, 0]])
    goes_on &= follows_text
    return tf.where(is_candidate, tf.cumsum(tf.cast(is_candidate & ~goes_on, tf.int32), axis=1), 0)


def _choose_words(words, is_candidate, num_predictions, counters):
    """Chooses words in random order, and skips a word with more tokens than are still wanted, as Google's code does.

    Returns: bool (batch, length), which tokens are chosen; int32 (batch, length), the position of each token, because
        each is replaced independently.
    """
    batch, length = tf.shape(words)[0], tf.shape(words)[1]
    flat = words + (length + 1) * tf.range(batch)[:, tf.newaxis]
    ones = tf.reshape(tf.cast(is_candidate, tf.int32), [-1])
    sizes = tf.math.unsorted_segment_sum(ones, tf.reshape(flat, [-1]), batch * (length + 1))
    sizes = tf.reshape(sizes, [batch, length + 1])  # by the number of the word
    draw = uniforms(_keys(Stream.MASK_POSITION, counters), tf.range(length + 1))
    order = tf.argsort(tf.where(sizes > 0, draw, -1.0), axis=1, direction="DESCENDING")
    sizes = tf.gather(sizes, order, batch_dims=1)

    def accept(is_open, is_accepted, room):
        # Accepts the words before the first that does not fit. That one is skipped for good: the room only shrinks.
        is_open &= sizes <= room
        fits = is_open & (tf.cumsum(tf.where(is_open, sizes, 0), axis=1) <= room)
        room -= tf.reduce_sum(tf.where(fits, sizes, 0), axis=1, keepdims=True)
        return is_open & ~fits, is_accepted | fits, room

    start = (sizes > 0, tf.zeros_like(sizes, tf.bool), num_predictions[:, tf.newaxis])
    _, is_accepted, _ = tf.while_loop(lambda is_open, *_: tf.reduce_any(is_open), accept, start)
    is_accepted = tf.gather(is_accepted, tf.argsort(order, axis=1), batch_dims=1)
    is_chosen = tf.gather(is_accepted, words, batch_dims=1) & is_candidate
    return is_chosen, tf.broadcast_to(tf.range(length), tf.shape(words))


def _choose_spans(words, is_candidate, num_predictions, counters):
    """Chooses spans that begin with random words not chosen yet, until there are enough tokens; the last may be cut.

    A span does not continue beyond the end of its segment.

    Returns: bool (batch, length), which tokens are chosen; int32 (batch, length), the number of a token's span.
    """
    segment = tf.cumsum(tf.cast(~is_candidate, tf.int32), axis=1)
    anchors, lengths, num_words = _anchors_and_lengths(words, counters, SPAN_LENGTHS)

    def add(turn, span, room):
        anchor = anchors[:, turn, tf.newaxis]  # (batch, 1)
        is_first = (words == anchor) & is_candidate
        is_free = ~tf.reduce_any(is_first & (span > 0), axis=1, keepdims=True) & (turn < num_words)
        within = (words >= anchor) & (words < anchor + tf.gather(lengths, anchor, batch_dims=1)) & is_candidate
        own = tf.reduce_max(tf.where(is_first, segment, 0), axis=1, keepdims=True)
        is_new = within & (segment == own) & (span == 0) & is_free
        is_new &= tf.cumsum(tf.cast(is_new, tf.int32), axis=1) <= room
        room -= tf.reduce_sum(tf.cast(is_new, tf.int32), axis=1, keepdims=True)
        return turn + 1, tf.where(is_new, anchor, span), room

    def goes_on(turn, span, room):
        return tf.reduce_any((room > 0) & (turn < num_words))

    start = (tf.constant(0), tf.zeros_like(words), num_predictions[:, tf.newaxis])
    _, span, _ = tf.while_loop(goes_on, add, start)
    return span > 0, span


def _choose_ngrams(words, is_candidate, num_predictions, counters):
    """Chooses n-grams of whole words that begin with random words not chosen yet, until no more fit.

    An n-gram ends before a word that is chosen already, that is in the next segment, or that has more tokens than are
    still wanted. Google's code skips an n-gram of which a word is chosen already.

    Returns: bool (batch, length), which tokens are chosen; int32 (batch, length), the position of each token, because
        each is replaced independently.
    """
    segment = tf.cumsum(tf.cast(~is_candidate, tf.int32), axis=1)
    anchors, lengths, num_words = _anchors_and_lengths(words, counters, NGRAM_LENGTHS)

    def add(turn, is_chosen, room):
        anchor = anchors[:, turn, tf.newaxis]  # (batch, 1)
        own = tf.reduce_max(tf.where((words == anchor) & is_candidate, segment, 0), axis=1, keepdims=True)
        wanted = tf.gather(lengths, anchor, batch_dims=1)
        goes_on = turn < num_words
        for offset in range(len(NGRAM_LENGTHS)):
            is_word = (words == anchor + offset) & is_candidate & (segment == own)
            size = tf.reduce_sum(tf.cast(is_word, tf.int32), axis=1, keepdims=True)
            is_free = (size > 0) & ~tf.reduce_any(is_word & is_chosen, axis=1, keepdims=True)
            goes_on &= (offset < wanted) & is_free & (size <= room)
            is_chosen |= is_word & goes_on
            room -= tf.where(goes_on, size, 0)
        return turn + 1, is_chosen, room

    def has_room(turn, is_chosen, room):
        return tf.reduce_any((room > 0) & (turn < num_words))

    start = (tf.constant(0), tf.zeros_like(is_candidate), num_predictions[:, tf.newaxis])
    _, is_chosen, _ = tf.while_loop(has_room, add, start)
    return is_chosen, tf.broadcast_to(tf.range(tf.shape(words)[1]), tf.shape(words))


def _anchors_and_lengths(words, counters, shares):
    """The words of each row in random order, the length of a run that begins with each, and the number of words.

    Args:
        words: the number of the word of each token, int32 (batch, length).
        counters: seed, epoch and example_index (batch,).
        shares: share of the runs that are at most 1, 2, ... words long.

    Returns: numbers of words, int32 (batch, length + 1); words in a run, by the number of its first word, same shape;
        int32 (batch, 1).
    """
    number = tf.range(tf.shape(words)[1] + 1)
    num_words = tf.reduce_max(words, axis=1, keepdims=True)
    draw = uniforms(_keys(Stream.MASK_POSITION, counters), number)
    anchors = tf.argsort(tf.where((number > 0) & (number <= num_words), draw, -1.0), axis=1, direction="DESCENDING")
    draw = uniforms(_keys(Stream.SPAN_LENGTH, counters), number)
    lengths = 1 + tf.searchsorted(tf.constant(shares), tf.reshape(draw, [-1]), side="right")
    return anchors, tf.reshape(tf.minimum(lengths, len(shares)), tf.shape(draw)), num_words


def _replace(token_ids, position, change):
    # The change is added, not assigned: all unused columns point at position 0, which may also hold a prediction, and
    # adding 0 there has no effect.
    row = tf.range(tf.shape(position)[0])[:, tf.newaxis] + tf.zeros_like(position)  # (batch, predictions)
    return tf.tensor_scatter_nd_add(token_ids, tf.stack([row, position], axis=-1), change)
