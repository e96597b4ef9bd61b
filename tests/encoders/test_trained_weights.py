"""A second `fit` trains on from the weights that the first one trained, not from their moving average."""

import copy

import keras
import numpy as np
import pytest
from made_fits import LABELS, TEXTS, build
from tiers import full_but

import keras_bert_impl as kbi

ARGUMENTS = {"batch_size": 14, "shuffle": False, "verbose": 0}


def averaged(rate=1e-2):
    """A model without dropout, whose weights are averaged."""
    return without_dropout(build(optimizer=kbi.optimization.BertAdamW(rate, use_ema=True, ema_momentum=0.9)))


def without_dropout(model):
    for layer in model._flatten_layers():
        for name in {"rate", "dropout_rate"} & vars(layer).keys():
            setattr(layer, name, 0.0)
    return model


def arrays(variables):
    return [keras.ops.convert_to_numpy(variable) for variable in variables]


def assert_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


def test_two_fits_of_an_epoch_end_like_one_of_two():
    once, twice = averaged(), averaged()
    once.fit(TEXTS, LABELS, epochs=2, **ARGUMENTS)
    for _ in range(2):
        twice.fit(TEXTS, LABELS, **ARGUMENTS)
    assert_same(arrays(twice.weights), arrays(once.weights))
    assert_same(arrays(twice.optimizer.variables), arrays(once.optimizer.variables))


def test_the_average_is_what_is_evaluated_and_saved_in_between():
    model, again = averaged(), averaged()
    model.fit(TEXTS, LABELS, **ARGUMENTS)
    again.fit(TEXTS, LABELS, **ARGUMENTS)
    averages = [a for a in again.optimizer._model_variables_moving_average if a is not None]
    assert_same(arrays(again.trainable_variables), arrays(averages))
    model.evaluate(TEXTS, LABELS, verbose=0)
    model.predict(TEXTS, verbose=0)
    for one in (model, again):
        one.fit(TEXTS, LABELS, **ARGUMENTS)
    assert_same(arrays(model.weights), arrays(again.weights))


def test_weights_that_were_set_in_between_are_kept():
    model = averaged(rate=0.0)
    model.fit(TEXTS, LABELS, **ARGUMENTS)
    start = [array + 1.0 for array in arrays(model.trainable_variables)]
    for variable, array in zip(model.trainable_variables, start, strict=True):
        variable.assign(array)
    seen = []
    first = keras.callbacks.LambdaCallback(on_train_begin=lambda logs: seen.extend(arrays(model.trainable_variables)))
    model.fit(TEXTS, LABELS, callbacks=[first], **ARGUMENTS)
    assert_same(seen, start)


@pytest.mark.parametrize("how", full_but(["file", "file of weights", "deepcopy"], "file"))
def test_a_model_that_was_saved_trains_on_from_the_weights_that_were_trained(how, tmp_path):
    model = averaged()
    model.fit(TEXTS, LABELS, **ARGUMENTS)
    if how == "deepcopy":
        again = copy.deepcopy(copy.deepcopy(model))
    elif how == "file":
        model.save(tmp_path / "model.keras")
        again = keras.saving.load_model(tmp_path / "model.keras")
    else:
        again = averaged()
        again.fit(TEXTS, LABELS, epochs=2, **ARGUMENTS)
        model.save_weights(tmp_path / "model.weights.h5")
        again.load_weights(tmp_path / "model.weights.h5")
    assert_same(arrays(again.weights), arrays(model.weights))
    for one in (model, without_dropout(again)):
        one.fit(TEXTS, LABELS, **ARGUMENTS)
    assert_same(arrays(again.weights), arrays(model.weights))
    assert_same(arrays(again.optimizer.variables), arrays(model.optimizer.variables))


@pytest.mark.parametrize(
    "afterwards", full_but(["frozen", "without its optimizer", "weights with another optimizer"], "frozen")
)
def test_a_model_with_averages_can_be_saved(afterwards, tmp_path):
    model = averaged()
    model.fit(TEXTS, LABELS, **ARGUMENTS)
    expected = model.predict(TEXTS, verbose=0)
    if afterwards == "frozen":
        model.freeze_layers(1)
    elif afterwards == "without its optimizer":
        model.save(tmp_path / "first.keras")
        model = keras.saving.load_model(tmp_path / "first.keras", compile=False)
    else:
        model.save_weights(tmp_path / "first.weights.h5")
        model = build()
        model.load_weights(tmp_path / "first.weights.h5")
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras", compile=False)
    np.testing.assert_allclose(loaded.predict(TEXTS, verbose=0), expected, atol=1e-6)
