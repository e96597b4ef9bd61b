"""Figures of a training: tokens and arithmetic per second, the norm of the gradients."""

import types

import keras
import pytest
from made_fits import LABELS, LENGTHS, TEXTS, build

from keras_bert_impl.callbacks import TrainingFigures, training_figures
from keras_bert_impl.callbacks.flops import training_flops


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """A clock that moves by 10 s in the first step, which compiles, and by 2 s in others; a machine of 1e6 FLOP/s."""
    now = [0.0]
    monkeypatch.setattr(training_figures, "time", types.SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(training_figures, "matrix_product_ceiling", lambda dtype: 1e6)

    def step(batch, logs):
        now[0] += 10.0 if now[0] == 0 else 2.0

    return keras.callbacks.LambdaCallback(on_train_batch_end=step)


def test_tokens_and_arithmetic_are_those_of_the_batches(clock):
    model = build()
    options = {"batch_size": 7, "epochs": 2, "shuffle": False, "verbose": 0}
    history = model.fit(TEXTS, LABELS, callbacks=[clock, TrainingFigures()], **options).history
    tokens = [sum(length + 2 for length in part) for part in (LENGTHS[:7], LENGTHS[7:])]
    # The first epoch without its first batch. Rows are padded to the longest, 52 tokens, rounded to 8 or 32.
    assert history["tokens_per_second"] == pytest.approx([tokens[1] / 2, sum(tokens) / 4])
    width = 64 if model.jit_compile else 56
    assert history["share_of_tokens"][1] == pytest.approx(sum(tokens) / (14 * width))
    flops = training_flops(model.encoder.config, 7, width, 0)
    assert history["flops_utilization"] == pytest.approx([flops / 2 / 1e6] * 2)


def test_the_norm_and_the_rate_are_those_of_the_last_step(clock):
    model = build()
    history = model.fit(TEXTS, LABELS, verbose=0, callbacks=[clock, TrainingFigures()]).history
    norm = float(keras.ops.convert_to_numpy(model.optimizer.gradient_norm))
    assert history["gradient_norm"] == [norm] and norm > 0
    assert history["learning_rate"] == [pytest.approx(1e-2)]


def test_figures_that_are_given_are_not_counted(clock):
    model = build()
    rows = ((model.rows(TEXTS), keras.ops.array(LABELS)) for _ in range(3))
    figures = TrainingFigures(tokens_per_step=100, positions_per_step=400, flops_per_step=3e5)
    history = model.fit(rows, steps_per_epoch=3, verbose=0, callbacks=[clock, figures]).history
    assert history["tokens_per_second"] == [50.0] and history["share_of_tokens"] == [0.25]
    assert history["flops_utilization"] == [pytest.approx(0.15)]


def test_what_cannot_be_counted_is_left_out(clock):
    model = build(optimizer="sgd")
    rows = ((model.rows(TEXTS), keras.ops.array(LABELS)) for _ in range(3))
    history = model.fit(rows, steps_per_epoch=3, verbose=0, callbacks=[clock, TrainingFigures()]).history
    assert "tokens_per_second" not in history and "gradient_norm" not in history
