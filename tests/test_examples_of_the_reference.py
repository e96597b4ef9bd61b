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

# Names of the main pages without an example: answers, which their models show; exports, which take a minute; and parts
# of other plots.
WITHOUT = {
    *reference.GROUPS["models"]["Answers"],
    *("export_saved_model", "export_onnx", "export_openvino", "export_litert", "open_export"),
    *("panels", "history_of", "confusion_of_counts", "attention_of", "contributions_of"),
}
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def examples(page):
    """{name: docstring} of the public objects of a page that have an example; one that several inherit, once."""
    found = {}
    for entry in reference.entries(page):
        value = reference.object_of(entry)
        of_members = {f"{entry}.{name}": getattr(value, name) for _, name in reference.members_of(value)}
        for name, one in {entry: value, **of_members}.items():
            text = inspect.getdoc(one) or ""
            if ">>>" in text:
                example = re.sub(r"kbi\.\w+(?=\.from_pretrained)", "", text[text.index(">>>") :])
                found.setdefault(example, (name.removeprefix("keras_bert_impl."), text))
    return dict(found.values())


@three_in_full
@pytest.mark.filterwarnings("ignore:.*newly initialised:UserWarning")
@pytest.mark.parametrize("page", reference.MODULES)
def test_the_examples_of_a_page_run_and_give_what_they_show(page):
    said = []
    for name, text in examples(page).items():
        assert set(re.findall(r"\bkbi\.(\w+)", text)) <= set(kbi.__all__), name  # without another import
        keras.utils.set_random_seed(0)
        names = {"kbi": kbi, "keras": keras, "np": np}
        test = doctest.DocTestParser().get_doctest(text, names, name, None, None)
        doctest.DocTestRunner(optionflags=FLAGS).run(test, out=said.append)
    assert not said, "".join(said)


def test_every_name_of_the_main_pages_has_an_example():
    for page in ("models", "preprocessing", "export", "plots"):
        names = {name.removeprefix("keras_bert_impl.") for name in reference.entries(page)}
        assert {name for name in names if name.rpartition(".")[2] not in WITHOUT} <= examples(page).keys()
    assert {"BertEncoder", "BertConfig", "encoder_from_pretrained"} <= examples("encoders").keys()
    assert "WordPieceTokenizer" in examples("text") and "checkpoints.open_checkpoint" in examples("checkpoints")


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
