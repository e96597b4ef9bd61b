"""Made-up documents, and their tokens as the jobs of `preprocessing.shards` read them."""

import numpy as np
import tensorflow as tf
from conftest import WORDS

from keras_bert_impl import WordPieceTokenizer
from keras_bert_impl.corpora import Document
from keras_bert_impl.preprocessing.wordpiece import WordPiece

TOKENIZER = WordPieceTokenizer(WORDS)


def documents(count):
    random = np.random.default_rng(0)
    words = [word for word in WORDS[5:] if word.isalpha()]
    for number in range(count):
        sentences = [" ".join(random.choice(words, random.integers(3, 9))) for _ in range(random.integers(2, 9))]
        yield Document(name=f"document {number}", source="test", sentences=sentences)


def tokens(count):
    """RaggedTensor (documents, sentences, tokens)."""
    texts = [document.sentences for document in documents(count)]
    rows = WordPiece(TOKENIZER)([sentence for sentences in texts for sentence in sentences])
    return tf.RaggedTensor.from_row_lengths(rows, [len(sentences) for sentences in texts])
