import pytest
from tiers import once

from keras_bert_impl.callbacks import steps_left

pytestmark = once


@pytest.fixture
def clock(monkeypatch):
    """A clock that a test sets."""
    now = [0.0]
    monkeypatch.setattr(steps_left.time, "monotonic", lambda: now[0])
    return now


def test_a_file_is_told_what_is_left_of_an_epoch_now_and_then(clock, capsys):
    callback = steps_left.StepsLeft(silence=10)
    callback.set_params({"steps": 100})
    callback.on_epoch_begin(0)
    for step in range(100):  # a second each
        callback.on_train_batch_begin(step)
        clock[0] += 1
        callback.on_train_batch_end(step)
    assert capsys.readouterr().out.splitlines() == [
        "  steps of this epoch: 10 of 100, about 90 s left",
        "  steps of this epoch: 20 of 100, about 80 s left",
        "  steps of this epoch: 40 of 100, about 60 s left",
        "  steps of this epoch: 80 of 100, about 20 s left",
    ]


def test_the_speed_of_a_resumed_epoch_is_that_of_its_own_steps(clock, capsys):
    callback = steps_left.StepsLeft(silence=10)
    callback.set_params({"steps": 100})
    callback.on_epoch_begin(0)
    callback.on_train_batch_begin(80)
    clock[0] = 10
    callback.on_train_batch_end(84)
    assert capsys.readouterr().out == "  steps of this epoch: 5 of 20, about 30 s left\n"


def test_a_pre_training_has_rounds(clock, capsys):
    callback = steps_left.StepsLeft("round", silence=0)
    callback.set_params({"steps": 10})
    callback.on_epoch_begin(0)
    callback.on_train_batch_begin(0)
    clock[0] = 2
    callback.on_train_batch_end(1)
    assert capsys.readouterr().out == "  steps of this round: 2 of 10, about 8 s left\n"


@pytest.mark.parametrize(("verbosity", "count"), [(0, 0), (1, 0), (2, 1)])
def test_only_a_file_gets_lines(monkeypatch, verbosity, count):
    monkeypatch.setattr(steps_left, "verbosity", lambda: verbosity)
    assert len(steps_left.lines_of_progress()) == count
