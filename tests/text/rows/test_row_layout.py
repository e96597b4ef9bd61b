import types

import numpy as np
import pytest
import tensorflow as tf
from tiers import on

from keras_bert_impl.preprocessing.graphs.rows import pack, truncate_pairs
from keras_bert_impl.text.rows.pretraining_rows import lay_out, truncate_at_random
from keras_bert_impl.text.rows.row_features import padded_rows
from keras_bert_impl.text.tokenizers.rows import BERT_ROWS, ROBERTA_ROWS

pytestmark = on("tensorflow")

CLS, SEP, PAD = 1001, 1002, 1000
TOKENS = np.arange(1000, dtype=np.int32)


def tokenizer_of(template):
    return types.SimpleNamespace(pad_id=PAD, cls_id=CLS, sep_id=SEP, template=template)


def padded(rows, length):
    numbers = dict.fromkeys(("next_sentence_labels", "example_index"), np.zeros(1))
    return padded_rows({**rows, **numbers}, length, tokenizer_of(BERT_ROWS))


def random_ranges(num_pairs, longest=9):
    generator = np.random.default_rng(0)
    starts = generator.integers(0, len(TOKENS) - longest, (num_pairs, 2))
    return np.stack([starts, starts + generator.integers(0, longest + 1, (num_pairs, 2))], axis=-1)


def ragged(ranges):
    return tf.ragged.constant([TOKENS[first:end].tolist() for first, end in ranges], tf.int32, ragged_rank=1)


@pytest.mark.parametrize("max_tokens", [2, 5, 7])
def test_truncation_at_random_keeps_the_lengths_of_longest_first_and_contiguous_tokens(max_tokens):
    ranges = random_ranges(300)
    kept = truncate_at_random(ranges, max_tokens, 1, 0, np.arange(300))
    expected = truncate_pairs(ragged(ranges[:, 0]), ragged(ranges[:, 1]), max_tokens, "longest_first")
    np.testing.assert_array_equal(np.diff(kept)[..., 0], np.stack([rows.row_lengths() for rows in expected], axis=1))
    assert (kept[..., 0] >= ranges[..., 0]).all() and (kept[..., 1] <= ranges[..., 1]).all()


@pytest.mark.parametrize("removed", [1, 10, 65, 500])  # a few coins, and several words of 64
def test_truncation_at_random_takes_front_and_back_with_equal_chance(removed):
    ranges = np.tile([[0, removed + 10]] * 2, [10_000, 1, 1])
    heads = truncate_at_random(ranges, 20, 1, 0, np.arange(10_000))[..., 0]
    # Binomial(removed, 1/2); 10,000 of them, hence five standard errors of the mean, and of the variance.
    variance = removed / 4
    np.testing.assert_allclose(heads.mean(axis=0), removed / 2, atol=5 * np.sqrt(variance / 10_000))
    np.testing.assert_allclose(heads.var(axis=0), variance, rtol=5 * np.sqrt(2 / 10_000))
    assert abs(np.corrcoef(heads.T)[0, 1]) < 0.05


def test_truncation_at_random_of_a_pair_does_not_depend_on_its_batch():
    ranges = random_ranges(7)
    together = truncate_at_random(ranges, 5, 1, 0, np.arange(7))
    np.testing.assert_array_equal(truncate_at_random(ranges[3:4], 5, 1, 0, np.arange(3, 4)), together[3:4])


def test_truncation_at_random_repeats_and_is_another_one_for_each_seed_and_epoch():
    ranges, index = np.tile([[0, 40]] * 2, [7, 1, 1]), np.arange(7)
    kept = truncate_at_random(ranges, 20, 1, 0, index)
    np.testing.assert_array_equal(truncate_at_random(ranges, 20, 1, 0, index), kept)
    for seed, epoch in ((2, 0), (1, 1)):
        assert (truncate_at_random(ranges, 20, seed, epoch, index) != kept).any()


@pytest.mark.parametrize("segments", [1, 2])
def test_rows_are_laid_out_as_those_of_other_inputs(segments):
    ranges = random_ranges(50)[:, :segments]
    second = ragged(ranges[:, 1]) if segments == 2 else None
    expected = pack(tokenizer_of(BERT_ROWS), ragged(ranges[:, 0]), second, 24)
    rows = padded(lay_out(TOKENS, ranges, tokenizer_of(BERT_ROWS)), 24)
    for name in ("token_ids", "segment_ids", "padding_mask"):
        np.testing.assert_array_equal(rows[name], expected[name], err_msg=name)


def test_pairs_of_roberta_have_two_separators_and_no_second_segment():
    ranges = np.array([[[0, 2], [3, 4]], [[5, 6], [0, 3]]])
    rows = lay_out(TOKENS, ranges, tokenizer_of(ROBERTA_ROWS))
    expected = [[CLS, *TOKENS[0:2], SEP, SEP, TOKENS[3], SEP], [CLS, TOKENS[5], SEP, SEP, *TOKENS[0:3], SEP]]
    assert [list(map(int, row)) for row in np.split(rows["input_ids"].values, [7])] == expected
    assert not padded(rows, 11)["segment_ids"].any()
    single = lay_out(TOKENS, ranges[:, :1], tokenizer_of(ROBERTA_ROWS))
    assert single["input_ids"].values.tolist() == [CLS, *TOKENS[0:2], SEP, CLS, TOKENS[5], SEP]
