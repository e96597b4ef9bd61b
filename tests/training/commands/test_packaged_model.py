"""Commands that are given no model ask the one in the package."""

import io
import sys

import pytest

import keras_bert_impl as kbi
from keras_bert_impl.checkpoints.hub import PACKAGED_DIRECTORY
from keras_bert_training.cli import main
from keras_bert_training.commands.packaged_model import with_model
from keras_bert_training.options.serve import ServeConfig

NOTE = "small_english, the model in the package; --model for another\n"
TEXT = "I have not seen him for many [MASK]."


@pytest.fixture
def own_folder(tmp_path, monkeypatch, small_config, small_tokenizer):
    """A working directory with another model in a folder of the same name."""
    monkeypatch.chdir(tmp_path)
    config = kbi.BertConfig(small_tokenizer.vocabulary_size, hidden_size=12, num_layers=1, num_heads=3)
    kbi.MaskedLM(kbi.BertEncoder(config), tokenizer=small_tokenizer).save_pretrained("small_english")
    return tmp_path / "small_english"


@pytest.mark.parametrize("command", ["fill-mask", "ask"])
def test_without_a_model_the_one_in_the_package_answers_and_is_named_first(command, own_folder, capsys):
    main([command, "--text", TEXT])
    printed = capsys.readouterr()
    assert "years 1" in printed.out and printed.err == NOTE


def test_a_model_that_is_given_is_asked_without_a_note(own_folder, capsys):
    main(["fill-mask", "small_english", "--text", TEXT, "--top_k", "3"])
    printed = capsys.readouterr()
    assert "years 1" not in printed.out and printed.err == ""


def test_piped_texts_get_one_line_each(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{TEXT}\nReturns a [MASK] of integers.\n"))
    main(["fill-mask"])
    first, second = capsys.readouterr().out.splitlines()
    assert "years" in first and "list" in second


def test_the_server_shows_it_under_its_name(own_folder, capsys):
    assert with_model(ServeConfig()).model == [f"small_english={PACKAGED_DIRECTORY}"]
    assert capsys.readouterr().err == NOTE
