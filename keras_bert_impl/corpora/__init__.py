"""Turns text into documents of sentences, without TensorFlow: the default corpus or the user's own text files."""

from keras_bert_impl.corpora.document import CorpusStatistics, Document, corpus_statistics, split_of
from keras_bert_impl.corpora.python_docs import PythonDocsCorpus
from keras_bert_impl.corpora.sentences import LANGUAGES_WITH_RULES, split_sentences
from keras_bert_impl.corpora.text_files import Problem, TextCorpus

__all__ = [
    "LANGUAGES_WITH_RULES",
    "CorpusStatistics",
    "Document",
    "Problem",
    "PythonDocsCorpus",
    "TextCorpus",
    "corpus_statistics",
    "open_corpus",
    "split_of",
    "split_sentences",
]


def open_corpus(path=None, on_error="skip", text_format="auto", text_field="text", language="en"):
    """A `PythonDocsCorpus` without a path; otherwise a `TextCorpus` of a file, folder or glob, with these arguments.

    Raises: ValueError if there is no path, but an argument about text files differs from its default.
    """
    if path is not None:
        return TextCorpus(path, on_error, text_format, text_field, language)
    given = {
        "text_format": (text_format, "auto"),
        "text_field": (text_field, "text"),
        "language": (language, "en"),
    }
    for name, (value, default) in given.items():
        if value != default:
            raise ValueError(
                f'{name} is "{value}", but there are no text files to read: give their path, or leave {name} out.'
            )
    return PythonDocsCorpus()
