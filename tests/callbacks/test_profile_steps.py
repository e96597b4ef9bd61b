"""A profile of some steps is in the folder that was named."""

import contextlib
import importlib.util
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
from made_fits import LABELS, TEXTS, Interrupt, build
from tiers import on

from keras_bert_impl.callbacks import ProfileSteps
from keras_bert_impl.callbacks.profile_steps import steps_to_profile
from keras_bert_impl.distribution import hardware

TESTS = pathlib.Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def can_be_recorded(monkeypatch):
    monkeypatch.setattr(hardware, "check_tracing", lambda: None)


@pytest.fixture
def recorded(monkeypatch):
    """What is recorded: "begin" and "end" at the step that is then the last."""
    events = []

    @contextlib.contextmanager
    def traced(directory):
        events.append("begin")
        yield
        events.append("end")

    monkeypatch.setattr(hardware, "traced", traced)
    return events


def fit(callback, seen=None, **arguments):
    class Count(ProfileSteps):
        def on_train_batch_end(self, batch, logs=None):
            if seen is not None:
                seen.append(self.epoch_start + batch + 1)

    counter = Count(1, 1, "nowhere")
    counter.is_done = True
    build().fit(TEXTS, LABELS, batch_size=3, shuffle=False, verbose=0, callbacks=[counter, callback], **arguments)


def test_these_steps_are_recorded_counted_over_epochs(recorded, tmp_path):
    fit(ProfileSteps(7, 8, tmp_path), seen=recorded, epochs=2)
    assert recorded == [1, 2, 3, 4, 5, 6, "begin", 7, 8, "end", 9, 10]


def test_a_profile_ends_with_the_epoch(recorded, tmp_path):
    fit(ProfileSteps(4, 9, tmp_path), seen=recorded, epochs=2)
    assert recorded == [1, 2, 3, "begin", 4, 5, "end", 6, 7, 8, 9, 10]


def given_as_texts(model):
    return {"x": TEXTS, "y": LABELS, "batch_size": 3}


def given_by_a_generator(model):
    rows = model.rows(TEXTS)
    return {"x": ((rows, np.array(LABELS)) for _ in range(9)), "steps_per_epoch": 5}


@pytest.mark.parametrize("given", [given_as_texts, given_by_a_generator])
def test_a_training_that_raises_ends_its_profile(given, recorded, tmp_path, capsys):
    """Left open, the profile would be lost, and no other could be begun in this process."""
    model = build()
    with pytest.raises(KeyboardInterrupt):
        model.fit(**given(model), shuffle=False, verbose=0, callbacks=[ProfileSteps(2, 9, tmp_path), Interrupt(3)])
    assert recorded == ["begin", "end"]
    assert f"The profile of the steps up to 3 is in {tmp_path}" in capsys.readouterr().out


def test_a_training_that_is_too_short_says_so(recorded, tmp_path, capsys):
    fit(ProfileSteps(6, 8, tmp_path))
    assert recorded == [] and "ended at step 5, before step 6" in capsys.readouterr().out


@pytest.mark.full
def test_the_profile_of_the_backend_is_written(tmp_path):
    """In a process of its own that sees no libtpu, which need not suit the installed JAX."""
    program = "import sys, test_profile_steps as t; t.fit(t.ProfileSteps(2, 3, sys.argv[1]))"
    folders = os.pathsep.join([str(TESTS), str(TESTS / "callbacks"), str(TESTS.parent)])
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": folders}
    command = [sys.executable, "-c", program, str(tmp_path / "profile")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    files = [path.name for path in (tmp_path / "profile").rglob("*") if path.is_file() and path.stat().st_size]
    assert any(name.endswith((".xplane.pb", "trace.json")) for name in files), (files, done.stderr[-500:])
    assert f"The profile of the steps up to 3 is in {tmp_path / 'profile'}" in done.stdout


@on("jax")  # JAX asks libtpu
def test_a_profile_that_would_crash_is_refused(monkeypatch, tmp_path):
    monkeypatch.undo()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)
    with pytest.raises(ValueError, match=r"libtpu is installed, but JAX runs on cpu.*JAX_PLATFORMS=cpu"):
        ProfileSteps(1, 2, tmp_path)


def test_the_option_names_the_first_and_the_last_step():
    assert steps_to_profile("100:110") == (100, 110)
