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
    """Opens text files as documents of sentences; without a path, the docstrings of installed packages.

    Args:
        path (str or pathlib.Path, optional): file, folder or glob. Default: None, a `PythonDocsCorpus`.
        on_error (str, optional): as in `TextCorpus`. Default: "skip".
        text_format (str, optional): as in `TextCorpus`. Default: "auto".
        text_field (str, optional): as in `TextCorpus`. Default: "text".
        language (str, optional): as in `TextCorpus`. Default: "en".

    Returns: a `TextCorpus` or a `PythonDocsCorpus`; iterate over it for documents.
    """
    return PythonDocsCorpus() if path is None else TextCorpus(path, on_error, text_format, text_field, language)
