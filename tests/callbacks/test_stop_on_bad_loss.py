"""A loss that is not a number stops the training and leaves its batch."""

import keras
import numpy as np
import pytest
from made_fits import LABELS, TEXTS, build
from saved_arrays import read_last
from tiers import on

import keras_bert_impl as kbi
from keras_bert_impl.callbacks import ExactResume, StopOnBadLoss


def diverging():
    return build(kbi.TextRegressor, optimizer="sgd", weighted_metrics=["mean_absolute_error"])


BAD = [0.0] * 14
BAD[11] = 1e38  # its squared error is infinite


def test_the_batch_of_an_infinite_loss_is_saved(tmp_path):
    model = diverging()
    with pytest.raises(ValueError, match=r"The loss of step 4 is inf.*diverged_step_00000004.npz holds the examples"):
        model.fit(TEXTS, BAD, batch_size=3, shuffle=False, verbose=0, callbacks=[StopOnBadLoss(tmp_path)])
    with np.load(tmp_path / "diverged_step_00000004.npz") as batch:
        assert batch["labels"].tolist() == [0.0, 0.0, np.float64(1e38).astype(batch["labels"].dtype)]
        rows = model.rows(TEXTS, pad_to=batch["token_ids"].shape[1])
        np.testing.assert_array_equal(batch["token_ids"], rows["token_ids"][9:12])


def test_steps_are_counted_over_epochs_and_resumptions(tmp_path):
    """The bad loss is that of step 4 of the second epoch, which is begun anew after an interruption."""
    resume = ExactResume(tmp_path / "run", every_steps=2)
    model = build()
    model.fit(TEXTS, LABELS, batch_size=3, shuffle=False, verbose=0, callbacks=[resume])
    assert read_last(tmp_path / "run")[0] == 5

    class Poison(kbi.callbacks.BestWeights):
        def __init__(self):
            super().__init__("loss", "min")

        def get_state(self):
            return None

        def on_train_batch_begin(self, batch, logs=None):
            if batch == 3:
                self.model.weights[0].assign(np.full(self.model.weights[0].shape, np.nan))

    callbacks = [ExactResume(tmp_path / "run"), Poison(), StopOnBadLoss(tmp_path)]
    with pytest.raises(ValueError, match="The loss of step 9 is nan"):
        build().fit(TEXTS, LABELS, batch_size=3, shuffle=False, epochs=2, verbose=0, callbacks=callbacks)
    assert (tmp_path / "diverged_step_00000009.npz").is_file()
    assert read_last(tmp_path / "run")[0] == 5, "the spoiled weights are not saved"


@on("tensorflow", "jax")  # Keras has no steps_per_execution on torch
def test_of_steps_that_are_executed_together_the_bad_one_is_named(tmp_path):
    """Of the steps 4 to 6, one execution, step 4 has the bad label; the state that is kept is that of step 3."""
    labels = [0.0] * 18
    labels[11] = 1e38
    model = build(kbi.TextRegressor, weighted_metrics=["mean_absolute_error"], steps_per_execution=3, run_eagerly=False)
    callbacks = [ExactResume(tmp_path / "run", every_steps=3), StopOnBadLoss(tmp_path)]
    with pytest.raises(
        ValueError, match=r"The loss of step 4 is (inf|nan).*diverged_step_00000004.npz holds the examples"
    ):
        model.fit(TEXTS + TEXTS[:4], labels, batch_size=3, epochs=2, shuffle=False, verbose=0, callbacks=callbacks)
    with np.load(tmp_path / "diverged_step_00000004.npz") as batch:
        assert np.max(batch["labels"]) > 9e37 and len(batch["labels"]) == 3
    step, arrays, _ = read_last(tmp_path / "run")
    assert step == 3 and all(np.isfinite(array).all() for name, array in arrays.items() if name.startswith("model/"))


def test_an_update_that_spoils_the_weights_is_found_although_its_loss_is_finite(tmp_path):
    """The last batch of the epoch has a bad gradient: no loss shows it, and the state would be saved with NaN."""
    model, resume = build(), ExactResume(tmp_path / "run", every_minutes=None)

    class Spoil(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            if batch == 4:
                self.model.optimizer.first_bad_update.assign(5)

    with pytest.raises(ValueError, match="The gradient of step 5 is not finite"):
        model.fit(
            TEXTS, LABELS, batch_size=3, shuffle=False, verbose=0, callbacks=[Spoil(), StopOnBadLoss(tmp_path), resume]
        )
    assert read_last(tmp_path / "run") is None


def test_a_training_after_a_bad_one_is_judged_by_itself(tmp_path):
    model = build()
    model.optimizer.build(model.trainable_variables)
    model.optimizer.first_bad_update.assign(2)
    model.fit(TEXTS, LABELS, batch_size=7, verbose=0, callbacks=[StopOnBadLoss(tmp_path)])


def test_of_data_that_cannot_be_read_again_the_step_is_named(tmp_path):
    model = diverging()
    batches = ((model.rows(TEXTS[:2]), np.array([0.0, label])) for label in (0.0, 1e38))
    message = r"The loss of step 2 is inf. Its batch could not be saved. generator can only be read from its beginning"
    with pytest.raises(ValueError, match=message):
        model.fit(batches, steps_per_epoch=2, verbose=0, callbacks=[StopOnBadLoss(tmp_path)])
