"""Made-up documents, and their tokens as the jobs of `preprocessing.shards` read them."""

import itertools

import numpy as np
from conftest import WORDS

from keras_bert_impl import WordPieceTokenizer
from keras_bert_impl.text.corpora import Document
from keras_bert_impl.text.rows.ragged import Ragged

TOKENIZER = WordPieceTokenizer(WORDS)


def documents(count):
    random = np.random.default_rng(0)
    words = [word for word in WORDS[5:] if word.isalpha()]
    for number in range(count):
        sentences = [" ".join(random.choice(words, random.integers(3, 9))) for _ in range(random.integers(2, 9))]
        yield Document(name=f"document {number}", source="test", sentences=sentences)


def tokens(count):
    """`Ragged` (documents, sentences, tokens)."""
    texts = [document.sentences for document in documents(count)]
    rows = [TOKENIZER.encode(sentence, add_special_tokens=False).ids for sentences in texts for sentence in sentences]
    return Ragged(ragged(rows), np.array([len(sentences) for sentences in texts]))


def ragged(rows, dtype=np.int32):
    """Lists of numbers, or lists of lists of them, as `Ragged`."""
    lengths = np.array([len(row) for row in rows], np.int64)
    inner = [value for row in rows for value in row]
    return Ragged(ragged(inner, dtype) if inner and isinstance(inner[0], list) else np.array(inner, dtype), lengths)


def lists(rows):
    """The reverse of `ragged`."""
    inner = lists(rows.values) if isinstance(rows.values, Ragged) else rows.values.tolist()
    return [inner[start:end] for start, end in itertools.pairwise(rows.offsets.tolist())]
