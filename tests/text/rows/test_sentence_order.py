import numpy as np
from made_text import ragged
from tiers import once

from keras_bert_impl.text.ragged import Ragged
from keras_bert_impl.text.rows.next_sentence import order_documents, running_sentences

pytestmark = once

SEP = 99
DOCUMENTS = ragged([[[1, 2, 3], [4, 5]], [[6]], [[7, 8], [9, 10, 11, 12, 13]]])


def many_documents(count=200):
    random = np.random.default_rng(0)
    lengths = [random.integers(1, 9, random.integers(1, 12)) for _ in range(count)]
    total = sum(map(sum, lengths))
    sentences = Ragged(np.arange(total), np.concatenate(lengths))
    return Ragged(sentences, np.array([len(sentence) for sentence in lengths]))


def test_segments_are_neighbours_and_half_of_them_swapped():
    documents = many_documents()
    ranges, labels = order_documents(documents, 20, 0.1, seed=3, number=0)
    for (a, b), swapped in zip(ranges, labels, strict=True):
        earlier, later = (b, a) if swapped else (a, b)
        assert earlier[1] == later[0]
    assert 0.4 < labels.mean() < 0.6


def test_no_text_is_lost_but_sentences_of_one_token_that_stand_alone():
    documents = many_documents()
    ranges, _ = order_documents(documents, 20, 0.1, seed=3, number=0)
    used = np.concatenate([np.arange(*ends) for ends in ranges.reshape(-1, 2)])
    assert len(used) == len(set(used)) > 0.99 * len(documents.flat_values)


def rows_of(documents, max_tokens, sep_id=None):
    tokens, ranges = running_sentences(documents, max_tokens, sep_id)
    return [tokens[first:end].tolist() for first, end in ranges]


def test_full_sentences_cross_documents_with_a_separator_between():
    rows = rows_of(DOCUMENTS, 6, sep_id=SEP)
    assert rows == [[1, 2, 3, 4, 5], [6, SEP, 7, 8], [9, 10, 11, 12, 13]]
    assert rows_of(DOCUMENTS, 8, sep_id=SEP) == [
        [1, 2, 3, 4, 5, SEP, 6],
        [7, 8, 9, 10, 11, 12, 13],
    ]


def test_doc_sentences_end_with_their_document():
    assert rows_of(DOCUMENTS, 7) == [[1, 2, 3, 4, 5], [6], [7, 8, 9, 10, 11, 12, 13]]


def test_a_sentence_longer_than_a_row_is_cut():
    rows = rows_of(DOCUMENTS, 3)
    assert rows == [[1, 2, 3], [4, 5], [6], [7, 8], [9, 10, 11], [12, 13]]


def test_running_sentences_lose_nothing():
    documents = many_documents()
    for sep_id in (None, -1):
        tokens = np.concatenate(rows_of(documents, 16, sep_id))
        np.testing.assert_array_equal(tokens[tokens != -1], documents.flat_values)
