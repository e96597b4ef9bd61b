"""Sentences to ids, many at a time, by the fastest library that is installed."""

import functools
import importlib.util

import numpy as np

from keras_bert_impl.preprocessing.phrases import segmented_ids
from keras_bert_impl.preprocessing.ragged import Ragged
from keras_bert_impl.tokenizers import WordPieceTokenizer


def sentence_ids(tokenizer):
    """A function from a list of sentences to their ids, int32 `Ragged` (sentences, tokens), without [CLS] and [SEP].

    Of a WordPieceTokenizer it is `wordpiece.WordPiece`, if tensorflow_text is installed: the ids are the same, and
    TensorFlow's kernels are several times as fast. Otherwise it is the tokenizer itself.
    """
    if not isinstance(tokenizer, WordPieceTokenizer) or importlib.util.find_spec("tensorflow_text") is None:
        return functools.partial(ids_without_tensorflow, tokenizer)
    from keras_bert_impl.text_graphs.wordpiece import WordPiece

    wordpiece = WordPiece(tokenizer)

    def by_tensorflow(sentences):
        rows = wordpiece(sentences)
        return Ragged(rows.flat_values.numpy(), rows.row_lengths().numpy())

    return by_tensorflow


def document_ids(tokenizer, segmented=False):
    """A function from documents, lists of sentences, to the ids of all their sentences, as `sentence_ids` gives them:
    those that the sentences have in running text. With `segmented`, they are marked, see `phrases.segmented_ids`."""
    ids_of = sentence_ids(tokenizer)
    if segmented:
        ids_of = functools.partial(segmented_ids, ids_of)

    def of_documents(documents):
        return ids_of([sentence for document in documents for sentence in tokenizer.in_running_text(document)])

    return of_documents


def ids_without_tensorflow(tokenizer, sentences):
    """The ids of a list of sentences, see `sentence_ids`."""
    rows = tokenizer.ids_batch(sentences)
    lengths = np.array([len(row) for row in rows], np.int64)
    return Ragged(np.fromiter((index for row in rows for index in row), np.int32, lengths.sum()), lengths)
