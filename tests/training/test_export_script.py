import json

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
def test_example_printed_for_a_pre_trained_checkpoint_runs(checkpoint, tmp_path, capsys):
    path, output = checkpoint(kbi.Pretrainer), str(tmp_path / "served")
    run(parse(ExportConfig, ["--model", path, "--output", output, "--sequence-length", "9"]))
    printed = capsys.readouterr().out
    assert "    in   text            string   (None,)\n" in printed
    assert "    out  probabilities   float32  (None, None, 5)\n" in printed
    example = [line.strip() for line in printed.splitlines()[-4:]]
    exec("\n".join(example))
    guesses = capsys.readouterr().out
    assert sum(guesses.count(f"b'{word}'") for word in WORDS) == 5


@on("tensorflow")
@pytest.mark.full
@pytest.mark.parametrize("kind", [kbi.TextRegressor, kbi.QuestionAnswerer, kbi.MultipleChoice])
def test_examples_of_other_heads_run(checkpoint, tmp_path, capsys, kind):
    path, output = checkpoint(kind), str(tmp_path / "served")
    run(parse(ExportConfig, ["--model", path, "--output", output, "--sequence-length", "9"]))
    exec("\n".join(line.strip() for line in capsys.readouterr().out.splitlines()[-4:]))
    assert capsys.readouterr().out.startswith("[")


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


def _renamed(path, architecture):
    with open(f"{path}/config.json") as file:
        content = json.load(file)
    with open(f"{path}/config.json", "w") as file:
        json.dump({**content, "architectures": [architecture]}, file)
    return path
