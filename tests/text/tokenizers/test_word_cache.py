"""Ids by a cache of words, against Google's tokenizer."""

import concurrent.futures

import numpy as np
import pytest
from google_tokenization import google_ids
from hostile_texts import STEPS, against_google, mixed_texts, revealing_vocabulary
from tiers import full_but, once

from keras_bert_impl.text.tokenizers import WordPieceTokenizer, word_cache
from keras_bert_impl.text.tokenizers.word_cache import WordCache

pytestmark = once


def lists_of(rows):
    return [ids.tolist() for ids in np.split(rows.values, rows.offsets[1:-1])] if len(rows.lengths) else []


@pytest.mark.parametrize("lowercase", [True, False])
@pytest.mark.parametrize("step", full_but(STEPS, STEPS[0]))
def test_hostile_texts_and_code_points_give_googles_ids(step, lowercase):
    texts, tokenizer, expected = against_google(step, lowercase)
    cache = WordCache(tokenizer)
    assert lists_of(cache(texts)) == expected
    assert lists_of(cache(texts[::-1])) == expected[::-1]  # which are all remembered now
    assert tokenizer.ids_batch(texts) == expected
    assert "word_cache" in vars(tokenizer)


def test_ids_do_not_depend_on_what_is_forgotten(monkeypatch):
    too_long = "x" * 201  # for a word, even if the vocabulary holds it
    texts = [too_long, *mixed_texts(100)]
    tokenizer = WordPieceTokenizer([*revealing_vocabulary(texts, True), too_long])
    expected = google_ids(texts, tokenizer)
    monkeypatch.setattr(word_cache, "MOST_WORDS", 20)
    cache = WordCache(tokenizer)
    found = [ids for start in range(0, len(texts), 7) for ids in lists_of(cache(texts[start : start + 7]))]
    assert found == expected


def test_what_cannot_be_encoded_is_not_remembered():
    texts = mixed_texts(100)
    tokenizer = WordPieceTokenizer(revealing_vocabulary(texts, True))
    with pytest.raises((TypeError, UnicodeEncodeError)):
        tokenizer.ids_batch([*texts, "a lone \udc80 surrogate"])
    assert tokenizer.ids_batch(texts) == google_ids(texts, tokenizer)


def test_threads_share_the_words_remembered(monkeypatch):
    texts = mixed_texts(600)
    tokenizer = WordPieceTokenizer(revealing_vocabulary(texts, True))
    expected = google_ids(texts, tokenizer)
    monkeypatch.setattr(word_cache, "MOST_WORDS", 300)  # it also forgets
    parts = [slice(start, start + 40) for start in range(0, 600, 5)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda part: tokenizer.ids_batch(texts[part]), parts))
    assert found == [expected[part] for part in parts]
