import sys

import pytest
from tiers import once

from keras_bert_impl.text.corpora import PythonDocsCorpus
from keras_bert_impl.text.corpora.python_docs import sentences_of

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
        "old.py": '"""This is the syntax of Python 2."""\nprint "x"\n',
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
        "kbi_documented.old",
    ]
    assert {document.source for document in documents} == {"kbi_documented"}
    assert package not in sys.modules


def test_a_sentence_stands_once_in_the_corpus(package):
    corpus = PythonDocsCorpus(packages=(package,))
    assert [document.sentences for document in corpus] == [
        ["The package for the tests.", "It is small."],
        ["All of this is text.", "Returns the sum of it."],
        ["This is about the numbers."],
        ["This is the syntax of Python 2."],
    ]


NUMPYDOC = """norm(x, axis=None)

    Norm of a matrix or a vector.

    Parameters
    ----------
    x : array_like
        Input array of the norm, which
        is one or two-dimensional.
    axis : {None, int}, optional
        The axis of the array.

    See Also
    --------
    numpy.sum : Sum of the elements of an array."""
GOOGLE = """Adds two tensors of a kind.

    Args:
      x: A tensor of any type. It
        is not changed by this.
      **kwargs (dict): The rest of the arguments.

    Returns:
      A tensor of the type of x."""
MARKED = """See :class:`~keras.Model` and ``y`` or `z`, the **first** and *second* of them.

    >>> print("This is the output.")
    This is the output.

    ```python
    The comment is like the prose.
    ```
    And this is the end.

    1. The first of the items.
    - The second of the items."""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The sum of\n    all. This is cut\n\n    here, without an end", ["The sum of all."]),
        (NUMPYDOC, ["Norm of a matrix or a vector.", "Input array of the norm, which is one or two-dimensional.",
                    "The axis of the array."]),
        (GOOGLE, ["Adds two tensors of a kind.", "A tensor of any type.", "It is not changed by this.",
                  "The rest of the arguments.", "A tensor of the type of x."]),
        (MARKED, ["See keras.Model and y or z, the first and second of them.", "And this is the end.",
                  "The first of the items.", "The second of the items."]),
        ("Returns the shape of a tf.Tensor.", ["Returns the shape of a tf.Tensor."]),
        ("X = the_first(of_all).\n\nNumpy.sin, numpy.cos, numpy.tan.\n\nReturn the value if x == 3.", []),
        ("It is :math:`a_1 + b`.\n\n.. code-block:: python\n\n    For the x in y: print(it).", []),
        ("+-----+------+\n| The | rest |\n+-----+------+\n\n===  ====\nThe  size\n===  ====\n", []),
    ],
)  # fmt: skip
def test_of_a_docstring_the_sentences_are_kept_without_names_types_headings_and_code(text, expected):
    assert list(sentences_of(f'def f():\n    """{text}"""\n')) == expected


def test_missing_package_is_named_in_a_warning_and_skipped(package):
    with pytest.warns(UserWarning, match="Packages that are not installed are skipped: kbi_absent"):
        corpus = PythonDocsCorpus(packages=("kbi_absent", package))
    assert len(list(corpus)) == 4


def test_no_package_at_all_is_an_error_with_a_remedy():
    with pytest.raises(ValueError, match=r"kbi_absent.*Install one of them, or give a path"):
        PythonDocsCorpus(packages=("kbi_absent",))
