"""Saving into a directory that holds a checkpoint: all of the new one or all of the old."""

import os
import pathlib

import numpy as np
import pytest
import safetensors.numpy

import keras_bert_impl as kbi
from keras_bert_impl.checkpoints import whole_directory


@pytest.fixture
def models(small_config, small_tokenizer):
    """Two classifiers of equal shape and different weights and names."""
    return [
        kbi.BertTextClassifier(kbi.BertEncoder(small_config), 2, tokenizer=small_tokenizer, class_names=names)
        for names in (["old", "older"], ["new", "newer"])
    ]


def assert_equal(path, model):
    """The directory holds this model, whole."""
    reloaded = kbi.BertTextClassifier.from_pretrained(path)
    assert reloaded.class_names == model.class_names
    for weight, expected in zip(reloaded.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_array_equal(weight, expected)


class Crash(BaseException):
    """Not an Exception: nothing in between may handle it."""


def crash(*arguments, **keywords):
    raise Crash


@pytest.mark.parametrize("where", [(safetensors.numpy, "save_file"), (kbi.WordPieceTokenizer, "save_pretrained")])
def test_a_crash_while_writing_leaves_the_old_checkpoint(where, models, tmp_path, monkeypatch):
    old, new = models
    old.save_pretrained(tmp_path)
    with monkeypatch.context() as patch, pytest.raises(Crash):
        patch.setattr(*where, crash)
        new.save_pretrained(tmp_path)
    assert_equal(tmp_path, old)
    assert sorted(os.listdir(tmp_path)) == ["config.json", "model.safetensors", "tokenizer_config.json", "vocab.txt"]


def test_what_a_killed_process_was_writing_is_not_read_and_goes_with_the_next_save(models, tmp_path):
    old, new = models
    old.save_pretrained(tmp_path)
    (tmp_path / whole_directory.WRITING).mkdir()
    (tmp_path / whole_directory.WRITING / "config.json").write_text("{")
    assert_equal(tmp_path, old)
    new.save_pretrained(tmp_path)
    assert_equal(tmp_path, new)
    assert len(os.listdir(tmp_path)) == 4


@pytest.mark.parametrize("moved", range(4))
def test_a_crash_while_files_move_up_leaves_the_new_checkpoint(moved, models, tmp_path, monkeypatch):
    old, new = models
    old.save_pretrained(tmp_path)
    replace, count = os.replace, iter(range(100))

    def replace_some(source, target):
        # Of the moves up; files are replaced while they are written, too.
        if pathlib.Path(source).parent.name == whole_directory.WRITTEN and next(count) == moved:
            raise Crash
        replace(source, target)

    with monkeypatch.context() as patch, pytest.raises(Crash):
        patch.setattr(os, "replace", replace_some)
        new.save_pretrained(tmp_path)
    assert_equal(tmp_path, new)


def test_other_files_survive_a_save(models, tmp_path):
    old, new = models
    old.save_pretrained(tmp_path)
    (tmp_path / "training_state").mkdir()
    (tmp_path / "training_state" / "step.json").write_text("17")
    new.save_pretrained(tmp_path)
    assert (tmp_path / "training_state" / "step.json").read_text() == "17"


def test_files_that_would_be_read_in_place_of_the_new_ones_go(models, tmp_path):
    stale = ["model-00001-of-00002.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "tokenizer.json"]
    for name in stale:
        (tmp_path / name).write_text("of another model")
    models[1].save_pretrained(tmp_path)
    assert not set(stale) & set(os.listdir(tmp_path))
    assert_equal(tmp_path, models[1])


def test_a_checkpoint_cannot_name_files_elsewhere_for_removal(models, tmp_path):
    models[0].save_pretrained(tmp_path / "checkpoint")
    (tmp_path / "precious").write_text("here")
    written = tmp_path / "checkpoint" / whole_directory.WRITTEN
    written.mkdir()
    (written / whole_directory.SUPERSEDED).write_text('["../precious"]')
    assert_equal(tmp_path / "checkpoint", models[0])
    assert (tmp_path / "precious").read_text() == "here"
