"""Figures of a training: tokens and arithmetic per second, the norm of the gradients."""

import types

import keras
import pytest
from made_fits import LABELS, LENGTHS, TEXTS, build

from keras_bert_impl.callbacks import TrainingFigures, training_figures
from keras_bert_impl.callbacks.flops import training_flops
from keras_bert_impl.distribution import hardware


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """A clock that moves by 10 s in the first step, which compiles, and by 2 s in others; a machine of 1e7 FLOP/s."""
    now = [0.0]
    monkeypatch.setattr(training_figures, "time", types.SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(training_figures, "device_ceiling", lambda dtype: (1e7, "a test"))

    def step(batch, logs):
        now[0] += 2.0 if batch or now[0] > 10 else 10.0

    def wait():
        now[0] += 2.0

    callback = keras.callbacks.LambdaCallback(on_train_batch_end=step)
    callback.wait = wait
    return callback


def test_tokens_and_arithmetic_are_those_of_the_batches(clock):
    model = build()
    options = {"batch_size": 7, "epochs": 2, "shuffle": False, "verbose": 0}
    history = model.fit(TEXTS, LABELS, callbacks=[clock, TrainingFigures()], **options).history
    tokens = [sum(length + 2 for length in part) for part in (LENGTHS[:7], LENGTHS[7:])]
    # The first epoch without its first batch. Rows are padded to the longest, 52 tokens, rounded to 8 or 32.
    assert history["tokens_per_second"] == pytest.approx([tokens[1] / 2, sum(tokens) / 4])
    width = 64 if model.jit_compile else 56
    assert history["share_of_tokens"][1] == pytest.approx(sum(tokens) / (14 * width))
    flops = training_flops(model.encoder, 7, width, 0)
    assert history["flops_utilization"] == pytest.approx([flops / 2 / 1e7] * 2)


@pytest.mark.parametrize("measured", [5.0, 1.0])
def test_no_training_is_faster_than_what_the_machine_can_do(clock, monkeypatch, measured):
    """If a ceiling was measured too low, on a busy machine, the training is it."""
    monkeypatch.setattr(training_figures, "device_ceiling", lambda dtype: (measured, "a test"))
    figures = TrainingFigures(7.0, 7.0, 4.0)  # 4 operations in a step of 2 s
    build().fit(TEXTS, LABELS, batch_size=7, epochs=2, verbose=0, callbacks=[clock, figures])
    assert figures.figures["flops_utilization"] == 2.0 / max(2.0, measured)
    assert ("this training" in figures.ceiling_source) == (measured < 2.0)


def test_percentiles_of_the_steps_leave_out_the_first_which_compiles(clock):
    model, slow = build(), keras.callbacks.Callback()
    slow.on_train_batch_end = lambda batch, logs: clock.on_train_batch_end(batch, logs) if batch == 3 else None
    history = model.fit(
        TEXTS, LABELS, batch_size=3, shuffle=False, verbose=0, callbacks=[clock, slow, TrainingFigures()]
    )
    # Steps of 2, 2, 4 and 2 s after the first one.
    found = {name: values[0] for name, values in history.history.items() if name.startswith("seconds_per_step")}
    assert found == {
        "seconds_per_step_p50": 2.0,
        "seconds_per_step_p90": pytest.approx(3.4),
        "seconds_per_step_p99": pytest.approx(3.94),
    }


def test_percentiles_are_of_a_step_also_where_several_are_executed_together(clock):
    figures = TrainingFigures()
    figures.on_train_begin()
    figures.on_epoch_begin(0)
    for first in (0, 4, 8):  # executions of four steps, 2 s each
        figures.on_train_batch_begin(first)
        clock.wait()
        figures.on_train_batch_end(first + 3)
    assert figures._step_times()["seconds_per_step_p50"] == 0.5


def test_the_memory_of_a_device_is_a_figure(clock, monkeypatch):
    monkeypatch.setattr(hardware, "peak_memory", lambda: 3 * 2**29)
    model = build()
    history = model.fit(TEXTS, LABELS, verbose=0, callbacks=[clock, TrainingFigures()]).history
    assert history["device_memory_gib"] == [1.5]


def test_the_norm_and_the_rate_are_those_of_the_last_step(clock):
    model = build()
    history = model.fit(TEXTS, LABELS, verbose=0, callbacks=[clock, TrainingFigures()]).history
    norm = float(keras.ops.convert_to_numpy(model.optimizer.gradient_norm))
    assert history["gradient_norm"] == [norm] and norm > 0
    assert history["learning_rate"] == [pytest.approx(1e-2)]


def test_the_rate_of_a_schedule_is_that_with_which_the_last_step_was_computed(clock):
    schedule = keras.optimizers.schedules.PolynomialDecay(1.0, 10, end_learning_rate=0.0)
    model = build(optimizer=keras.optimizers.SGD(schedule))
    history = model.fit(TEXTS, LABELS, batch_size=7, epochs=2, verbose=0, callbacks=[clock, TrainingFigures()]).history
    # Two steps an epoch, with rates of 1, 0.9; 0.8, 0.7.
    assert history["learning_rate"] == [pytest.approx(0.9), pytest.approx(0.7)]


def test_figures_that_are_given_are_not_counted(clock):
    model = build()
    rows = ((model.rows(TEXTS), keras.ops.array(LABELS)) for _ in range(3))
    figures = TrainingFigures(tokens_per_step=100, positions_per_step=400, flops_per_step=3e5)
    history = model.fit(rows, steps_per_epoch=3, verbose=0, callbacks=[clock, figures]).history
    assert history["tokens_per_second"] == [50.0] and history["share_of_tokens"] == [0.25]
    assert history["flops_utilization"] == [pytest.approx(0.015)]


def test_what_cannot_be_counted_is_left_out(clock):
    model = build(optimizer="sgd")
    rows = ((model.rows(TEXTS), keras.ops.array(LABELS)) for _ in range(3))
    history = model.fit(rows, steps_per_epoch=3, verbose=0, callbacks=[clock, TrainingFigures()]).history
    assert "tokens_per_second" not in history and "gradient_norm" not in history
