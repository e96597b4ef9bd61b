import collections
from itertools import chain

import numpy as np
import pytest
from made_text import TOKENIZER, lists, ragged
from tiers import once

from keras_bert_impl.text.ragged import Ragged
from keras_bert_impl.text.rows.next_sentence import (
    chunk_documents,
    cut_sentences,
    target_lengths,
)
from keras_bert_impl.text.rows.pretraining_rows import RowFormat, _rows_of_pairs

pytestmark = once

# Documents of 3, 1 and 2 sentences; every token is a different number, so that it can be traced.
SMALL = [[[0, 1], [2, 3, 4], [5]], [[6, 7, 8]], [[9], [10, 11]]]


def random_block(num_documents, most_sentences=20, longest_sentence=30):
    """A block in which token i of the text is the number i."""
    generator = np.random.default_rng(0)
    sentences = generator.integers(1, most_sentences + 1, num_documents)
    lengths = generator.integers(1, longest_sentence + 1, sentences.sum())
    return Ragged(Ragged(np.arange(lengths.sum(), dtype=np.int32), lengths), sentences)


Pairs = collections.namedtuple("Pairs", "first_range second_range next_sentence_labels first_document second_document")


def chunk(documents, target_length=61, short_sequence_probability=0.0, seed=1, number=0):
    """The pairs, with the numbers of the documents that their segments are from."""
    ranges, labels = chunk_documents(documents, target_length, short_sequence_probability, seed, number)
    ends = documents.values.offsets[documents.offsets[1:]]
    (first, second), of = np.moveaxis(ranges, 1, 0), np.searchsorted(ends, ranges[..., 0], side="right")
    return Pairs(first, second, labels, of[:, 0], of[:, 1])


def one_token_sentences(num_documents, num_sentences):
    """A block of documents with these numbers of sentences of one token each."""
    sentences = Ragged(np.arange(num_documents * num_sentences), np.ones(num_documents * num_sentences, int))
    return Ragged(sentences, np.full(num_documents, num_sentences))


def google_chunks(sentences, target_length, splits_and_random):
    """`create_instances_from_document` of google-research/bert, with its random numbers as arguments.

    Yields the tokens of each first segment and of the second that follows it, None where it is random.
    """
    chunk, length, i = [], 0, 0
    while i < len(sentences):
        chunk.append(sentences[i])
        length += len(sentences[i])
        if i == len(sentences) - 1 or length >= target_length:
            first_length, is_random = next(splits_and_random)
            a_end = int(np.searchsorted(np.cumsum([len(s) for s in chunk]), first_length)) + 1
            yield list(chain(*chunk[:a_end])), None if is_random else list(chain(*chunk[a_end:]))
            if is_random:
                i -= len(chunk) - a_end
            chunk, length = [], 0
        i += 1


@pytest.mark.parametrize("target_length", [2, 7, 31, 125])
def test_chunks_are_those_of_googles_loop(target_length):
    documents = random_block(30)
    pairs = chunk(documents, target_length)
    # Token i of the text is the number i.
    first, second = ([list(range(*ends)) for ends in ranges] for ranges in (pairs.first_range, pairs.second_range))
    is_random = pairs.next_sentence_labels.tolist()
    draws = zip(map(len, first), is_random, strict=True)
    expected = [c for sentences in lists(documents) for c in google_chunks(sentences, target_length, draws)]
    ours = [(a, None if random else b) for a, b, random in zip(first, second, is_random, strict=True)]
    assert ours == expected


def test_second_segment_follows_or_comes_from_another_document():
    documents = random_block(30)
    pairs = chunk(documents)
    follows = pairs.next_sentence_labels == 0
    assert follows.any() and not follows.all()
    np.testing.assert_array_equal(pairs.second_range[follows, 0], pairs.first_range[follows, 1])
    np.testing.assert_array_equal(pairs.second_document == pairs.first_document, follows)


def test_half_of_the_chunks_with_several_sentences_are_random():
    # Two tokens a sentence and a target of 60: only the last sentence of a document ever stands alone.
    documents = Ragged(Ragged(np.arange(1000 * 600), np.full(300_000, 2)), np.full(1000, 300))
    pairs = chunk(documents, target_length=60)
    reaches_target = np.diff(pairs.first_range).ravel() > 2
    labels = pairs.next_sentence_labels[reaches_target]
    assert len(labels) > 10_000
    assert abs(labels.mean() - 0.5) < 5 * 0.5 / np.sqrt(len(labels))


def test_every_other_document_is_equally_likely():
    # 5 documents of 4000 sentences with one token each; with target 2 a chunk has two sentences.
    documents = one_token_sentences(5, 4000)
    pairs = chunk(documents, target_length=2)
    is_random = pairs.next_sentence_labels == 1
    counts = np.zeros([5, 5])
    np.add.at(counts, (pairs.first_document[is_random], pairs.second_document[is_random]), 1)
    assert not counts.diagonal().any()
    expected = counts.sum(axis=1, keepdims=True) / 4 * (1 - np.eye(5))
    assert (np.abs(counts - expected) < 5 * np.sqrt(expected) + 1e-9).all()


def test_share_of_short_documents_is_the_probability():
    # A document of 40 sentences of one token is one chunk of 40, unless it is short or its second is random.
    documents = one_token_sentences(5000, 40)
    pairs = chunk(documents, target_length=39, short_sequence_probability=0.25)
    first_chunks = np.unique(pairs.first_document, return_index=True)[1]
    follows = pairs.next_sentence_labels[first_chunks] == 0
    length = np.diff(pairs.first_range)[first_chunks][follows] + np.diff(pairs.second_range)[first_chunks][follows]
    # Of the short ones one in 38 draws the full 39.
    expected = 0.25 * 37 / 38
    assert abs((length < 39).mean() - expected) < 5 * np.sqrt(expected * (1 - expected) / len(length))
    assert length.min() == 2 and length.max() == 39


def test_the_pairs_of_a_seed_are_the_same_in_every_version():
    assert target_lengths(12, 9, 0.5, seed=1, number=3).tolist() == [3, 9, 9, 9, 6, 4, 7, 2, 2, 9, 2, 3]
    # Three documents of 10, 5 and 11 tokens in sentences of 2, 3, 1, 4 | 3, 2 | 5, 1, 2, 3; half of them cut short.
    sentences = Ragged(np.arange(26), np.array([2, 3, 1, 4, 3, 2, 5, 1, 2, 3]))
    documents = Ragged(sentences, np.array([4, 2, 4]))
    pairs = chunk(documents, 7, 0.5, seed=1, number=3)
    firsts = [[0, 2], [2, 5], [5, 6], [6, 10], [10, 13], [13, 15], [15, 20], [20, 23]]
    seconds = [[13, 15], [21, 23], [15, 20], [23, 26], [6, 10], [5, 10], [5, 10], [23, 26]]
    assert (pairs.first_range.tolist(), pairs.second_range.tolist()) == (firsts, seconds)
    assert pairs.next_sentence_labels.tolist() == [1, 1, 1, 1, 1, 1, 1, 0]
    assert pairs.next_sentence_labels.dtype == np.int32
    pairs = chunk(documents, 7, 0.5, seed=5, number=3)
    assert pairs.first_range.tolist() == [[0, 6], [10, 13], [15, 21], [21, 23]]
    assert pairs.second_range.tolist() == [[6, 10], [13, 15], [2, 5], [23, 26]]


def test_empty_sentences_and_documents_are_skipped():
    with_empty = [[[]], *SMALL[:1], [], [[], *SMALL[1], []], [SMALL[2][0], [], SMALL[2][1]]]
    for ours, expected in zip(chunk(ragged(with_empty), 5)[:3], chunk(ragged(SMALL), 5)[:3], strict=True):
        np.testing.assert_array_equal(ours, expected)


def test_one_document_is_refused():
    with pytest.raises(
        ValueError, match="at least two documents, found 1 in file 3: give more text, or put a blank line"
    ):
        chunk(ragged([[[1, 2], [3]], [[]]]), number=3)


def test_sentences_longer_than_a_pair_are_cut_in_halves_of_one():
    documents = ragged([[list(range(11)), [11, 12]], [list(range(20, 25))]])
    assert lists(cut_sentences(documents, 5)) == [
        [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10], [11, 12]],
        [list(range(20, 25))],
    ]
    assert lists(cut_sentences(documents, 11)) == lists(documents)


def test_text_without_sentence_marks_gives_pairs_of_both_kinds_that_hold_nearly_all_of_it():
    generator = np.random.default_rng(0)
    lengths = generator.integers(300, 2000, 200)
    documents = Ragged(Ragged(np.arange(99, 99 + lengths.sum(), dtype=np.int32), lengths), np.ones(200, np.int64))
    count, rows_at, unused = _rows_of_pairs(
        documents, TOKENIZER, RowFormat(64, 10, short_sequence_probability=0.0), 1, 0
    )
    rows = rows_at(np.arange(count))
    assert 0.4 < rows["next_sentence_labels"].mean() < 0.6
    held = set(rows["input_ids"].values.tolist())
    assert unused == len(set(documents.flat_values.tolist()) - held) < 0.02 * lengths.sum()
