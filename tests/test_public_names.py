"""What a user sees who looks at the package."""

import importlib.metadata

import pytest
from tiers import once

import keras_bert_impl as kbi

pytestmark = once


def test_the_package_shows_its_public_names_alone_and_each_is_there():
    assert dir(kbi) == sorted(kbi.__all__) and len(set(kbi.__all__)) == len(kbi.__all__)
    assert all(getattr(kbi, name) is not None for name in kbi.__all__)


def test_the_version_is_that_of_the_installed_package():
    assert kbi.__version__ == importlib.metadata.version("keras_bert_impl")


@pytest.mark.parametrize("kind", [kbi.MaskedLM, kbi.BertEncoder])
def test_every_model_lists_what_is_published(kind, capsys, monkeypatch):
    monkeypatch.setattr(kbi.checkpoints, "published_table", lambda: "the table, which takes seconds")
    kind.list_pretrained()
    assert capsys.readouterr().out == "the table, which takes seconds\n"
