"""The weights of the best epoch, by any figure."""

import keras
import numpy as np
import pytest

from keras_bert_impl.callbacks import BestWeights


def trained(scores, mode="max", **options):
    """(the weight that a model has after `fit`, the callback): the weight is the number of the epoch, from 1."""
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, use_bias=False)])
    model.compile("sgd", "mse", run_eagerly=keras.backend.backend() == "tensorflow")
    count = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: model.set_weights([np.array([[epoch + 1.0]])])
    )
    given = iter(scores)
    best = BestWeights(lambda model: next(given), mode, **options)
    history = model.fit(np.ones((2, 1)), np.ones((2, 1)), epochs=len(scores), verbose=0, callbacks=[count, best])
    assert history.history["score"] == pytest.approx(scores, nan_ok=True)
    return float(model.get_weights()[0][0, 0]), best


def test_the_first_of_the_best_epochs_is_kept():
    weight, best = trained([0.25, 0.5, 0.5, 0.375])
    assert weight == 2.0 and best.best_epoch() == 1


def test_a_smaller_score_is_better_where_asked():
    assert trained([0.25, 0.5, 0.125, 0.375], "min")[0] == 3.0


def test_a_score_that_is_no_number_is_never_the_best():
    assert trained([float("nan"), 0.5, float("nan")])[0] == 2.0
    with pytest.raises(ValueError, match=r"No epoch has a score that is a number: the scores are \[nan\]"):
        trained([float("nan")])
