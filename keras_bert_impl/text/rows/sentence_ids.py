"""Sentences to ids, many at a time."""

import functools

from keras_bert_impl.text.ragged import of_lists
from keras_bert_impl.text.tokenizers import WordPieceTokenizer


def sentence_ids(tokenizer):
    """A function from a list of sentences to their ids, int32 `Ragged` (sentences, tokens), without [CLS] and [SEP]."""
    if isinstance(tokenizer, WordPieceTokenizer) and not tokenizer.added_tokens:
        return tokenizer.word_cache
    return functools.partial(ids_of_tokenizer, tokenizer)


def document_ids(tokenizer):
    """A function from documents, lists of sentences, to the ids of all their sentences, as `sentence_ids` gives them:
    those that the sentences have in running text."""
    ids_of = sentence_ids(tokenizer)

    def of_documents(documents):
        return ids_of([sentence for document in documents for sentence in tokenizer.in_running_text(document)])

    return of_documents


def ids_of_tokenizer(tokenizer, sentences):
    """The ids of a list of sentences by the tokenizer itself, see `sentence_ids`."""
    return of_lists(tokenizer.ids_batch(sentences))
