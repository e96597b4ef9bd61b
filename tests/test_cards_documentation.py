"""Runs the programs of docs/cards.md, and the commands about questions of two other pages."""

import io
import sys

import pytest
from conftest import revealing_config
from documentation import commands, indented_blocks, python_blocks

import keras_bert_impl as kbi
from keras_bert_training.cli import main

PAGE = "docs/cards.md"


@pytest.fixture
def folder(tmp_path, small_tokenizer, monkeypatch):
    """A folder with the checkpoints and the files that the pages name."""
    encoder = kbi.BertEncoder(revealing_config(small_tokenizer, max_length=64))
    classifier = kbi.TextClassifier(encoder, 2, small_tokenizer, class_names=["bad", "good"])
    for name in ("my_classifier", "runs/mrpc/model"):
        classifier.save_pretrained(tmp_path / name)
    kbi.MaskedLM(encoder, small_tokenizer).save_pretrained(tmp_path / "runs/base_512/encoder")
    kbi.QuestionAnswerer(encoder, small_tokenizer).save_pretrained(tmp_path / "runs/answers/model")
    (tmp_path / "passage.txt").write_text("the cat sat on a mat")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_programs_of_the_page_write_a_card_and_upload_it(folder, monkeypatch):
    uploaded = []

    class Api:
        def create_repo(self, repository, **options):
            uploaded.append(repository)

        def upload_folder(self, folder_path, **options):
            uploaded.append((folder_path / "README.md").read_text())
            return type("Commit", (), {"commit_url": "https://hub"})

    monkeypatch.setattr("huggingface_hub.HfApi", Api)
    exec(compile("\n".join(python_blocks(PAGE)), PAGE, "exec"), {})
    repository, card = uploaded
    assert repository == "me/my-classifier" and "license: apache-2.0" in card and "0.0040 over 5 seeds" in card


@pytest.mark.parametrize("page", ["docs/finetuning.md", "docs/pretraining.md"])
def test_the_commands_that_stay_open_answer_each_line(folder, page, monkeypatch, capsys):
    found = [words for block in indented_blocks(page) for words in commands(block, "keras-bert")]
    found = [words for words in found if words[0] in ("ask", "fill-mask")]
    for words in found:
        words = words[: words.index("<")] if "<" in words else words
        monkeypatch.setattr(sys, "stdin", io.StringIO("the [MASK] sat\n"))
        main(words)
        assert capsys.readouterr().out.count("\n") == 1
    assert len(found) == (4 if "fine" in page else 2)
