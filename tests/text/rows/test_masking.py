import types

import keras
import numpy as np
import pytest
from tiers import full_but, on, once

from keras_bert_impl.text.rows import numpy_arrays
from keras_bert_impl.text.rows.masking import MaskingRule
from keras_bert_impl.text.rows.randomness import Stream, random_keys, uniform_integers, uniforms

pytestmark = once

PAD, CLS, SEP, MASK = 0, 1, 2, 3
ON_TENSORFLOW = keras.backend.backend() == "tensorflow"
VOCABULARY_SIZE = 1000
SPECIAL_IDS = [PAD, CLS, SEP]


def rows_of(num_tokens, length):
    """Rows [CLS] text [SEP] padding with `num_tokens` (batch,) tokens each, special ones included."""
    generator = np.random.default_rng(0)
    num_tokens = np.asarray(num_tokens)
    position = np.arange(length)
    token_ids = generator.integers(4, VOCABULARY_SIZE, (len(num_tokens), length))
    token_ids[:, 0] = CLS
    token_ids[position == num_tokens[:, None] - 1] = SEP
    padding_mask = position < num_tokens[:, None]
    return {
        "token_ids": (token_ids * padding_mask).astype(np.int32),
        "segment_ids": np.zeros((len(num_tokens), length), np.int32),
        "padding_mask": padding_mask.astype(np.int32),
        "example_index": np.arange(len(num_tokens)),
    }


def mask(rows, epoch=0, special_ids=SPECIAL_IDS, arrays=numpy_arrays, is_continuation=None, **options):
    tokenizer = types.SimpleNamespace(
        vocabulary_size=VOCABULARY_SIZE, mask_id=MASK, control_ids=special_ids, is_continuation=is_continuation
    )
    return MaskingRule(tokenizer, **{"predictions_per_sequence": 20, "seed": 1, **options}).mask(rows, epoch, arrays)


def assert_share(count, total, probability):
    """Asserts a share within five standard deviations of a binomial: fails by chance less than once in a million."""
    assert abs(count - total * probability) < 5 * np.sqrt(total * probability * (1 - probability))


@pytest.mark.parametrize(
    ("num_tokens", "expected"),
    # Python's round(0.15 * n), halves to even: 1.5 -> 2, 4.5 -> 4, 7.5 -> 8; 190 * 0.15 is not 28.5 in float32.
    [(3, 1), (5, 1), (10, 2), (30, 4), (50, 8), (128, 19), (190, 28)],
)
def test_number_of_predictions_is_googles(num_tokens, expected):
    assert expected == min(30, max(1, round(num_tokens * 0.15)))
    # A row of 3 tokens has one that is not special.
    masked = mask(rows_of([num_tokens], 200), predictions_per_sequence=30)
    assert masked["mask_weights"].sum() == expected


def test_predictions_are_limited_to_the_columns_and_to_the_candidates():
    assert mask(rows_of([128], 128), predictions_per_sequence=7)["mask_weights"].sum() == 7
    assert mask(rows_of([5], 7), predictions_per_sequence=7, masking_rate=0.99)["mask_weights"].sum() == 3


def test_labels_are_the_originals_at_ascending_positions():
    rows = rows_of([128, 57, 33, 12, 5], 128)
    masked = mask(rows)
    for row in range(5):
        real = masked["mask_weights"][row] == 1
        position = masked["mask_positions"][row]
        assert (np.diff(position[real]) > 0).all() and real[: real.sum()].all()
        np.testing.assert_array_equal(masked["mask_ids"][row][real], rows["token_ids"][row, position[real]])
        assert not position[~real].any() and not masked["mask_ids"][row][~real].any()


def test_rates_over_many_tokens_are_those_of_the_paper():
    rows = rows_of([128] * 4000, 128)
    masked = mask(rows)
    real = masked["mask_weights"] == 1
    assert real.sum() == 4000 * 19
    shown = np.take_along_axis(masked["token_ids"], masked["mask_positions"], axis=1)[real]
    original = masked["mask_ids"][real]
    assert_share((shown == MASK).sum(), len(shown), 0.8 + 0.1 / VOCABULARY_SIZE)
    assert_share((shown == original).sum(), len(shown), 0.1 + 0.1 / VOCABULARY_SIZE)
    replaced = shown[(shown != MASK) & (shown != original)]
    counts = np.histogram(replaced, bins=10, range=(0, VOCABULARY_SIZE))[0]
    assert np.abs(counts - len(replaced) / 10).max() < 5 * np.sqrt(len(replaced) * 0.09)


def test_every_position_is_chosen_equally_often():
    masked = mask(rows_of([32] * 20_000, 32), predictions_per_sequence=5)
    assert masked["mask_weights"].all()
    counts = np.bincount(masked["mask_positions"].ravel(), minlength=32)
    assert counts[0] == counts[31] == 0
    assert np.abs(counts[1:31] - 20_000 * 5 / 30).max() < 5 * np.sqrt(20_000 * 1 / 6 * 5 / 6)


def test_neither_special_ids_of_any_number_nor_padding_of_any_id_are_masked():
    rows = {
        "token_ids": np.array([[400, 500, 600, 500, 4, 999, 7]], np.int32),
        "padding_mask": np.array([[1, 1, 1, 1, 1, 1, 0]], np.int32),
        "example_index": np.array([0]),
    }
    rates = {"masking_rate": 0.99, "mask_token_rate": 1.0, "random_token_rate": 0.0}
    masked = mask(rows, predictions_per_sequence=7, special_ids=np.array([500, 700]), **rates)
    assert masked["token_ids"].tolist() == [[MASK, 500, MASK, 500, MASK, MASK, 7]]
    assert masked["mask_positions"].tolist() == [[0, 2, 4, 5, 0, 0, 0]]


def test_a_row_is_masked_the_same_in_any_batch():
    rows = rows_of([128, 57, 33, 12, 5], 128)
    masked = mask(rows)
    reordered = mask({name: values[[3, 1]] for name, values in rows.items()})
    for name, values in reordered.items():
        np.testing.assert_array_equal(values, masked[name][[3, 1]])


def test_same_seed_and_epoch_repeat_and_others_differ():
    rows = rows_of([128] * 7, 128)
    positions = mask(rows)["mask_positions"]
    np.testing.assert_array_equal(mask(rows)["mask_positions"], positions)
    for other in (mask(rows, epoch=1), mask(rows, seed=2)):
        assert (other["mask_positions"] != positions).any(axis=1).all()


@pytest.mark.parametrize(("length", "advised"), [(2, 1), (17, 3)])
def test_more_predictions_than_tokens_are_refused(length, advised):
    complaint = (
        rf"predictions_per_sequence 20 exceeds the {length} tokens of a sequence.* 15% of them: use {advised}\.$"
    )
    with pytest.raises(ValueError, match=complaint):
        mask(rows_of([length], length))


# In the made-up vocabulary, every third id continues a word.
IS_CONTINUATION = [index > MASK and index % 3 == 0 for index in range(VOCABULARY_SIZE)]
UNITS = {
    unit: {"unit": unit, "is_continuation": IS_CONTINUATION}
    for unit in ("whole_word", "span", "ngram", "context_span", "phrase")
}


def words_of(row, marks=()):
    """Lists of the positions of each word of a row of ids, special tokens left out; of each phrase, with `marks` of
    where one goes on."""
    words = []
    for position, token in enumerate(row):
        if token in SPECIAL_IDS:
            continue
        goes_on = IS_CONTINUATION[token] or any(marks[position : position + 1])
        if goes_on and words and words[-1][-1] == position - 1:
            words[-1].append(position)
        else:
            words.append([position])
    return words


def chosen_positions(masked):
    """The set of positions predicted in each row."""
    pairs = zip(masked["mask_positions"], masked["mask_weights"], strict=True)
    return [set(position[weight > 0].tolist()) for position, weight in pairs]


def test_a_span_is_treated_as_one():
    rows = rows_of([128] * 200, 128)
    masked = mask(rows, mask_token_rate=0.5, random_token_rate=0.0, **UNITS["span"])
    after = masked["token_ids"]
    same = changes = 0
    for row, chosen in enumerate(chosen_positions(masked)):
        for position in chosen:
            if position + 1 in chosen:
                same += (after[row, position] == MASK) == (after[row, position + 1] == MASK)
                changes += (after[row, position] == MASK) != (after[row, position + 1] == MASK)
    assert changes < 0.15 * same  # only where two spans touch; it would be half of all if each token had its own draw


def test_ngrams_never_split_a_word_and_tokens_of_one_are_treated_apart():
    rows = rows_of([128] * 200, 128)
    masked = mask(rows, mask_token_rate=0.5, random_token_rate=0.0, **UNITS["ngram"])
    after, changes, pairs = masked["token_ids"], 0, 0
    for row, (ids, chosen) in enumerate(zip(rows["token_ids"], chosen_positions(masked), strict=True)):
        for word in words_of(ids):
            assert set(word) <= chosen or not set(word) & chosen
        for position in chosen & {position - 1 for position in chosen}:
            changes += (after[row, position] == MASK) != (after[row, position + 1] == MASK)
            pairs += 1
    assert 0.45 < changes / pairs < 0.55


@on("tensorflow")
@pytest.mark.parametrize("unit", full_but(["token", "whole_word", "span", "ngram", "context_span"], "ngram"))
def test_masks_of_a_data_set_are_those_of_each_row_alone(unit):
    import tensorflow as tf

    from keras_bert_impl.preprocessing.graphs import tensorflow_arrays

    rows = rows_of([30, 64, 50, 12], 64)
    apart = [mask({name: rows[name][row : row + 1] for name in rows}, **UNITS.get(unit, {})) for row in range(4)]
    mapped = tf.data.Dataset.from_tensors(rows).map(
        lambda rows: mask(rows, arrays=tensorflow_arrays, **UNITS.get(unit, {}))
    )
    assert mapped.element_spec["mask_ids"].shape[1] == 20
    for name in ("token_ids", "mask_positions", "mask_ids", "mask_weights"):
        found = mapped.get_single_element()[name]
        np.testing.assert_array_equal(found, np.concatenate([one[name] for one in apart]))


def rows_of_text(rows):
    """A batch of rows of ids, with [CLS] and [SEP] at any place, filled up with padding."""
    lengths = [len(row) for row in rows]
    return {
        "token_ids": np.array([row + [PAD] * (max(lengths) - len(row)) for row in rows], np.int32),
        "padding_mask": (np.arange(max(lengths)) < np.array(lengths)[:, None]).astype(np.int32),
        "example_index": np.arange(len(rows)),
        "phrase_continuations": (np.random.default_rng(6).random((len(rows), max(lengths))) < 0.4).astype(np.int32),
    }


def hostile_rows():
    """Rows where spans meet row ends and each other: several segments, only text, no text at all, short words."""
    text = np.random.default_rng(5).integers(4, VOCABULARY_SIZE, (40, 23)).tolist()
    rows = [[CLS, *row[:9], SEP, *row[9:], SEP] for row in text[:20]] + [row + row[:3] for row in text[20:30]]
    rows += [[CLS, SEP], [4], [CLS, 4, SEP, 4, SEP, 5, SEP, 7, SEP, 8, SEP, 10], [CLS, 4, 6, 9, 12, SEP]]
    rows += [[CLS, *row[:length], SEP] for length, row in enumerate(text[30:], start=1)]
    return rows_of_text(rows + [[4] * 26] * 20)  # in the last rows, every token is a word


def draws_of(stream, row, count):
    return uniforms(random_keys(stream, 1, 0, row), np.arange(count))


def words_by_loop(words, room, row):
    """The positions that whole-word masking chooses: words by falling draw, if they fit; word i, from 1, has draw i."""
    draws, chosen = draws_of(Stream.MASK_POSITION, row, len(words) + 1), set()
    for number in sorted(range(1, len(words) + 1), key=lambda number: -draws[number]):
        if len(words[number - 1]) <= room - len(chosen):
            chosen.update(words[number - 1])
    return chosen


def spans_by_loop(words, room, row):
    """The positions that span masking chooses: spans of words of one segment, by falling draw; the last one is cut."""
    draws, chosen = draws_of(Stream.MASK_POSITION, row, len(words) + 1), set()
    shares = np.cumsum([0.8**length for length in range(10)])
    lengths = 1 + np.searchsorted(shares / shares[-1], draws_of(Stream.SPAN_LENGTH, row, len(words) + 1))
    for number in sorted(range(1, len(words) + 1), key=lambda number: -draws[number]):
        span = words[number - 1 : number - 1 + lengths[number]]
        if span[0][0] in chosen:
            continue
        for before, word in zip([None, *span], span, strict=False):
            if before and before[-1] + 1 != word[0]:
                break  # a special token in between ends the segment
            chosen.update(position for position in word if position not in chosen and len(chosen) < room)
    return chosen


def ngrams_by_loop(words, room, row):
    """The positions that n-gram masking chooses: up to three whole words of one segment, by falling draw."""
    draws, chosen = draws_of(Stream.MASK_POSITION, row, len(words) + 1), set()
    shares = np.cumsum([1, 1 / 2, 1 / 3])
    lengths = 1 + np.searchsorted(shares / shares[-1], draws_of(Stream.SPAN_LENGTH, row, len(words) + 1))
    for number in sorted(range(1, len(words) + 1), key=lambda number: -draws[number]):
        ngram = words[number - 1 : number - 1 + lengths[number]]
        for before, word in zip([None, *ngram], ngram, strict=False):
            is_next = not before or before[-1] + 1 == word[0]  # no special token in between
            if not is_next or word[0] in chosen or len(chosen) + len(word) > room:
                break
            chosen.update(word)
    return chosen


def context_spans_by_loop(words, room, row, end=26):
    """The positions that XLNet's spans choose: one in each context of six times its length."""
    starts, text = [word[0] for word in words], {position for word in words for position in word}
    shares, draws = np.cumsum(1 / np.arange(1, 6)), draws_of(Stream.MASK_POSITION, row, end)
    lengths = 1 + np.searchsorted(shares / shares[-1], draws_of(Stream.SPAN_LENGTH, row, 2 * end))
    chosen, at, turn = set(), 0, 0
    while at < end and len(chosen) < room:
        size = min(int(lengths[turn]), room - len(chosen))
        before = int(uniform_integers(random_keys(Stream.SPAN_PLACE, 1, 0, row), turn, 6 * size))
        first = next((start for start in starts if at + before <= start < end), end)
        if first + size >= end:
            break
        chosen |= set(range(first, first + size)) & text
        at, turn = first + 7 * size - before, turn + 1
    left = sorted(text - chosen, key=lambda place: draws[place])
    return chosen | set(left[: room - len(chosen)])


LOOPS = [("whole_word", words_by_loop), ("span", spans_by_loop), ("ngram", ngrams_by_loop), ("phrase", words_by_loop)]
LOOPS += [("context_span", context_spans_by_loop)]


@pytest.mark.parametrize(("unit", "by_loop"), LOOPS)
@pytest.mark.parametrize("masking_rate", [0.15, 0.99])
def test_words_and_spans_are_those_of_a_loop_over_the_same_draws(unit, by_loop, masking_rate):
    rows = hostile_rows()
    masked = mask(rows, predictions_per_sequence=26, masking_rate=masking_rate, **UNITS[unit])
    num_tokens = rows["padding_mask"].sum(axis=1)
    for row, (ids, chosen) in enumerate(zip(rows["token_ids"], chosen_positions(masked), strict=True)):
        room = max(1, round(num_tokens[row] * masking_rate))
        marks = rows["phrase_continuations"][row] if unit == "phrase" else ()
        assert chosen == by_loop(words_of(ids, marks), room, row), row


def mask_in_graph(rows, **options):
    """As tf.data masks rows."""
    import tensorflow as tf

    from keras_bert_impl.preprocessing.graphs import tensorflow_arrays

    rows = {name: tf.constant(array) for name, array in rows.items()}
    return {name: array.numpy() for name, array in mask(rows, arrays=tensorflow_arrays, **options).items()}


@on("tensorflow")
@pytest.mark.parametrize("unit", ["token", "whole_word", "span", "ngram", "context_span", "phrase"])
@pytest.mark.parametrize("masking_rate", full_but([0.15, 0.99], 0.15))
def test_masks_of_tensorflow_are_the_same_bytes(unit, masking_rate):
    """Also with an epoch of its own for each row, as streams have it."""
    rows = hostile_rows()
    epoch = np.arange(len(rows["token_ids"])) % 3
    options = {"predictions_per_sequence": 26, "masking_rate": masking_rate, "random_token_rate": 0.15, "epoch": epoch}
    options |= UNITS.get(unit, {})
    expected = mask(rows, **options)
    for name, array in mask_in_graph(rows, **options).items():
        assert array.dtype == expected[name].dtype, name
        np.testing.assert_array_equal(array, expected[name], err_msg=name)


@on("tensorflow", "torch")
def test_of_two_equal_draws_the_first_is_chosen():
    """Of 512 draws of 24 bits, two are equal in one row of a hundred. Only one of the two positions is predicted here:
    as many tokens are as there are draws down to the first of them."""
    draws = uniforms(random_keys(Stream.MASK_POSITION, 1, 0, np.arange(3000))[:, np.newaxis], np.arange(512))
    draws[:, [0, 511]] = -np.arange(1, 3)  # special tokens
    falling = -np.sort(-draws, axis=1)
    row, rank = np.argwhere(falling[:, 1:] == falling[:, :-1])[0]
    rows = {name: array[row : row + 1] for name, array in rows_of([512] * 3000, 512).items()}
    masked = (mask_in_graph if ON_TENSORFLOW else mask)(rows, predictions_per_sequence=int(rank) + 1, masking_rate=0.99)
    equal = np.flatnonzero(draws[row] == falling[row, rank])
    assert len(equal) == 2 and list(np.isin(equal, masked["mask_positions"])) == [True, False]
