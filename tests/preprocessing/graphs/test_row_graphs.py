import re
import types

import numpy as np
import pytest
import tensorflow as tf
from tiers import on

from keras_bert_impl.preprocessing.graphs.rows import pack, truncate_pairs
from keras_bert_impl.text.tokenizers.rows import BERT_ROWS

pytestmark = on("tensorflow")

CLS, SEP, PAD = 101, 102, 9
TOKENIZER = types.SimpleNamespace(cls_id=CLS, sep_id=SEP, pad_id=PAD, template=BERT_ROWS)


def ragged(rows):
    return tf.ragged.constant(rows, dtype=tf.int32, ragged_rank=1)


def random_pairs(num_pairs, longest=9):
    generator = np.random.default_rng(0)
    lengths = generator.integers(0, longest + 1, (2, num_pairs))
    return [[generator.integers(1, 100, length).tolist() for length in segment] for segment in lengths]


def google_truncate(a, b, max_tokens):
    """`_truncate_seq_pair` of google-research/bert's run_classifier.py."""
    a, b = list(a), list(b)
    while len(a) + len(b) > max_tokens:
        (a if len(a) > len(b) else b).pop()
    return a, b


@pytest.mark.parametrize("max_tokens", [0, 1, 2, 5, 6, 7, 13])
def test_longest_first_is_googles_loop(max_tokens):
    first, second = random_pairs(300)
    a, b = truncate_pairs(ragged(first), ragged(second), max_tokens, "longest_first")
    expected = [google_truncate(*pair, max_tokens) for pair in zip(first, second, strict=True)]
    assert list(zip(a.to_list(), b.to_list(), strict=True)) == expected


def test_only_second_keeps_the_first_whole():
    first, second = [[1, 2, 3], [1], [1, 2, 3, 4, 5]], [[6, 7, 8], [6, 7, 8], [6]]
    a, b = truncate_pairs(ragged(first), ragged(second), 5, "only_second")
    assert a.to_list() == first
    assert b.to_list() == [[6, 7], [6, 7, 8], []]


def test_only_second_refuses_a_first_segment_that_is_too_long():
    complaint = "longer than the 2 tokens that fit in a pair, and 'only_second' does not truncate it: shorten it"
    with pytest.raises(tf.errors.InvalidArgumentError, match=complaint):
        pack(TOKENIZER, ragged([[1], [1, 2, 3]]), ragged([[6], [7]]), 5, rule="only_second")


def test_pair_is_laid_out_as_in_figure_2():
    rows = pack(TOKENIZER, ragged([[1, 2], [3]]), ragged([[4], [5, 6, 7]]), 7)
    assert rows["token_ids"].numpy().tolist() == [[CLS, 1, 2, SEP, 4, SEP, PAD], [CLS, 3, SEP, 5, 6, 7, SEP]]
    assert rows["segment_ids"].numpy().tolist() == [[0, 0, 0, 0, 1, 1, 0], [0, 0, 0, 1, 1, 1, 1]]
    assert rows["padding_mask"].numpy().tolist() == [[1, 1, 1, 1, 1, 1, 0], [1, 1, 1, 1, 1, 1, 1]]


def test_single_segment_loses_its_end_and_is_padded_with_the_given_id():
    rows = pack(TOKENIZER, ragged([[1, 2, 3, 4], [], [5]]), None, 5)
    assert rows["token_ids"].numpy().tolist() == [
        [CLS, 1, 2, 3, SEP],
        [CLS, SEP, PAD, PAD, PAD],
        [CLS, 5, SEP, PAD, PAD],
    ]
    assert rows["segment_ids"].numpy().sum() == 0
    assert rows["padding_mask"].numpy().sum(axis=1).tolist() == [5, 2, 3]


@pytest.mark.parametrize(
    ("second", "sequence_length", "complaint"),
    [
        (None, 1, "sequence_length 1 leaves no room for text after 2 control tokens."),
        ([[1]], 2, "sequence_length 2 leaves no room for text after 3 control tokens."),
    ],
)
def test_rows_too_short_for_special_tokens_are_refused(second, sequence_length, complaint):
    with pytest.raises(ValueError, match=re.escape(complaint)):
        pack(TOKENIZER, ragged([[1]]), second and ragged(second), sequence_length)
