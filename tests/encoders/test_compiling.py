"""A line says that a step is being compiled, since Keras shows nothing while it does."""

import time

import keras
import pytest
from made_fits import LABELS, TEXTS, build
from tiers import every_backend, full_on, on

from keras_bert_impl.encoders import compiling

IS_TORCH = keras.backend.backend() == "torch"


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(compiling, "PATIENCE", 0.0)


@every_backend
@full_on("jax")
def test_the_first_step_of_each_kind_is_announced_once(capsys):
    model = build(run_eagerly=False)
    for _ in range(2):
        model.fit(TEXTS, LABELS, verbose=2, batch_size=7)
        model.evaluate(TEXTS, LABELS, verbose=2, batch_size=7)
        model.predict(TEXTS, verbose=2, batch_size=7)
    lines = [line.split(";")[0].strip(" .") for line in capsys.readouterr().out.splitlines() if "compiling" in line]
    steps = [f"compiling the {kind} step" for kind in ("training", "evaluation", "prediction")]
    assert lines == ([] if IS_TORCH else steps)


@pytest.mark.full
@on("tensorflow")
def test_verbose_0_is_silent(capsys):
    model = build(run_eagerly=False)
    model.fit(TEXTS, LABELS, verbose=0, validation_data=(TEXTS, LABELS))
    model.predict(TEXTS, 7, 0)
    assert capsys.readouterr().out == ""


def test_a_quick_step_is_not_announced(capsys, monkeypatch):
    monkeypatch.setattr(compiling, "PATIENCE", 0.1)
    step = compiling.announced(lambda value: value + 1, "training step", is_per_shape=True)
    assert step(1) == 2
    time.sleep(0.2)
    assert capsys.readouterr().out == ""


def test_the_line_says_which_batches_are_compiled_again(capsys):
    slow = compiling.announced(lambda: time.sleep(0.1), "training step", is_per_shape=True)
    slow()
    assert "batches of other lengths will be compiled when they come" in capsys.readouterr().out
