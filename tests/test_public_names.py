"""What a user sees who looks at the package."""

import importlib.metadata
import subprocess
import sys

import pytest
from tiers import once

import keras_bert_impl as kbi

pytestmark = once


def test_the_package_shows_its_public_names_alone_and_each_is_there():
    assert dir(kbi) == sorted(kbi.__all__) and len(set(kbi.__all__)) == len(kbi.__all__)
    assert all(getattr(kbi, name) is not None for name in kbi.__all__)


@pytest.mark.parametrize(
    "imports",
    [
        pytest.param("import keras_bert_impl, keras", marks=pytest.mark.full),
        pytest.param("from keras_bert_impl.layers import TokenEmbedding; import keras", marks=pytest.mark.full),
        pytest.param("import keras; from keras_bert_impl.optimization import BertAdamW", marks=pytest.mark.full),
        "from keras_bert_impl.text.tokenizers import Tokenizer; assert 'keras' not in sys.modules; "
        "import keras_bert_impl.preprocessing, keras",
    ],
)
def test_keras_knows_our_classes_whatever_is_imported_first(imports):
    code = (
        f"import sys; {imports}; print(keras.saving.get_registered_object('keras_bert_impl>TextClassifier').__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "TextClassifier\n", done.stderr


def test_the_version_is_that_of_the_installed_package():
    assert kbi.__version__ == importlib.metadata.version("keras_bert_impl")


@pytest.mark.parametrize("kind", [kbi.MaskedLM, kbi.BertEncoder])
def test_every_model_lists_what_is_published(kind, capsys, monkeypatch):
    monkeypatch.setattr(kbi.checkpoints, "published_table", lambda: "the table")
    kind.list_pretrained()
    assert capsys.readouterr().out == "the table\n"
