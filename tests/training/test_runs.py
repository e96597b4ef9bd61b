"""Run directories: which commands resume a run, and which are refused."""

import dataclasses
import json

import pytest
from tiers import once

from keras_bert_impl.training.runs import check_run, open_run

pytestmark = once


@dataclasses.dataclass
class Config:
    data: str
    output: str
    steps: int = 5
    rates: list[float] = dataclasses.field(default_factory=lambda: [0.5])
    distribution: str = "single"


@pytest.fixture
def config(tmp_path, monkeypatch):
    """The configuration of a run that was started in the folder "run" of the current directory."""
    monkeypatch.chdir(tmp_path)
    config = Config("data", "run")
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
    with pytest.raises(ValueError, match=r"\(rates \[0.5\] there, \[0.25\] here\)"):
        check_run("run", dataclasses.replace(config, rates=[0.25]))


def test_an_option_without_default_cannot_be_absent(config):
    remove_from_record("data")
    with pytest.raises(ValueError, match="data missing there, 'data' here"):
        check_run("run", config)


def test_an_option_that_is_gone_is_named(config):
    other = dataclasses.make_dataclass("Other", [("data", str), ("output", str)])("data", "run")
    with pytest.raises(ValueError, match="steps 5 there, no such option in this version"):
        check_run("run", other)


@pytest.mark.parametrize("spelling", ["./data", "data/", "other/../data", "absolute"])
def test_another_spelling_of_a_path_is_the_same_path(config, tmp_path, spelling):
    spelling = str(tmp_path / "data") if spelling == "absolute" else spelling
    check_run("run", dataclasses.replace(config, data=spelling, output="./run"))
    with pytest.raises(ValueError, match=r"data 'data' there, '\.\./data' here"):
        check_run("run", dataclasses.replace(config, data="../data"))


def test_a_run_that_was_moved_goes_on(config, tmp_path):
    (tmp_path / "run").rename(tmp_path / "moved")
    check_run("moved", dataclasses.replace(config, output="moved"))


def test_other_devices_may_go_on_with_a_run(config):
    check_run("run", dataclasses.replace(config, distribution="mirrored"))


def test_a_directory_of_other_files_is_refused(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match=r"not empty and holds no run\.json"):
        check_run(tmp_path / "run", Config("data", str(tmp_path / "run")))
