"""Runs the examples and the commands of docs/long_texts.md, as they are written there."""

import pytest
from conftest import WORDS, revealing_config
from documentation import commands, indented_blocks, python_blocks
from made_tasks import write_lines

import keras_bert_impl as kbi
from keras_bert_training.cli import main

PAGE = "docs/long_texts.md"
QUICK = ["--epochs=1", "--batch_size=4", "--sequence_length=40", "--jit_compile=off"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the checkpoint and the reviews that the page names."""
    tokenizer = kbi.WordPieceTokenizer(WORDS)
    kbi.MaskedLM(kbi.BertEncoder(revealing_config(tokenizer)), tokenizer).save_pretrained(tmp_path / "teacher")
    for split in ("train", "validation"):
        rows = [f"{'the cat sat ' * 40},{number}" for number in (0, 1) * 4]
        write_lines(tmp_path / "reviews" / f"{split}.csv", ["text,label", *rows])
    monkeypatch.chdir(tmp_path)


@pytest.mark.full
@pytest.mark.filterwarnings("ignore")
def test_what_the_page_shows_runs(folder):
    names = {"texts": ["the cat sat " * 40, "a dog"] * 4, "labels": [1, 0] * 4}
    exec(compile("\n".join(python_blocks(PAGE)), PAGE, "exec"), names)
    for block in indented_blocks(PAGE):
        for name, *options in commands(block, "keras-bert"):
            main([name, *options, *QUICK])
    assert kbi.TextClassifier.from_pretrained("runs/reviews/model").long_texts == "windows"
