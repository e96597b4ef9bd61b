"""What `help()` of a model shows first: what this library adds, before the two thousand lines of Keras."""

import inspect
import pydoc

import pytest
from every_model import KINDS

import keras_bert_impl as kbi


@pytest.mark.parametrize("kind", KINDS)
def test_help_shows_our_methods_before_those_of_keras(kind):
    lines = pydoc.plain(pydoc.render_doc(getattr(kbi, kind))).splitlines()
    sections = [line for line in lines if " inherited from " in line]
    is_ours = ["inherited from keras_bert_impl." in line for line in sections]
    assert any(is_ours) and is_ours == sorted(is_ours, reverse=True)
    first_of_keras = lines.index(sections[is_ours.index(False)])
    for name in ("from_pretrained", "save_pretrained"):
        assert any(f" {name}(" in line for line in lines[:first_of_keras]), name


@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if hasattr(getattr(kbi, kind), "head_arguments") and kind != "FeatureTagger"]
)
def test_from_pretrained_shows_what_it_passes_to_the_constructor(kind):
    model = getattr(kbi, kind)
    shown = inspect.signature(model.from_pretrained).parameters
    assert next(iter(shown)) == "path"
    assert {"dtype", "rematerialize", "sequence_length", *model.head_arguments} <= set(shown)
    assert "arguments" not in shown and "encoder" not in shown
