"""Runs the commands and the Python example of docs/distillation.md, one after the other, as they are written there."""

import json
import pathlib

import pytest
from conftest import WORDS, revealing_config
from documentation import commands, indented_blocks, python_blocks
from made_tasks import SENTENCES, write_cola, write_lines
from tiers import on

import keras_bert_impl as kbi
from keras_bert_training.cli import main

PAGE = "docs/distillation.md"
QUICK = {
    "prepare-data": ["--sequence_length=16"],
    "distill": ["--steps=2", "--batch_size=4", "--validation_batches=1", "--jit_compile=off"],
    "finetune": ["--epochs=1", "--batch_size=4", "--jit_compile=off", "--sequence_length=16"],
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the teacher, the corpus and the task that the page names."""
    tokenizer = kbi.WordPieceTokenizer(WORDS)
    encoder = kbi.BertEncoder(kbi.BertConfig(**{**revealing_config(tokenizer).to_dict(), "num_layers": 4}))
    kbi.MaskedLM(encoder, tokenizer).save_pretrained(tmp_path / "teacher")
    sentences = [f"{sentence.capitalize()}." for sentence in SENTENCES]
    documents = ["\n".join(sentences[n % 3 :]) + "\n" for n in range(200)]
    write_lines(tmp_path / "corpus" / "text.txt", documents)
    write_cola(tmp_path / "glue/CoLA")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@on("torch")  # once is enough
@pytest.mark.full
@pytest.mark.filterwarnings("ignore")
def test_the_commands_of_the_page_run_and_so_does_its_example(folder):
    for block in indented_blocks(PAGE):
        for name, *options in commands(block, "keras-bert"):
            main([name, *options, *QUICK[name]])
    names = {}
    exec(compile("\n".join(python_blocks(PAGE)), PAGE, "exec"), names)
    for run in ("distilled", "states"):
        assert json.loads(pathlib.Path(f"runs/{run}/encoder/config.json").read_text())["n_layers"] == 2
    student = kbi.TextClassifier.from_pretrained("runs/cola_student")
    assert student.encoder.config.family == "DistilBERT" and student.class_names == names["teacher"].class_names
