import numpy as np
import pytest
from tiers import once

from keras_bert_impl import WordPieceTokenizer
from keras_bert_impl.preprocessing import Masking
from keras_bert_impl.text.tokenizers.rows import kept_lengths, rows_from_texts

pytestmark = once


def google_truncation(first, second, max_tokens):
    """`_truncate_seq_pair` of google-research/bert's run_classifier.py."""
    first, second = list(first), list(second)
    while len(first) + len(second) > max_tokens:
        (first if len(first) > len(second) else second).pop()
    return first, second


def test_pairs_are_cut_as_google_cuts_them():
    for first in range(9):
        for second in range(9):
            for max_tokens in range(1, 19):
                expected = tuple(map(len, google_truncation(range(first), range(second), max_tokens)))
                assert kept_lengths(first, second, max_tokens) == expected, (first, second, max_tokens)


def test_a_row_holds_both_texts_between_their_control_tokens(small_tokenizer):
    rows = rows_from_texts(small_tokenizer, ["the cats ran", "a mat"], ["in rain", "red"], pad_to=10)
    tokens = [[small_tokenizer.vocabulary[index] for index in row] for row in rows["token_ids"]]
    assert tokens[0] == "[CLS] the cat ##s ran [SEP] in rain [SEP] [PAD]".split()
    assert tokens[1] == "[CLS] a mat [SEP] red [SEP] [PAD] [PAD] [PAD] [PAD]".split()
    assert rows["segment_ids"].tolist() == [[0] * 6 + [1] * 3 + [0], [0] * 4 + [1] * 2 + [0] * 4]
    assert rows["padding_mask"].tolist() == [[1] * 9 + [0], [1] * 6 + [0] * 4]


def test_rows_of_pairs_are_cut_as_google_cuts_them(small_tokenizer):
    first, second = "the cat sat on a mat", "red blue rain"
    ids = [small_tokenizer.encode(text, add_special_tokens=False).ids for text in (first, second)]
    for sequence_length in range(4, 13):
        kept = google_truncation(*ids, sequence_length - 3)
        cls, sep = small_tokenizer.cls_id, small_tokenizer.sep_id
        rows = rows_from_texts(small_tokenizer, [first], [second], sequence_length)
        expected = [cls, *kept[0], sep, *kept[1], sep]
        assert rows["token_ids"][0][: len(expected)].tolist() == expected
        assert rows["padding_mask"].sum() == len(expected)


@pytest.mark.parametrize("words, length", [(1, 32), (30, 32), (31, 64), (61, 64), (62, 64), (63, 70), (200, 70)])
def test_rows_are_padded_to_a_multiple_of_32_and_cut_at_the_sequence_length(words, length, small_tokenizer):
    rows = rows_from_texts(small_tokenizer, ["cat " * words], sequence_length=70)
    assert rows["token_ids"].shape == (1, length)
    assert rows["padding_mask"].sum() == min(words + 2, 70)


def test_a_sequence_without_room_for_text_is_refused(small_tokenizer):
    with pytest.raises(ValueError, match="sequence_length 3 leaves no room"):
        rows_from_texts(small_tokenizer, ["a"], ["a"], sequence_length=3)


WORDS = 1000
CLS, SEP, PAD, MASK = 2, 3, 0, 4


@pytest.fixture(scope="module")
def masked():
    """A million tokens in 8,000 rows of 125, with 1 to 50 padding tokens per row, before and after masking."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer = WordPieceTokenizer([*special, *(f"word{index}" for index in range(WORDS - len(special)))])
    random = np.random.default_rng(1)
    token_ids = random.integers(5, WORDS, (8000, 125)).astype("int32")
    lengths = random.integers(75, 125, 8000)
    place = np.arange(125)
    token_ids[:, 0] = CLS
    token_ids[(place == lengths[:, None] - 1) | (place == lengths[:, None] // 2)] = SEP
    token_ids[place >= lengths[:, None]] = PAD
    rows = {"token_ids": token_ids, "padding_mask": (place < lengths[:, None]).astype("int32")}
    inputs, mask_ids, mask_weights = Masking(tokenizer, seed=1)(rows, epoch=0)
    return rows, inputs, mask_ids, mask_weights


def chosen(rows, inputs, mask_weights):
    """(row, column) of every prediction, as two vectors."""
    row, prediction = np.nonzero(mask_weights)
    return row, inputs["mask_positions"][row, prediction]


def assert_binomial(count, trials, rate):
    """Asserts a count within five standard deviations, which correct code misses once in two million runs."""
    assert abs(count - trials * rate) < 5 * np.sqrt(trials * rate * (1 - rate)), count / trials


def test_fifteen_percent_of_each_row_are_predicted(masked):
    rows, _, _, mask_weights = masked
    np.testing.assert_array_equal(mask_weights.sum(1), np.round(0.15 * rows["padding_mask"].sum(1)))


def test_control_tokens_and_padding_are_never_chosen(masked):
    rows, inputs, _, mask_weights = masked
    assert rows["token_ids"][chosen(rows, inputs, mask_weights)].min() >= 5


def test_labels_are_what_stood_there(masked):
    rows, inputs, mask_ids, mask_weights = masked
    originals = rows["token_ids"][chosen(rows, inputs, mask_weights)]
    np.testing.assert_array_equal(mask_ids[mask_weights > 0], originals)


def test_tokens_that_are_not_predicted_stay(masked):
    rows, inputs, _, mask_weights = masked
    restored = inputs["token_ids"].copy()
    place = chosen(rows, inputs, mask_weights)
    restored[place] = rows["token_ids"][place]
    np.testing.assert_array_equal(restored, rows["token_ids"])


def test_positions_ascend_without_repetition_and_padding_is_zero(masked):
    _, inputs, mask_ids, mask_weights = masked
    positions = inputs["mask_positions"]
    steps = np.diff(positions, axis=1)[mask_weights[:, 1:] > 0]
    assert steps.min() > 0
    assert positions[mask_weights == 0].max() == mask_ids[mask_weights == 0].max() == 0


def test_eighty_percent_are_shown_as_mask_and_ten_percent_as_they_were(masked):
    rows, inputs, mask_ids, mask_weights = masked
    shown, originals = inputs["token_ids"][chosen(rows, inputs, mask_weights)], mask_ids[mask_weights > 0]
    # A random word is [MASK] or the original once in a thousand times.
    assert_binomial((shown == MASK).sum(), len(shown), 0.8 + 0.1 / WORDS)
    assert_binomial((shown == originals).sum(), len(shown), 0.1 + 0.1 / WORDS)


def test_random_words_come_from_the_whole_vocabulary(masked):
    rows, inputs, mask_ids, mask_weights = masked
    shown, originals = inputs["token_ids"][chosen(rows, inputs, mask_weights)], mask_ids[mask_weights > 0]
    words = shown[(shown != MASK) & (shown != originals)]
    assert_binomial((words < WORDS // 2).sum(), len(words), 0.5)
    assert set(range(WORDS)) - set(words.tolist()) == {MASK}


def test_every_place_of_a_row_is_equally_likely(masked):
    rows, inputs, _, mask_weights = masked
    _, columns = chosen(rows, inputs, mask_weights)
    columns = columns[columns < 30]  # words in every row except at the first position; a separator is at 37 or later
    for place in range(1, 30):
        assert_binomial((columns == place).sum(), len(columns), 1 / 29)


def test_a_row_without_words_has_nothing_to_predict(small_tokenizer):
    rows = rows_from_texts(small_tokenizer, ["", "the cat"], pad_to=7)
    _, _, mask_weights = Masking(small_tokenizer, seed=0)(rows, epoch=0)
    assert mask_weights.sum(1).tolist() == [0, 1]
