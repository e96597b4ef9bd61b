"""Ids by a cache of words, against Google's tokenizer."""

import numpy as np
import pytest
from google_tokenization import google_ids
from hostile_texts import STEPS, against_google, mixed_texts, revealing_vocabulary
from tiers import full_but, once

from keras_bert_impl.text.rows import sentence_ids
from keras_bert_impl.text.rows.sentence_ids import WordCache
from keras_bert_impl.text.tokenizers import WordPieceTokenizer

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


def test_ids_do_not_depend_on_what_is_forgotten(monkeypatch):
    texts = mixed_texts(100)
    tokenizer = WordPieceTokenizer(revealing_vocabulary(texts, True))
    expected = google_ids(texts, tokenizer)
    monkeypatch.setattr(sentence_ids, "MOST_WORDS", 20)
    cache = WordCache(tokenizer)
    found = [ids for start in range(0, len(texts), 7) for ids in lists_of(cache(texts[start : start + 7]))]
    assert found == expected
