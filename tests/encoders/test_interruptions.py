"""What an error or Ctrl-C leaves of a model: its weights, on every backend. Keras on JAX computes outside the model."""

import dataclasses
import os
import signal

import keras
import numpy as np
import pytest
from conftest import without
from tiers import full_but, on

import keras_bert_impl as kbi

pytestmark = on("jax")
LABELS = np.array([0, 2], "int32")


class FailingBatches(keras.utils.PyDataset):
    """Equal batches, of which one cannot be read."""

    num_batches = 3

    def __init__(self, batch, failing):
        super().__init__()
        self.batch, self.failing = batch, failing

    def __getitem__(self, index):
        if index == self.failing:
            raise OSError("unreadable")
        return self.batch


@pytest.fixture
def model(small_config):
    return kbi.TextClassifier(kbi.BertEncoder(dataclasses.replace(small_config, num_layers=1)), 3, dropout_rate=0.0)


@pytest.fixture
def rows(small_batch):
    return without(small_batch, "mask_positions")


def works_as_before(model, rows, expected, tmp_path):
    np.testing.assert_array_equal(model.predict_on_batch(rows), expected)
    assert np.isfinite(model.fit(rows, LABELS, verbose=0).history["loss"][0])
    model.save(tmp_path / "model.keras")
    return True


@pytest.mark.parametrize(
    ("method", "failing"),
    full_but([(method, failing) for method in ("fit", "evaluate", "predict") for failing in (0, 2)], ("fit", 2)),
)
def test_an_error_keeps_the_weights(method, failing, model, rows, tmp_path):
    model.compile("sgd", model.loss)
    model.optimizer.learning_rate = 0.0  # what `fit` trains before the error
    model.train_on_batch(rows, LABELS)  # whose state is not what is given back
    expected = model.predict_on_batch(rows)
    batch = (rows,) if method == "predict" else (rows, LABELS)
    with pytest.raises(OSError, match="unreadable"):
        getattr(model, method)(FailingBatches(batch, failing), verbose=0)
    assert works_as_before(model, rows, expected, tmp_path)


@pytest.mark.parametrize("method", full_but(["evaluate", "predict"], "evaluate"))
def test_ctrl_c_keeps_the_weights(method, model, rows, tmp_path):
    def interrupt(batch, logs=None):
        raise KeyboardInterrupt

    expected = model.predict_on_batch(rows)
    callback = keras.callbacks.LambdaCallback()
    callback.on_test_batch_end = callback.on_predict_batch_end = interrupt
    labels = () if method == "predict" else (LABELS,)
    with pytest.raises(KeyboardInterrupt):
        getattr(model, method)(rows, *labels, verbose=0, callbacks=[callback])
    assert works_as_before(model, rows, expected, tmp_path)


@pytest.mark.parametrize("method", full_but(["fit", "predict", "train_on_batch", "test_on_batch"], "train_on_batch"))
def test_an_error_in_the_step_keeps_the_weights(method, model, rows, monkeypatch, tmp_path):
    def fail(*arguments):
        raise OSError("the step failed")

    labels = () if method == "predict" else (LABELS,)
    getattr(model, method)(rows, *labels)
    expected = model.predict_on_batch(rows)
    name = {"fit": "train", "train_on_batch": "train", "predict": "predict"}.get(method, "test") + "_function"
    step = getattr(model, name)
    setattr(model, name, fail)
    with pytest.raises(OSError, match="the step failed"):
        getattr(model, method)(rows, *labels)
    setattr(model, name, step)
    assert works_as_before(model, rows, expected, tmp_path)


@pytest.mark.parametrize("method", full_but(["fit", "evaluate", "train_on_batch", "predict_on_batch"], "fit"))
def test_ctrl_c_within_a_step_comes_after_it(method, model, rows, monkeypatch, tmp_path):
    model.compile("sgd", model.loss)
    model.optimizer.learning_rate = 0.0
    labels = () if "predict" in method else (LABELS,)
    getattr(model, method)(rows, *labels)
    expected = model.predict_on_batch(rows)
    step, is_read = keras.Model.stateless_call, []

    def interrupted(*arguments, **options):  # called while the step is compiled, before it takes the weights
        os.kill(os.getpid(), signal.SIGINT)
        is_read.append(True)
        return step(*arguments, **options)

    monkeypatch.setattr(keras.Model, "stateless_call", interrupted)
    # A shell that runs the tests in the background has them ignore Ctrl-C.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    model.train_function = model.test_function = model.predict_function = None
    with pytest.raises(KeyboardInterrupt):
        getattr(model, method)(rows, *labels)
    signal.signal(signal.SIGINT, handler)
    monkeypatch.undo()
    assert is_read and works_as_before(model, rows, expected, tmp_path)


@pytest.mark.full
def test_a_callback_may_call_the_model_within_an_epoch(model, rows):
    model.compile("sgd", model.loss)
    before = keras.ops.convert_to_numpy(model.weights[0])
    seen = []

    def look(batch, logs):
        seen.append(model.predict(rows, verbose=0))

    batches = FailingBatches((rows, LABELS), None)
    model.fit(batches, verbose=0, callbacks=[keras.callbacks.LambdaCallback(on_train_batch_end=look)])
    assert len(seen) == 3 and np.abs(seen[0] - seen[1]).max() > 0
    np.testing.assert_array_equal(model.predict(rows, verbose=0), seen[2])
    assert np.abs(keras.ops.convert_to_numpy(model.weights[0]) - before).max() > 0
