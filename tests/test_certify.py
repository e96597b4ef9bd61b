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
    "classify": lambda encoder, tokenizer: kbi.TextClassifier(encoder, 2, tokenizer, class_names=["bad", "good"]),
    "label_words": lambda encoder, tokenizer: kbi.TokenClassifier(encoder, 2, tokenizer, class_names=["O", "A"]),
    "answer": kbi.QuestionAnswerer,
    "choose": kbi.MultipleChoice,
    "next_sentence": kbi.NextSentencePredictor,
    "fill_mask": kbi.MaskedLM,
    "embed": kbi.TextEmbedder,
}


@pytest.fixture
def save(tmp_path):
    """Function from a task to the directory of a checkpoint whose vocabulary has every character of the texts."""

    def save(task):
        tokenizer = kbi.WordPieceTokenizer(revealing_vocabulary(HOSTILE_TEXTS, lowercase=True))
        encoder = kbi.BertEncoder(revealing_config(tokenizer, max_length=64))
        MODELS[task](encoder, tokenizer).save_pretrained(tmp_path)
        return tmp_path

    return save


@pytest.mark.full
@pytest.mark.parametrize("task", MODELS)
def test_a_checkpoint_computes_what_transformers_computes_from_it(task, save, monkeypatch):
    pytest.importorskip("transformers")
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    import certify

    assert certify.largest_difference(save(task)) < 1e-5


@pytest.mark.full
def test_the_script_names_each_backend_and_ends_with_an_error_where_one_differs(save, monkeypatch, capsys):
    pytest.importorskip("transformers")
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    import certify

    directory = save("classify")
    found = subprocess.run([sys.executable, str(SCRIPT), str(directory)], capture_output=True, text=True, check=True)
    assert [line.split()[0] for line in found.stdout.splitlines()] == list(
        filter(certify.importlib.util.find_spec, certify.BACKENDS)
    )
    monkeypatch.setattr(certify.subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], 0, stdout="2e-4\n"))
    monkeypatch.setattr(sys, "argv", ["certify.py", str(directory)])
    with pytest.raises(SystemExit, match=r"differ by more than 0\.0001"):
        certify.main()
