import json
import pathlib
import subprocess
import sys

import pytest
from conftest import WORDS
from tiers import on

import keras_bert_impl as kbi
from keras_bert_training.commands.export import ExportConfig, choose_task, run
from keras_bert_training.runs import parse


@pytest.fixture
def checkpoint(tmp_path):
    """Writes a small checkpoint of a kind of model; returns its directory."""

    def write(kind, *arguments):
        sizes = {"hidden_size": 15, "num_layers": 1, "num_heads": 3, "intermediate_size": 21, "max_length": 11}
        kind(kbi.BertEncoder(kbi.BertConfig(len(WORDS), **sizes)), *arguments).save_pretrained(tmp_path / "checkpoint")
        kbi.WordPieceTokenizer(WORDS).save_pretrained(tmp_path / "checkpoint")
        return str(tmp_path / "checkpoint")

    return write


@on("tensorflow")
@pytest.mark.full
@pytest.mark.parametrize("kind", [kbi.Pretrainer, kbi.TextRegressor, kbi.QuestionAnswerer, kbi.MultipleChoice])
def test_the_printed_example_runs(checkpoint, tmp_path, capsys, kind):
    path, output = checkpoint(kind), str(tmp_path / "served")
    run(parse(ExportConfig, ["--model", path, "--output", output, "--sequence-length", "9"]))
    printed = capsys.readouterr().out
    assert kind is not kbi.Pretrainer or "out  probabilities   float32  (None, None, 5)\n" in printed
    subprocess.run(printed.splitlines()[-1].partition(": ")[2].replace("python", sys.executable, 1).split(), check=True)


def _renamed(path, architecture):
    file = pathlib.Path(path) / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "architectures": [architecture]}))
    return path


@pytest.mark.parametrize(
    ("architecture", "asked", "task"),
    [
        ("BertForSequenceClassification", "auto", "classify"),
        ("BertForPreTraining", "auto", "fill_mask"),
        ("BertForPreTraining", "embed", "embed"),
        ("BertModel", "auto", "embed"),
        ("BertForTokenClassification", "auto", "label_words"),
        ("BertLMHeadModel", "embed", "embed"),
    ],
)
def test_task_is_told_from_the_architecture(checkpoint, architecture, asked, task):
    assert choose_task(_renamed(checkpoint(kbi.Pretrainer), architecture), asked) == task


def test_task_without_a_head_is_refused(checkpoint):
    path = _renamed(checkpoint(kbi.Pretrainer), "BertForMaskedLM")
    with pytest.raises(ValueError, match="not for classify"):
        choose_task(path, "classify")
    _renamed(path, "BertLMHeadModel")
    with pytest.raises(ValueError, match="give --task"):
        choose_task(path)
