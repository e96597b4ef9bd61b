"""A path such as gs://bucket/folder is opened as what it is or refused, never taken for a local folder `gs:`."""

import dataclasses
import importlib
import typing

import pytest
from tiers import on, once

from keras_bert_impl.cli import COMMANDS
from keras_bert_impl.resume.sharded_state import path_of
from keras_bert_impl.training import pretraining
from keras_bert_impl.training.runs import check_run, open_run, parse

pytestmark = once

# The options of each command that take a URL, or a text in which it means nothing.
TAKEN = {
    "pretrain": {"data", "output"},
    "distill": {"data", "output"},
    "prepare-data": {"beam_storage", "beam_options"},
    "fill-mask": {"text"},
    "ask": {"text", "context"},
}


def configuration_of(command):
    module = importlib.import_module(f"keras_bert_impl.{COMMANDS[command].module}")
    return getattr(module, COMMANDS[command].configuration)


def takes_words(kind):
    return kind in (str, list[str]) or (typing.get_origin(kind) is not dict and str in typing.get_args(kind))


def value_of(kind):
    """A value that an option of this type takes."""
    return typing.get_args(kind)[0] if typing.get_origin(kind) is typing.Literal else "somewhere"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_of_every_command_refuses_a_bucket_or_takes_it(command):
    kind = configuration_of(command)
    hints = typing.get_type_hints(kind)
    fields = [field for field in dataclasses.fields(kind) if field.init and takes_words(hints[field.name])]
    needed = {field.name for field in dataclasses.fields(kind) if field.default is field.default_factory}
    taken = set()
    for field in fields:
        given = {name: value_of(hints[name]) for name in needed} | {field.name: "gs://bucket/x"}
        given |= {"runner": "DirectRunner"} if field.name.startswith("beam_") else {}
        try:
            parse(kind, [f"--{name}={value}" for name, value in given.items()])
            taken.add(field.name)
        except ValueError as error:
            assert f"--{field.name} gs://bucket/x: gs:// cannot be opened here. Name a local path" in str(error)
    assert taken == TAKEN.get(command, set())


def test_a_checkpoint_of_the_hub_is_no_remote_path():
    for command, option in (("finetune", "model"), ("pretrain", "init"), ("convert", "source"), ("export", "model")):
        kind = configuration_of(command)
        needed = {field.name for field in dataclasses.fields(kind) if field.default is field.default_factory}
        given = {name: "somewhere" for name in needed} | {option: "hf://owner/name"}
        assert getattr(parse(kind, [f"--{name}={value}" for name, value in given.items()]), option) == given[option]


@pytest.mark.parametrize("function", [check_run, open_run])
def test_a_program_that_names_a_bucket_as_output_is_told_so(function, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="The output gs://bucket/run is remote: name a local directory"):
        function("gs://bucket/run", pretraining.PretrainConfig("data", "gs://bucket/run"))
    assert not list(tmp_path.iterdir())


@on("tensorflow")
def test_a_run_of_tensorflow_in_a_bucket_is_refused_before_anything_is_written(tmp_path, monkeypatch):
    pytest.importorskip("orbax.checkpoint")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="is remote, and tensorflow saves training states only to local directories"):
        pretraining.run(pretraining.PretrainConfig("data", "gs://bucket/run", steps=1))
    assert not list(tmp_path.iterdir())


def test_a_bucket_without_a_client_for_it_says_what_to_install(monkeypatch):
    pytest.importorskip("orbax.checkpoint")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in ("tensorflow", "gcsfs") else name)
    with pytest.raises(ImportError, match=r"gs://bucket/run cannot be opened without gcsfs: pip install 'keras_bert"):
        path_of("gs://bucket/run")


def test_a_bucket_keeps_its_name():
    pytest.importorskip("orbax.checkpoint")
    assert str(path_of("gs://bucket/run") / "step-00000003") == "gs://bucket/run/step-00000003"
