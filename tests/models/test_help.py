"""What `help()` of a model shows."""

import inspect

import pytest
from every_model import KINDS

import keras_bert_impl as kbi


@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if hasattr(getattr(kbi, kind), "head_arguments") and kind != "FeatureTagger"]
)
def test_from_pretrained_shows_what_it_passes_to_the_constructor(kind):
    model = getattr(kbi, kind)
    shown = inspect.signature(model.from_pretrained).parameters
    assert next(iter(shown)) == "path"
    assert {"dtype", "rematerialize", "sequence_length", *model.head_arguments} <= set(shown)
    assert "arguments" not in shown and "encoder" not in shown
