"""Dynamic masking: the tokens of a row that the model must predict are drawn again in every epoch.

Devlin et al. 2019, section 3.1, task 1, step for step as `create_masked_lm_predictions` of google-research/bert's
create_pretraining_data.py. Google masked each example ten times and wrote the copies to disk; here it happens when a
batch is read, in NumPy or in the tf.data graph, so no two epochs show the same masks (Liu et al. 2019, "RoBERTa",
section 4.1).
"""

import dataclasses
import functools
import math
import typing

import numpy as np

from keras_bert_impl.text.rows import numpy_arrays
from keras_bert_impl.text.rows.phrases import MARKS
from keras_bert_impl.text.rows.randomness import Stream, random_bits, random_keys, uniform_integers, uniforms

# SpanBERT's span lengths in words: geometric with p = 0.2, at most 10, 3.8 on average.
SPAN_LENGTHS = np.cumsum(0.2 * 0.8 ** np.arange(10) / (1 - 0.8**10)).astype("float32")
# ALBERT's n-grams of words: n of 1 to 3, in proportion to 1 / n, 1.6 on average.
NGRAM_LENGTHS = np.cumsum((1 / np.arange(1, 4)) / np.sum(1 / np.arange(1, 4))).astype("float32")
# XLNet's spans: 1 to 5 tokens, in proportion to 1 / n, in a context of six times as many.
CONTEXT_SPAN_LENGTHS = np.cumsum((1 / np.arange(1, 6)) / np.sum(1 / np.arange(1, 6))).astype("float32")
CONTEXT_OF_TOKEN = 6
NO_PHRASES = "The data contain no phrases to mask: prepare them with --phrases, or use another unit."


@dataclasses.dataclass(frozen=True)
class MaskingRule:
    """Chooses tokens to predict and hides most of them, for masked language modelling.

    Args:
        tokenizer (Tokenizer): tokenizer of the examples; its control tokens are never chosen.
        predictions_per_sequence (int, optional): largest number of predictions in an example. Default: masking_rate of
            the length, rounded up.
        seed (int, optional): random seed. Default: 0.
        unit (str, optional): tokens that are chosen together, one of those below. Default: "token".
        masking_rate (float, optional): fraction of an example's tokens to predict. Default: 0.15.
        mask_token_rate (float, optional): fraction of the chosen tokens replaced by [MASK]. Default: 0.8.
        random_token_rate (float, optional): fraction replaced by a random token; the others stay unchanged.
            Default: 0.1.

    Units:

    - "token": single tokens, as in the paper;
    - "whole_word": all tokens of a word, as Google's `do_whole_word_mask`;
    - "span": several whole words, their number drawn from a geometric distribution, all with the same kind of
      replacement, as in SpanBERT (Joshi et al. 2020, section 3.1);
    - "ngram": one to three whole words, n of them in proportion to 1 / n, each token replaced independently, as in
      ALBERT (Lan et al. 2020, section 4.1);
    - "context_span": one to five tokens from the beginning of a word, n of them in proportion to 1 / n, somewhere in
      each stretch of 6n tokens, as in XLNet (Yang et al. 2019, section 3.1);
    - "phrase": all tokens of a phrase, or of a word outside phrases, as in ERNIE (Sun et al. 2019, section 3.2).

    Raises: ValueError unless masking_rate is between 0 and 1, and the other rates are at least 0 and add up to at
        most 1.
    """

    tokenizer: typing.Any
    predictions_per_sequence: int | None = None
    seed: int = 0
    unit: str = "token"
    masking_rate: float = 0.15
    mask_token_rate: float = 0.8
    random_token_rate: float = 0.1

    def __post_init__(self):
        if not 0 < self.masking_rate < 1:
            raise ValueError(f"masking_rate {self.masking_rate} must be a share of the tokens, above 0 and below 1.")
        shares = self.mask_token_rate, self.random_token_rate
        if min(shares) < 0 or sum(shares) > 1 + 1e-9:
            raise ValueError(
                f"mask_token_rate {shares[0]} and random_token_rate {shares[1]} must be shares of at least 0 that add "
                "up to at most 1: the rest of the chosen tokens stays as it is."
            )

    @functools.cached_property
    def is_continuation(self):
        """Whether an id goes on with a word, like a "##piece": bool (vocabulary,)."""
        return np.array(self.tokenizer.is_continuation)

    def mask(self, rows, epoch, arrays=numpy_arrays):
        """The rows masked.

        Args:
            rows: dict with `token_ids` and `padding_mask`, int32 (batch, length), and `example_index`, int64 (batch,),
                the number of each row in the dataset. The masks of a row depend only on the seed, `epoch` and that
                number, not on the rest of the batch. With the unit "phrase" also `phrase_continuations`, int32 (batch,
                length): 1 for a token that goes on with the phrase of the token before it. Other entries are passed
                through.
            epoch: integer, or one for each row, (batch,); a tensor if it changes inside a graph.
            arrays: the module of the array operations, of which the rows are arrays.

        Returns: `rows` with new `token_ids` and, all (batch, predictions): `mask_positions`, int32, ascending;
            `mask_ids`, int32, the original ids; `mask_weights`, float32, 1 for a prediction. Unused columns are 0.
        Raises: ValueError if `predictions_per_sequence` exceeds the length, or there are no phrases to mask.
        """
        token_ids = rows["token_ids"]
        if self.unit == "phrase" and MARKS not in rows:
            raise ValueError(NO_PHRASES)
        columns = self.predictions_per_sequence or math.ceil(self.masking_rate * token_ids.shape[1])
        check_predictions(columns, token_ids.shape[1], self.masking_rate)
        draws = Draws((self.seed, epoch, rows["example_index"]), arrays)
        is_candidate = rows["padding_mask"] == 1
        for special in self.tokenizer.control_ids:
            is_candidate = is_candidate & (token_ids != special)
        wanted = _predictions_of(rows["padding_mask"], self.masking_rate, arrays)
        room = arrays.where(wanted < columns, wanted, columns)  # (batch, 1)
        if self.unit == "token":
            position, is_real = _choose_positions(is_candidate, room, columns, draws)
            treated_as = position
        else:
            goes_on = arrays.look_up(self.is_continuation, token_ids)
            if self.unit == "phrase":
                goes_on = goes_on | (rows[MARKS] == 1)
            words = _words(is_candidate, goes_on, arrays)
            is_chosen, treated_as = CHOOSE[self.unit](words, is_candidate, room, draws)  # both (batch, length)
            position, is_real = _positions_of(is_chosen, columns, arrays)
            treated_as = arrays.take(treated_as, position)
        original = arrays.take(token_ids, position)  # (batch, predictions)
        draw = draws.uniforms(Stream.MASK_TREATMENT, treated_as)
        # Any id, special ones included, as in Google's `vocab_words[rng.randint(0, len(vocab_words) - 1)]`.
        random_ids = draws.integers(Stream.MASK_REPLACEMENT, position, self.tokenizer.vocabulary_size)
        random_ids = arrays.cast(random_ids, arrays.int32)
        is_changed = draw < np.float32(self.mask_token_rate + self.random_token_rate)
        shown = arrays.where(is_changed, random_ids, original)
        mask_id = arrays.constant(self.tokenizer.mask_id, arrays.int32)
        shown = arrays.where(draw < np.float32(self.mask_token_rate), mask_id, shown)
        return {
            **rows,
            "token_ids": arrays.put(token_ids, position, shown, is_real),
            "mask_positions": position,
            "mask_ids": arrays.where(is_real, original, arrays.constant(0, arrays.int32)),
            "mask_weights": arrays.cast(is_real, arrays.float32),
        }


class NextTokens(typing.NamedTuple):
    """Labels every token with the next one, in place of a `MaskingRule`, for models that read in one direction.

    It is the objective of GPT and ELMo (Devlin et al. 2019, section 5.1).

    Fields:
        direction (str): "left_to_right", where token i predicts token i + 1; or "right_to_left", where it predicts
            token i - 1.
    """

    direction: str

    def mask(self, rows, epoch, arrays=numpy_arrays):
        """The rows with labels; nothing is masked.

        Args:
            rows: dict with `token_ids` and `padding_mask`, int32 (batch, length), and of packed rows `sequence_ids`: no
                token predicts one of another sequence. Other entries are passed through.
            epoch: without influence.
            arrays: the module of the array operations, of which the rows are arrays.

        Returns: `rows` with, all (batch, length - 1), `mask_positions`, int32: 0 to length - 2 from left to right, 1 to
            length - 1 from right to left; `mask_ids`, int32, the token to predict there; `mask_weights`, float32, 1 for
            a prediction, 0 where the next token is padding or of another sequence.
        """
        token_ids = rows["token_ids"]
        numbers = rows.get("sequence_ids", rows["padding_mask"])  # 0 for padding
        first, second = token_ids[:, :-1], token_ids[:, 1:]
        is_pair = (numbers[:, :-1] == numbers[:, 1:]) & (numbers[:, 1:] > 0)
        is_forward = self.direction == "left_to_right"
        positions = arrays.arange(token_ids.shape[1] - 1) + (0 if is_forward else 1)
        return {
            **rows,
            "mask_positions": positions + 0 * first,  # for every row
            "mask_ids": arrays.where(is_pair, second if is_forward else first, 0),
            "mask_weights": arrays.cast(is_pair, arrays.float32),
        }


def check_predictions(predictions_per_sequence, length, masking_rate):
    """Raises ValueError if a row of this length cannot have so many predictions."""
    if length is not None and predictions_per_sequence > length:
        raise ValueError(
            f"predictions_per_sequence {predictions_per_sequence} exceeds the {length} tokens of a sequence. "
            f"BERT predicts {masking_rate:.0%} of them: use {max(1, round(masking_rate * length))}."
        )


class Draws(typing.NamedTuple):
    """The random draws of rows.

    Attributes:
        counters: seed, epoch and example_index (batch,).
        arrays: the module of the array operations.
    """

    counters: tuple
    arrays: typing.Any

    def keys(self, stream):
        return random_keys(stream, *self.counters, arrays=self.arrays)[:, None]  # (batch, 1)

    def uniforms(self, stream, positions):
        return uniforms(self.keys(stream), positions, self.arrays)

    def integers(self, stream, positions, bound):
        return uniform_integers(self.keys(stream), positions, bound, self.arrays)


def _predictions_of(padding_mask, masking_rate, arrays):
    """The predictions that the tokens of each row make, int32 (batch, 1)."""
    # Google's `max(1, int(round(len(tokens) * masked_lm_prob)))`: tokens include [CLS] and [SEP]. Python 3 rounds
    # halves to even, too, and 0.15 * 190 is exactly a half only in float64.
    share = arrays.cast(arrays.row_sum(padding_mask), arrays.float64) * masking_rate
    wanted = arrays.cast(arrays.round_half_to_even(share), arrays.int32)
    return arrays.where(wanted < 1, arrays.constant(1, arrays.int32), wanted)


def _choose_positions(is_candidate, room, predictions_per_sequence, draws):
    """Draws positions without replacement: each candidate gets a random number, and the largest numbers win.

    Args:
        is_candidate: bool (batch, length).
        room: int32 (batch, 1), the predictions wanted in each row.
        predictions_per_sequence: columns of the result.
        draws: `Draws`.

    Returns: int32 (batch, predictions) positions in ascending order, then zeros; bool, same shape, False for the zeros.
    """
    arrays = draws.arrays
    length = arrays.shape(is_candidate)[1]
    place = arrays.arange(length)
    bits = random_bits(draws.keys(Stream.MASK_POSITION), place, arrays)
    draw = arrays.cast(arrays.shift_right(bits, 40), arrays.int64)  # of 24 bits
    # One integer to sort: the largest draw first, and of equal ones the smaller position.
    rank = (2**24 - draw) * 2**32 + arrays.cast(place, arrays.int64)
    rank = arrays.where(is_candidate, rank, arrays.constant(2**62, arrays.int64))
    position = arrays.cast(arrays.smallest(rank, predictions_per_sequence) & 0xFFFFFFFF, arrays.int32)
    available = arrays.row_sum(is_candidate)
    is_chosen = arrays.arange(predictions_per_sequence) < arrays.where(room < available, room, available)
    return _sorted_positions(arrays.where(is_chosen, position, length), predictions_per_sequence, length, arrays)


def _positions_of(is_chosen, predictions_per_sequence, arrays):
    """As `_choose_positions`, for tokens already chosen, bool (batch, length), no more than there are columns."""
    length = arrays.shape(is_chosen)[1]
    position = arrays.where(is_chosen, arrays.arange(length), length)
    return _sorted_positions(position, predictions_per_sequence, length, arrays)


def _sorted_positions(position, count, length, arrays):
    position = arrays.cast(arrays.smallest(position, count), arrays.int32)
    is_real = position < length
    return arrays.where(is_real, position, arrays.constant(0, arrays.int32)), is_real


def _words(is_candidate, goes_on, arrays):
    """The number of the word or phrase that a token is in, counted from 1; 0 for what is not text.

    Args: is_candidate, goes_on: bool (batch, length), what is text, and what goes on with the token before it.
    Returns: int32 (batch, length).
    """
    goes_on = goes_on & arrays.of_place_before(is_candidate)
    return arrays.where(is_candidate, arrays.running_sum(is_candidate & ~goes_on), arrays.constant(0, arrays.int32))


def _choose_words(words, is_candidate, room, draws):
    """Chooses words in random order, and skips a word with more tokens than are still wanted, as Google's code does.

    Returns: bool (batch, length), which tokens are chosen; int32 (batch, length), the position of each token, because
        each is replaced independently.
    """
    arrays = draws.arrays
    length = arrays.shape(words)[1]
    sizes = arrays.counts_of(words, is_candidate, length + 1)  # by the number of the word
    draw = draws.uniforms(Stream.MASK_POSITION, arrays.arange(length + 1))
    order = arrays.order_of(arrays.where(sizes > 0, -draw, arrays.constant(1, arrays.float32)))
    sizes = arrays.take(sizes, order)

    def accept(is_open, is_accepted, room):
        # Accepts the words before the first that does not fit. That one is skipped for good: the room only shrinks.
        is_open = is_open & (sizes <= room)
        open_sizes = sizes * arrays.cast(is_open, arrays.int32)
        fits = is_open & (arrays.running_sum(open_sizes) <= room)
        room = room - arrays.row_sum(sizes * arrays.cast(fits, arrays.int32))
        return is_open & ~fits, is_accepted | fits, room

    _, is_accepted, _ = arrays.loop(lambda is_open, *_: arrays.any_of(is_open), accept, sizes > 0, sizes < 0, room)
    is_accepted = arrays.take(is_accepted, arrays.order_of(order))
    return arrays.take(is_accepted, words) & is_candidate, _own_places(words, arrays)


def _own_places(words, arrays):
    """The position of each token, int32 (batch, length)."""
    return arrays.spread(arrays.arange(arrays.shape(words)[1]), arrays.shape(words))


def _choose_spans(words, is_candidate, room, draws):
    """Chooses spans that begin with random words not chosen yet, until there are enough tokens; the last may be cut.

    A span does not continue beyond the end of its segment.

    Returns: bool (batch, length), which tokens are chosen; int32 (batch, length), the number of a token's span.
    """
    arrays = draws.arrays
    segment = arrays.running_sum(~is_candidate)
    anchors, lengths, num_words = _anchors_and_lengths(words, SPAN_LENGTHS, draws)

    def add(turn, span, room):
        anchor = anchors[:, turn, None]  # (batch, 1)
        is_first = (words == anchor) & is_candidate
        is_free = ~arrays.row_any(is_first & (span > 0)) & (turn < num_words)
        within = (words >= anchor) & (words < anchor + arrays.take(lengths, anchor)) & is_candidate
        own = arrays.row_max(segment * arrays.cast(is_first, arrays.int32))
        is_new = within & (segment == own) & (span == 0) & is_free
        is_new = is_new & (arrays.running_sum(is_new) <= room)
        return turn + 1, arrays.where(is_new, anchor, span), room - arrays.row_sum(is_new)

    def goes_on(turn, span, room):
        return arrays.any_of((room > 0) & (turn < num_words))

    _, span, _ = arrays.loop(goes_on, add, arrays.constant(0, arrays.int32), 0 * words, room)
    return span > 0, span


def _choose_ngrams(words, is_candidate, room, draws):
    """Chooses n-grams of whole words that begin with random words not chosen yet, until no more fit.

    An n-gram ends before a word that is chosen already, that is in the next segment, or that has more tokens than are
    still wanted. Google's code skips an n-gram of which a word is chosen already.

    Returns: bool (batch, length), which tokens are chosen; int32 (batch, length), the position of each token, because
        each is replaced independently.
    """
    arrays = draws.arrays
    segment = arrays.running_sum(~is_candidate)
    anchors, lengths, num_words = _anchors_and_lengths(words, NGRAM_LENGTHS, draws)

    def add(turn, is_chosen, room):
        anchor = anchors[:, turn, None]  # (batch, 1)
        own = arrays.row_max(segment * arrays.cast((words == anchor) & is_candidate, arrays.int32))
        wanted = arrays.take(lengths, anchor)
        goes_on = turn < num_words
        for offset in range(len(NGRAM_LENGTHS)):
            is_word = (words == anchor + offset) & is_candidate & (segment == own)
            size = arrays.row_sum(is_word)
            is_free = (size > 0) & ~arrays.row_any(is_word & is_chosen)
            goes_on = goes_on & (offset < wanted) & is_free & (size <= room)
            is_chosen = is_chosen | (is_word & goes_on)
            room = room - size * arrays.cast(goes_on, arrays.int32)
        return turn + 1, is_chosen, room

    def has_room(turn, is_chosen, room):
        return arrays.any_of((room > 0) & (turn < num_words))

    _, is_chosen, _ = arrays.loop(has_room, add, arrays.constant(0, arrays.int32), words < 0, room)
    return is_chosen, _own_places(words, arrays)


def _choose_context_spans(words, is_candidate, room, draws):
    """Chooses spans from the beginning of each row to its end, one in each context, and single tokens for what is then
    still wanted.

    A context is six times as long as its span, which stands at a random place in it, or behind it, where the next word
    begins. Control tokens within a span are not predicted, and others are in their place; zihangdai/xlnet's
    `_sample_mask` counts them as predicted, and its rows then have fewer predictions.

    Returns: bool (batch, length), which tokens are chosen; int32 (batch, length), the position of each token, because
        each is replaced independently.
    """
    arrays = draws.arrays
    length = arrays.shape(is_candidate)[1]
    place = arrays.arange(length)
    word_before = arrays.take(words, arrays.spread(arrays.where(place > 0, place - 1, 0), arrays.shape(words)))
    is_start = is_candidate & ((words != word_before) | (place == 0))

    def add(turn, at, is_chosen):
        """`at`: where the next context begins, int32 (batch, 1)."""
        left = room - arrays.row_sum(is_chosen)
        size = 1 + arrays.places_in(CONTEXT_SPAN_LENGTHS, draws.uniforms(Stream.SPAN_LENGTH, turn))
        size = arrays.where(size < len(CONTEXT_SPAN_LENGTHS), size, len(CONTEXT_SPAN_LENGTHS))
        size = arrays.where(size < left, size, left)
        context = size * CONTEXT_OF_TOKEN
        # A bound of at least 1, also in rows that want nothing any more.
        bound = arrays.where(context > 1, context, 1)
        before = arrays.cast(draws.integers(Stream.SPAN_PLACE, turn, bound), arrays.int32)
        first = arrays.row_min(arrays.where(is_start & (place >= at + before), place, length))
        fits = (first + size < length) & (left > 0)
        within = (place >= first) & (place < first + size) & fits & is_candidate
        # Where a span does not fit, the row is finished.
        at = arrays.where(fits, first + size + context - before, length)
        return turn + 1, at, is_chosen | within

    def goes_on(turn, at, is_chosen):
        return arrays.any_of((at < length) & (arrays.row_sum(is_chosen) < room))

    start = arrays.constant(0, arrays.int32), 0 * room, is_candidate & (place < 0)
    _, _, is_chosen = arrays.loop(goes_on, add, *start)
    left = room - arrays.row_sum(is_chosen)
    is_free = is_candidate & ~is_chosen
    draw = draws.uniforms(Stream.MASK_POSITION, place)
    order = arrays.order_of(arrays.where(is_free, draw, arrays.constant(2, arrays.float32)))
    return is_chosen | (is_free & (arrays.order_of(order) < left)), _own_places(words, arrays)


CHOOSE = {"whole_word": _choose_words, "phrase": _choose_words, "span": _choose_spans, "ngram": _choose_ngrams}
CHOOSE |= {"context_span": _choose_context_spans}


def _anchors_and_lengths(words, shares, draws):
    """The words of each row in random order, the length of a run that begins with each, and the number of words.

    Args:
        words: the number of the word of each token, int32 (batch, length).
        shares: share of the runs that are at most 1, 2, ... words long.
        draws: `Draws`.

    Returns: numbers of words, int32 (batch, length + 1); words in a run, by the number of its first word, same shape;
        int32 (batch, 1).
    """
    arrays = draws.arrays
    number, num_words = arrays.arange(arrays.shape(words)[1] + 1), arrays.row_max(words)
    draw = draws.uniforms(Stream.MASK_POSITION, number)
    is_word = (number > 0) & (number <= num_words)
    anchors = arrays.order_of(arrays.where(is_word, -draw, arrays.constant(1, arrays.float32)))
    lengths = 1 + arrays.places_in(shares, draws.uniforms(Stream.SPAN_LENGTH, number))
    return anchors, arrays.where(lengths < len(shares), lengths, len(shares)), num_words
