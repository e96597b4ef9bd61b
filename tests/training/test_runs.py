"""Run directories: which commands resume a run, and which are refused."""

import dataclasses
import json
import os
import socket

import pytest
from tiers import once

from keras_bert_training.runs import check_run, locked, open_run

pytestmark = once


@dataclasses.dataclass
class Config:
    model: str
    output: str
    steps: int = 5
    rates: list[float] = dataclasses.field(default_factory=lambda: [0.5])
    distribution: str = "single"


@pytest.fixture
def config(tmp_path, monkeypatch):
    """The configuration of a run that was started in the folder "run" of the current directory."""
    monkeypatch.chdir(tmp_path)
    config = Config("model", "run")
    open_run(config.output, config)
    return config


def remove_from_record(*names):
    with open("run/run.json") as file:
        record = json.load(file)
    for name in names:
        del record["configuration"][name]
    with open("run/run.json", "w") as file:
        json.dump(record, file)


def test_a_run_made_before_an_option_existed_goes_on_with_its_default(config):
    remove_from_record("steps", "rates")
    check_run("run", config)
    with pytest.raises(ValueError, match=r"\(steps 5 there, 6 here\)"):
        check_run("run", dataclasses.replace(config, steps=6))
    with pytest.raises(ValueError, match="rates"):
        check_run("run", dataclasses.replace(config, rates=[0.25]))


def test_an_option_that_is_gone_is_named_if_the_run_used_it(config):
    other = dataclasses.make_dataclass("Other", [("model", str), ("output", str)])("model", "run")
    with pytest.raises(ValueError, match="steps 5 there, None here"):
        check_run("run", other)
    with open("run/run.json", "w") as file:
        json.dump({"configuration": {"model": "model", "steps": None, "rates": False}}, file)
    check_run("run", other)


@pytest.mark.parametrize("spelling", ["./model", "other/../model", "absolute"])
def test_another_spelling_of_a_path_is_the_same_path(config, tmp_path, spelling):
    spelling = str(tmp_path / "model") if spelling == "absolute" else spelling
    check_run("run", dataclasses.replace(config, model=spelling, output="./run"))
    with pytest.raises(ValueError, match=r"model 'model' there, '\.\./model' here"):
        check_run("run", dataclasses.replace(config, model="../model"))


def test_a_run_that_was_moved_goes_on_also_on_other_devices(config, tmp_path):
    (tmp_path / "run").rename(tmp_path / "moved")
    check_run("moved", dataclasses.replace(config, output="moved", distribution="mirrored"))


def test_a_directory_of_other_files_is_refused(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match=r"not empty and holds no run\.json"):
        check_run(tmp_path / "run", Config("data", str(tmp_path / "run")))


def test_a_second_run_in_a_directory_is_refused_until_the_first_has_ended(tmp_path):
    holder = f"process {os.getpid()} on {socket.gethostname()}"
    with locked(tmp_path / "runs" / "one"):
        with pytest.raises(ValueError, match=rf"one is in use by {holder}: wait until it has ended, end it, or name"):
            with locked(tmp_path / "runs" / "one"):
                pass
        with locked(tmp_path / "runs" / "two"):
            check_run(tmp_path / "runs" / "two", Config("data", "two"))  # a directory with a lock alone is empty
    assert not list(tmp_path.iterdir())
    with locked(tmp_path):
        (tmp_path / "result").touch()
    assert [path.name for path in tmp_path.iterdir()] == ["result"]
