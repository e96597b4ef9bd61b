import collections

import numpy as np
import pytest
from hostile_texts import HOSTILE_TEXTS, mixed_texts
from made_text import lists
from tiers import once

from keras_bert_impl import WordPieceTokenizer
from keras_bert_impl.corpora import Document
from keras_bert_impl.preprocessing.phrases import MARK
from keras_bert_impl.preprocessing.ragged import Ragged
from keras_bert_impl.preprocessing.sentence_ids import document_ids
from keras_bert_impl.preprocessing.tagged_phrases import mark_spans, pieces_of_span
from keras_bert_impl.tokenizers.vocabulary import SPECIAL_TOKENS

pytestmark = once

TOKENIZER = WordPieceTokenizer([*SPECIAL_TOKENS, *"new york ##er times square city the in . - ' s a ##b".split()])


def ids_of(documents):
    rows = document_ids(TOKENIZER)([document.sentences for document in documents])
    return Ragged(rows, np.array([len(document.sentences) for document in documents]))


def marked(*texts):
    """The tokens of documents, with "+" before those that go on with a phrase, and what became of the phrases.

    Args:
        texts: a document each: its sentences joined by "|", and its spans of characters.
    """
    documents = [Document("a", "a", text.split("|"), spans) for text, spans in texts]
    ids = ids_of(documents)
    result, found = mark_spans(TOKENIZER, documents, ids)
    assert [index & (MARK - 1) for index in result.flat_values] == ids.flat_values.tolist()
    assert result.lengths is ids.lengths and result.values.lengths is ids.values.lengths
    shown = [
        " ".join("+" * (index >= MARK) + TOKENIZER.vocabulary[index & (MARK - 1)] for index in sentence)
        for sentence in lists(result.values)
    ]
    return shown, dict(found)


def test_a_phrase_is_marked_only_where_it_stands():
    shown, found = marked(("New York in|The New York City.", [(16, 24)]), ("", []), ("New York", [(0, 8)]))
    assert shown == ["new york in", "the new +york city .", "", "new +york"]
    assert found == {"marked": 2}


def test_a_part_of_a_word_stands_for_the_whole_word():
    shown, found = marked(("in New-Yorker's Times", [(5, 9)]), ("Yorker", [(0, 4)]), ("New Times", [(0, 9)]))
    assert shown == ["in new +- +york +##er ' s times", "york +##er", "new +times"]
    assert found == {"marked": 3, "extended": 2}


def test_of_phrases_that_overlap_the_longest_is_marked_and_of_equal_ones_the_first():
    shown, found = marked(
        ("New York Times Square City", [(4, 21), (0, 8), (4, 8), (4, 21), (22, 26)]), ("a New York", [(2, 10), (0, 5)])
    )
    assert shown == ["new york +times +square city", "a +new york"]
    assert found == {"marked": 3, "overlapping": 4}


def test_phrases_across_sentences_or_without_tokens_are_counted():
    text, spans = "in|a city \u200d .", [(0, 4), (0, 2), (3, 9), (10, 11), (0, 0)]
    assert marked((text, spans)) == (["in", "a +city ."], {"marked": 2, "across_sentences": 1, "without_tokens": 2})
    # The end of a sentence belongs to it, and the next begins behind the line break.
    assert marked(("in|a", [(0, 2), (3, 4)]))[1] == {"marked": 2}
    assert marked(("in|a", [(1, 4)]))[1] == {"across_sentences": 1}


def test_ids_of_another_tokenizer_are_refused():
    document = Document("a", "a", ["in a city"], [(0, 4)])
    ids = ids_of([document._replace(sentences=["in the city"])])
    with pytest.raises(RuntimeError, match="other ids than those in which phrases are to be marked: 'in a city'"):
        mark_spans(TOKENIZER, [document], ids)


@pytest.mark.parametrize("lowercase", [True, False])
def test_pieces_of_a_phrase_are_those_of_a_search_of_all_pieces(lowercase):
    texts = [" ".join(text.split()) for text in HOSTILE_TEXTS if len(text) < 1000] + mixed_texts(200)
    letters = sorted({letter for text in texts for letter in text + text.lower() if letter.isalpha()})
    tokenizer = WordPieceTokenizer([*SPECIAL_TOKENS, *letters, *(f"##{letter}" for letter in letters)], lowercase)
    random, found = np.random.default_rng(0), collections.Counter()
    for text, encoding in zip(texts, tokenizer.encode_batch(texts, add_special_tokens=False), strict=True):
        offsets, words = np.array(encoding.offsets).reshape(-1, 2), tokenizer.word_numbers(text, encoding)
        for start, length in random.integers(0, [len(text) or 1, 9], (10, 2)).tolist():
            end = start + length + 1
            touched = set(words[(offsets[:, 0] < end) & (offsets[:, 1] > start)].tolist())
            pieces = pieces_of_span(offsets, words, (start, end))
            places = [place for place, word in enumerate(words) if word in touched]
            assert list(range(*pieces[:2])) == places if pieces else not touched
            found[pieces and pieces[2]] += 1
    assert all(found[outcome] > 20 for outcome in (None, False, True))
