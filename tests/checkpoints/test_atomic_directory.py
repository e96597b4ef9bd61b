"""Saving into a directory that holds a checkpoint leaves either the whole new one or the whole old one."""

import json
import os
import pathlib

import numpy as np
import pytest
import safetensors.numpy

import keras_bert_impl as kbi
from keras_bert_impl.checkpoints import atomic_directory, huggingface


@pytest.fixture
def models(small_config, small_tokenizer):
    """Two classifiers of equal shape and different weights and names."""
    return [
        kbi.TextClassifier(kbi.BertEncoder(small_config), 2, tokenizer=small_tokenizer, class_names=names)
        for names in (["old", "older"], ["new", "newer"])
    ]


def assert_equal(path, model):
    """Asserts that the directory holds exactly this model."""
    reloaded = kbi.TextClassifier.from_pretrained(path)
    assert reloaded.class_names == model.class_names
    for weight, expected in zip(reloaded.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_array_equal(weight, expected)


FILES = ["README.md", "config.json", "model.safetensors", "tokenizer_config.json", "vocab.txt"]


class Crash(BaseException):
    """Not a subclass of Exception, so that no code in between handles it."""


def crash(*arguments, **keywords):
    raise Crash


def test_a_crash_while_writing_leaves_the_old_checkpoint(models, tmp_path, monkeypatch):
    old, new = models
    old.save_pretrained(tmp_path)
    for where in ((safetensors.numpy, "save_file"), (kbi.WordPieceTokenizer, "save_pretrained")):
        with monkeypatch.context() as patch, pytest.raises(Crash):
            patch.setattr(*where, crash)
            new.save_pretrained(tmp_path)
        assert_equal(tmp_path, old)
        assert sorted(os.listdir(tmp_path)) == FILES


def test_what_a_killed_process_was_writing_is_not_read_and_goes_with_the_next_save(models, tmp_path):
    old, new = models
    old.save_pretrained(tmp_path)
    (tmp_path / atomic_directory.WRITING).mkdir()
    (tmp_path / atomic_directory.WRITING / "config.json").write_text("{")
    assert_equal(tmp_path, old)
    new.save_pretrained(tmp_path)
    assert_equal(tmp_path, new)
    assert len(os.listdir(tmp_path)) == 5


@pytest.mark.parametrize("moved", [0, 3])
def test_a_crash_while_files_move_up_leaves_the_new_checkpoint(moved, models, tmp_path, monkeypatch):
    old, new = models
    old.save_pretrained(tmp_path)
    replace, count = os.replace, iter(range(100))

    def replace_some(source, target):
        # Only the moves into the directory above count; files are also replaced while they are written.
        if pathlib.Path(source).parent.name == atomic_directory.WRITTEN and next(count) == moved:
            raise Crash
        replace(source, target)

    with monkeypatch.context() as patch, pytest.raises(Crash):
        patch.setattr(os, "replace", replace_some)
        new.save_pretrained(tmp_path)
    assert_equal(tmp_path, new)


def test_other_files_survive_a_save_and_those_that_would_be_read_in_place_of_the_new_ones_go(models, tmp_path):
    stale = ["model-00001-of-00002.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "tokenizer.json"]
    for name in stale:
        (tmp_path / name).write_text("of another model")
    (tmp_path / "training_state").mkdir()
    (tmp_path / "training_state" / "step.json").write_text("17")
    models[1].save_pretrained(tmp_path)
    assert not set(stale) & set(os.listdir(tmp_path))
    assert_equal(tmp_path, models[1])
    assert (tmp_path / "training_state" / "step.json").read_text() == "17"


@pytest.mark.parametrize("name", ["../precious", "{}/precious", "link/precious", "1_Pooling/../../precious"])
def test_a_checkpoint_cannot_name_files_elsewhere_for_removal(tmp_path, name):
    checkpoint, precious = tmp_path / "checkpoint", tmp_path / "precious"
    written = checkpoint / atomic_directory.WRITTEN
    for folder in (written, checkpoint / "1_Pooling"):
        folder.mkdir(parents=True)
    precious.write_text("here")
    (checkpoint / "link").symlink_to(tmp_path)
    (written / atomic_directory.SUPERSEDED).write_text(json.dumps([name.format(tmp_path)]))
    atomic_directory.finish(checkpoint)
    assert precious.read_text() == "here" and not written.exists()


@pytest.mark.parametrize("step", [0, 3])
def test_a_reader_that_moves_files_up_meanwhile_does_not_kill_the_writer(step, models, tmp_path, monkeypatch):
    old, new = models
    old.save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_text("superseded by vocab.txt")
    calls = iter(range(100))

    def reader_comes_first(call):
        def run(*arguments, **keywords):
            if atomic_directory.WRITTEN in str(arguments[0]) and next(calls) == step:
                with monkeypatch.context() as patch:
                    patch.setattr(os, "replace", replace)
                    atomic_directory.finish(tmp_path)
            return call(*arguments, **keywords)

        return run

    replace = os.replace
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", reader_comes_first(os.replace))
        patch.setattr(os, "rmdir", reader_comes_first(os.rmdir))
        new.save_pretrained(tmp_path)
    assert next(calls) > step
    assert_equal(tmp_path, new)
    assert sorted(os.listdir(tmp_path)) == FILES


def test_a_save_while_a_checkpoint_is_opened_gives_the_new_one_whole(models, tmp_path, monkeypatch):
    old, new = models
    old.save_pretrained(tmp_path)
    open_source, saves = huggingface.open_source, iter([new])

    def save_first(directory, family):
        # config.json has been read, the weights have not.
        for model in saves:
            model.save_pretrained(directory)
        return open_source(directory, family)

    monkeypatch.setattr(huggingface, "open_source", save_first)
    assert_equal(tmp_path, new)


def test_weights_of_a_later_save_are_not_read_into_a_model_of_the_one_before(models, tmp_path):
    old, new = models
    old.save_pretrained(tmp_path)
    checkpoint = kbi.checkpoints.open_checkpoint(tmp_path)
    (tmp_path / "metrics.jsonl").write_text("{}")  # a log may grow meanwhile
    assert checkpoint.read("pooler/kernel").shape == (15, 15)
    new.save_pretrained(tmp_path)
    np.testing.assert_array_equal(checkpoint.read("pooler/kernel"), old.encoder.get_layer("pooler").get_weights()[0])
    with pytest.raises(ValueError, match="saved again"):
        assert checkpoint.tokenizer
    assert_equal(tmp_path, new)


def test_folders_of_a_save_take_their_places_over_those_of_the_one_before(tmp_path):
    for text in ("old", "new"):
        with atomic_directory.replaced_together(tmp_path, lambda new: ()) as target:
            (target / "1_Pooling").mkdir()
            (target / "1_Pooling" / "config.json").write_text(text)
    assert (tmp_path / "1_Pooling" / "config.json").read_text() == "new"
    assert os.listdir(tmp_path) == ["1_Pooling"]


@pytest.mark.parametrize("folder", ["1_Pooling", "1_Pooling/within"])
def test_a_folder_that_is_a_link_is_not_written_through(tmp_path, folder):
    (tmp_path / "elsewhere").mkdir()
    written = tmp_path / "checkpoint" / atomic_directory.WRITTEN
    (written / folder).mkdir(parents=True)
    (written / folder / "config.json").write_text("{}")
    (tmp_path / "checkpoint" / "1_Pooling").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match=r"1_Pooling.* is a link"):
        atomic_directory.finish(tmp_path / "checkpoint")
    assert not list((tmp_path / "elsewhere").iterdir())


def test_files_are_not_fetched_through_a_link(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "precious").write_text("here")
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint" / atomic_directory.WRITTEN).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match="is a link"):
        atomic_directory.finish(tmp_path / "checkpoint")
    assert (tmp_path / "elsewhere" / "precious").read_text() == "here"


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_files_have_the_permissions_that_the_user_s_files_have(mask, small_config, tmp_path):
    before = os.umask(mask)
    try:
        kbi.BertEncoder(small_config).save_pretrained(tmp_path / "saved")
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "saved").iterdir()}
    assert len(modes) > 2 and set(modes.values()) == {0o666 & ~mask}, modes
