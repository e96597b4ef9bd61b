"""Text to documents of sentences, without TensorFlow: the embedded default corpus, or a person's own files."""

from keras_bert_impl.corpora.document import CorpusStatistics, Document, corpus_statistics, split_of
from keras_bert_impl.corpora.python_docs import PythonDocsCorpus
from keras_bert_impl.corpora.sentences import split_sentences
from keras_bert_impl.corpora.text_files import Problem, TextCorpus

__all__ = [
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


def open_corpus(path=None, on_error="skip", sentences="auto", text_field="text"):
    """`PythonDocsCorpus` without a path, `TextCorpus` for a file, folder or glob with these arguments."""
    if path is None:
        return PythonDocsCorpus()
    return TextCorpus(path, on_error=on_error, sentences=sentences, text_field=text_field)
