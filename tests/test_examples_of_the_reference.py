"""The examples in the docstrings of the reference run, and give what they show."""

import doctest
import inspect
import re
import sys

import keras
import numpy as np
import pytest
from documentation import ROOT
from tiers import three_in_full

import keras_bert_impl as kbi

sys.path.append(str(ROOT / "docs"))
import reference

# Names of the main pages that need no example, or whose docstring shows one that does not run here.
WITHOUT = {
    *(
        "Label",
        "Entity",
        "Answer",
        "Choice",
        "Match",
        "FilledMask",
        "FilledText",
        "TokenDoubt",
    ),  # those of their models
    *("export_saved_model", "export_onnx", "export_openvino", "export_litert", "open_export"),  # take a minute
    "push_to_hub",
    *("panels", "history_of", "confusion_of_counts", "attention_of", "contributions_of"),  # parts of other plots
}
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def examples():
    """{name of a public object: its docstring with an example}; one that several classes inherit is there once."""
    found = {}
    for entry, members in reference.members_by_entry().items():
        value = reference.object_of(entry)
        of_members = {f"{entry}.{name}": getattr(value, name) for _, name in members}
        for name, one in {entry: value, **of_members}.items():
            text = inspect.getdoc(one) or ""
            if ">>>" in text:
                found.setdefault(text[text.index(">>>") :], (name.removeprefix("keras_bert_impl."), text))
    return dict(found.values())


EXAMPLES = examples()


@three_in_full
@pytest.mark.filterwarnings("ignore:.*newly initialised:UserWarning")
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_runs_and_gives_what_it_shows(name):
    assert set(re.findall(r"\bkbi\.(\w+)", EXAMPLES[name])) <= set(kbi.__all__)  # without another import
    keras.utils.set_random_seed(0)
    names = {"kbi": kbi, "keras": keras, "np": np}
    test = doctest.DocTestParser().get_doctest(EXAMPLES[name], names, name, None, None)
    said = []
    failed, _ = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=said.append)
    assert not failed, "".join(said)


def test_every_name_of_the_main_pages_has_an_example():
    main = [entry for page in ("models", "export", "plots") for entry in reference.entries(page)]
    main += [f"keras_bert_impl.{name}" for name in ("BertEncoder", "BertConfig", "WordPieceTokenizer", "push_to_hub")]
    shown = {name.removeprefix("keras_bert_impl.") for name in main if name.rpartition(".")[2] not in WITHOUT}
    assert shown - EXAMPLES.keys() == set()


def test_headings_of_the_reference_name_what_their_pages_list():
    for page, groups in reference.GROUPS.items():
        listed = {entry.rpartition(".")[2] for entry in reference.entries(page)}
        assert {name for names in groups.values() for name in names} <= listed


def test_names_in_docstrings_become_links_and_tables_become_tables():
    lines = ["Use `fit`, `callbacks.ExactResume` or MaskedLM; not `texts`.", "", "| a | b |", "| --- | --- |"]
    lines += ["| 1 | 2 |", "|   | 3 |", "", "Example:", "    >>> 1"]
    reference.as_restructured_text(None, "class", "keras_bert_impl.TextClassifier", None, None, lines)
    assert lines[0] == (
        "Use :py:obj:`fit <keras_bert_impl.TextClassifier.fit>`, :py:obj:`callbacks.ExactResume "
        "<keras_bert_impl.callbacks.ExactResume>` or :py:obj:`MaskedLM <keras_bert_impl.MaskedLM>`; not `texts`."
    )
    assert lines[2:9] == [".. list-table::", "   :header-rows: 1", "", "   * - a", "     - b", "   * - 1", "     - 2 3"]
    assert lines[-6:] == [".. rubric:: Example", "", ".. code-block:: pycon", "", "    >>> 1", ""]


def test_from_pretrained_documents_the_arguments_of_the_constructor():
    documented = kbi.TextEmbedder.from_pretrained.__doc__
    assert "\n    pooling (str or list of str, optional): " in documented and "arguments:" not in documented
    assert "kbi.TextEmbedder.from_pretrained(" in documented
