"""User errors: each ends with one clear line and a non-zero exit code, and nothing is written."""

import json

import pytest
from conftest import WORDS
from made_runs import write_checkpoint
from made_tasks import write_squad
from tiers import once

from keras_bert_training import data_preparation, finetuning

pytestmark = once


@pytest.fixture
def checkpoint(tmp_path):
    return write_checkpoint(tmp_path / "checkpoint")


def prepare(command, *arguments):
    return command(data_preparation.PrepareConfig, data_preparation.run, *arguments)


def test_an_empty_corpus(command, tmp_path):
    (tmp_path / "text").mkdir()
    message = prepare(command, "--input", tmp_path / "text", "--output", tmp_path / "data")
    assert message.startswith("error: ") and str(tmp_path / "text") in message
    assert not (tmp_path / "data").exists()


def test_a_corpus_of_one_document(command, tmp_path):
    (tmp_path / "one.txt").write_text("The cat sat.\nThe dog ran.\n")
    message = prepare(command, "--input", tmp_path / "one.txt", "--output", tmp_path / "data")
    assert "1 documents" in message and "blank lines separate documents" in message
    assert not (tmp_path / "data").exists()


def test_a_vocabulary_without_mask(command, tmp_path, text_folder):
    (tmp_path / "vocab.txt").write_text("\n".join(word for word in WORDS if word != "[MASK]"))
    arguments = ("--input", text_folder, "--vocab", tmp_path / "vocab.txt", "--output", tmp_path / "data")
    message = prepare(command, *arguments)
    assert "[MASK]" in message and "vocab.txt" in message
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ('{"text": "a cat"}', "train.jsonl line 2: no 'label', found text"),
        ('{"text": "a", "text_pair": "b", "label": "x"}', "train.jsonl line 2: only some lines have text_pair"),
    ],
)
def test_a_malformed_line_of_labelled_text(command, tmp_path, checkpoint, line, complaint):
    (tmp_path / "train.jsonl").write_text('{"text": "a dog", "label": "x"}\n' + line + "\n")
    arguments = ("--data", tmp_path, "--model", checkpoint, "--output", tmp_path / "run")
    assert complaint in command(finetuning.FinetuneConfig, finetuning.run, *arguments)
    assert not (tmp_path / "run").exists()


def test_a_dev_file_without_answers(command, tmp_path, checkpoint):
    """Its F1 would be 0 whatever is predicted, and no epoch the best."""
    write_squad(tmp_path)
    dev = tmp_path / "dev-v1.1.json"
    content = json.loads(dev.read_text())
    for row in content["data"][0]["paragraphs"][0]["qas"]:
        row["answers"] = [{"text": "", "answer_start": 0}]
    dev.write_text(json.dumps(content))
    arguments = ("--task", "squad1.1", "--data", tmp_path, "--model", checkpoint, "--output", tmp_path / "run")
    message = command(finetuning.FinetuneConfig, finetuning.run, *arguments)
    assert message.startswith("error: The dev split of squad1.1 in ") and "has no labels, which are needed" in message


def test_a_label_that_training_did_not_have(command, tmp_path, checkpoint):
    for split, label in (("train", "w"), ("validation", "x"), ("test", "y")):
        lines = (f'{{"text": "a dog", "label": "{name}"}}\n' for name in (label, "x"))
        (tmp_path / f"{split}.jsonl").write_text("".join(lines))
    arguments = ("--data", tmp_path, "--model", checkpoint, "--output", tmp_path / "run")
    message = command(finetuning.FinetuneConfig, finetuning.run, *arguments)
    assert "label 'y' is unknown; known are w, x" in message
    assert not (tmp_path / "run").exists()
