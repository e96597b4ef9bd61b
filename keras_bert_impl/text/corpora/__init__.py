"""Turns text into documents of sentences, without TensorFlow: the default corpus or the user's own text files."""

from keras_bert_impl.text.corpora.document import Document, split_of
from keras_bert_impl.text.corpora.python_docs import PythonDocsCorpus
from keras_bert_impl.text.corpora.sentences import LANGUAGES_WITH_RULES, split_sentences
from keras_bert_impl.text.corpora.text_files import Problem, TextCorpus

__all__ = [
    "LANGUAGES_WITH_RULES",
    "Document",
    "Problem",
    "PythonDocsCorpus",
    "TextCorpus",
    "open_corpus",
    "split_of",
    "split_sentences",
]


def open_corpus(path=None, on_error="skip", text_format="auto", text_field="text", language="en"):
    """A `PythonDocsCorpus` without a path; otherwise a `TextCorpus` of a file, folder or glob, with these arguments."""
    return PythonDocsCorpus() if path is None else TextCorpus(path, on_error, text_format, text_field, language)
