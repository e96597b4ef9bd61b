"""benchmarks/certify.py: a checkpoint is held to transformers on each backend."""

import pathlib
import subprocess
import sys

import pytest
from conftest import revealing_config
from hostile_texts import HOSTILE_TEXTS, revealing_vocabulary

import keras_bert_impl as kbi

SCRIPT = pathlib.Path(__file__).parents[1] / "benchmarks" / "certify.py"
MODELS = {
    "classify": lambda encoder, tokenizer: kbi.TextClassifier(encoder, 2, tokenizer),
    "label_words": lambda encoder, tokenizer: kbi.TokenClassifier(encoder, 2, tokenizer),
    "answer": kbi.QuestionAnswerer,
    "choose": kbi.MultipleChoice,
    "next_sentence": kbi.NextSentencePredictor,
    "fill_mask": kbi.MaskedLM,
    "embed": kbi.TextEmbedder,
}
pytestmark = pytest.mark.full


@pytest.fixture
def certify(monkeypatch):
    pytest.importorskip("transformers")
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    import certify

    return certify


@pytest.fixture
def save(tmp_path):
    """Function from a task to the directory of a checkpoint whose vocabulary has every character of the texts."""

    def save(task):
        tokenizer = kbi.WordPieceTokenizer(revealing_vocabulary(HOSTILE_TEXTS, lowercase=True))
        encoder = kbi.BertEncoder(revealing_config(tokenizer, max_length=64))
        MODELS[task](encoder, tokenizer).save_pretrained(tmp_path)
        return tmp_path

    return save


@pytest.mark.parametrize("task", MODELS)
def test_a_checkpoint_computes_what_transformers_computes_from_it(task, save, certify):
    assert certify.largest_difference(save(task)) < 1e-5


def test_the_script_ends_with_an_error_where_a_backend_differs(certify, tmp_path, monkeypatch):
    done = subprocess.CompletedProcess([], 0, stdout="2e-4\n")
    monkeypatch.setattr(certify.subprocess, "run", lambda *_, **__: done)
    monkeypatch.setattr(sys, "argv", ["certify.py", str(tmp_path)])
    with pytest.raises(SystemExit, match=r"differ by more than 0\.0001"):
        certify.main()
