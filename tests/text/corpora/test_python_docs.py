import sys

import pytest
from tiers import once

from keras_bert_impl.text.corpora import PythonDocsCorpus
from keras_bert_impl.text.corpora.python_docs import docstrings

pytestmark = once


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package on the path that fails when it is imported."""
    files = {
        "__init__.py": '"""The package for the tests. It is small."""\nraise RuntimeError("imported")',
        "maths.py": '"""This is about the numbers.\n\nIt is small."""\ndef add():\n    """Returns the sum of it."""\n',
        "deep/__init__.py": '"""one"""',
        "deep/text.py": '"""All of this is text."""\nclass Text:\n    """Returns the sum of it."""\n',
        "tests/test_maths.py": '"""Tests of the maths in the package."""\n',
        "broken.py": '"""This is the syntax of Python 2."""\nprint "x"\n',
    }
    for name, text in files.items():
        path = tmp_path / "kbi_documented" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    return "kbi_documented"


def test_modules_become_documents_in_sorted_order_without_being_imported(package):
    documents = list(PythonDocsCorpus(packages=(package,)))
    assert [document.name for document in documents] == [
        "kbi_documented",
        "kbi_documented.deep.text",
        "kbi_documented.maths",
    ]
    assert {document.source for document in documents} == {"kbi_documented"}
    assert package not in sys.modules


def test_a_sentence_stands_once_in_the_corpus(package):
    corpus = PythonDocsCorpus(packages=(package,))
    assert [document.sentences for document in corpus] == [
        ["The package for the tests.", "It is small."],
        ["All of this is text.", "Returns the sum of it."],
        ["This is about the numbers."],
    ]
    assert corpus.duplicate_sentences == 2


def test_docstrings_of_nested_definitions_come_in_source_order():
    source = b'''"""module"""
class A:
    "one line in other quotes"
    def f(self):
        """method"""
        if True:
            def g():
                """nested"""
async def h():
    """coroutine"""
'''
    assert list(docstrings(source)) == ["module", "one line in other quotes", "method", "nested", "coroutine"]


def test_missing_package_is_named_in_a_warning_and_skipped(package):
    with pytest.warns(UserWarning, match="Packages that are not installed are skipped: kbi_absent"):
        corpus = PythonDocsCorpus(packages=("kbi_absent", package))
    assert len(list(corpus)) == 3


def test_no_package_at_all_is_an_error_with_a_remedy():
    with pytest.raises(ValueError, match=r"kbi_absent.*Install one of them, or give a path"):
        PythonDocsCorpus(packages=("kbi_absent",))
