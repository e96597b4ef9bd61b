"""A `fit` that was interrupted ends as if it had not been; one that could not is refused."""

import itertools
import random

import keras
import numpy as np
import pytest
from made_fits import LABELS, TEXTS, Interrupt, assert_equal, build, fit
from tiers import on

import keras_bert_impl as kbi
from keras_bert_impl.callbacks import BestWeights, ExactResume


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return fit(tmp_path_factory.mktemp("whole"), validation_data=(TEXTS, LABELS))


def test_an_interrupted_fit_of_texts_ends_as_an_uninterrupted_one(whole, tmp_path):
    """Weights with dropout, and the history with the running means of metrics and with validation.

    14 texts in batches of 3 are 5 steps. Interrupted in the first epoch, at its end, and within the second.
    """
    assert_equal(fit(tmp_path, (3, 3, 3), validation_data=(TEXTS, LABELS)), whole)


def assert_goes_on(tmp_path, *arguments, broken=(7,), **options):
    """Compares a fit with one that is interrupted."""
    runs = [fit(tmp_path / name, breaks, *arguments, **options) for name, breaks in (("a", ()), ("b", broken))]
    assert_equal(*runs)
    return runs


@on("tensorflow", "jax")
def test_an_interrupted_epoch_goes_on(tmp_path):
    assert_goes_on(tmp_path, broken=(3,), epochs=1)


def test_masks_of_texts_are_the_same_again(tmp_path):
    assert_goes_on(tmp_path, (TEXTS,), lambda: build(kbi.MaskedLM))


def test_arrays_are_batched_in_an_order_that_can_be_repeated(tmp_path):
    assert_goes_on(tmp_path, lambda model: (model.rows(TEXTS), np.array(LABELS)))


def test_a_dataset_is_read_on_from_the_step(tmp_path):
    """With steps_per_epoch, an epoch begins where the one before stopped in the dataset."""
    tf = pytest.importorskip("tensorflow")

    def dataset(model):
        return (tf.data.Dataset.from_tensor_slices((model.rows(TEXTS), LABELS)).batch(3),)

    assert_goes_on(tmp_path, dataset, batch_size=None, steps_per_epoch=4)


@pytest.mark.full
def test_a_dataset_of_texts_is_read_on_from_the_step(tmp_path):
    tf = pytest.importorskip("tensorflow")
    dataset = tf.data.Dataset.from_tensor_slices((TEXTS, LABELS)).batch(3)
    assert_goes_on(tmp_path, (dataset,), batch_size=None)


def test_a_function_opens_the_data_at_the_step(tmp_path):
    tf = pytest.importorskip("tensorflow")
    opened = []

    def data(model):
        rows, labels = model.rows(TEXTS), np.array(LABELS)

        def at(step):
            opened.append(step)
            steps = tf.data.Dataset.range(step, 100)
            order = steps.map(lambda s: tf.random.stateless_uniform((3,), (1, s), 0, 14, tf.int32))
            return order.map(lambda p: ({name: tf.gather(a, p) for name, a in rows.items()}, tf.gather(labels, p)))

        return (at,)

    assert_goes_on(tmp_path, data, batch_size=None, steps_per_epoch=4, epochs=3)
    # The first batch is also read for the checks.
    assert [step for step in opened if step][-2:] == [6, 8], "the rest of the second epoch, and the others"


def test_averaged_weights_replace_the_weights_only_at_the_end(tmp_path):
    """Keras does it at the end of each `fit`, and the rest of an interrupted epoch is one."""

    def build_averaged():
        return build(optimizer=kbi.optimization.BertAdamW(1e-2, use_ema=True, ema_momentum=0.9))

    assert_goes_on(tmp_path, broken=(3,), build=build_averaged)


def test_the_best_weights_and_the_patience_of_others_go_on(tmp_path):
    callbacks = [
        lambda: BestWeights("loss", mode="min"),
        lambda: keras.callbacks.EarlyStopping("accuracy", patience=1, min_delta=2.0),
    ]
    runs = assert_goes_on(tmp_path, broken=(4, 4), callbacks=callbacks, epochs=9)
    assert len(runs[0].history.epoch) == 2


def test_what_is_complete_is_not_trained_again(tmp_path):
    def stop():
        return keras.callbacks.EarlyStopping("loss", patience=1, min_delta=9.0)

    first, steps = fit(tmp_path, callbacks=[stop], epochs=5), []
    seen = keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: steps.append(batch))
    again = fit(tmp_path, callbacks=[stop, lambda: seen], epochs=5)
    assert_equal(again, first)
    assert steps == [] and len(first.history.epoch) == 2


def test_callbacks_see_one_training_with_the_numbers_of_the_whole_epoch(tmp_path):
    seen = []
    log = keras.callbacks.LambdaCallback(
        on_train_begin=lambda logs: seen.append("begin"),
        on_epoch_begin=lambda epoch, logs: seen.append(f"epoch {epoch}"),
        on_train_batch_end=lambda batch, logs: seen.append(batch),
        on_train_end=lambda logs: seen.append("end"),
    )
    fit(tmp_path, (3,), callbacks=[lambda: seen.clear() or log], epochs=2)
    assert seen == ["begin", "epoch 0", 2, 3, 4, "epoch 1", 0, 1, 2, 3, 4, "end"]


def test_the_order_of_texts_is_that_of_the_first_process(tmp_path):
    """Even if the next one does not call set_random_seed."""
    orders = []

    class Order(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            orders.append(self.data.dataset.seed)

        def set_data(self, data, reason=None):
            self.data = data

    for number in range(2):
        model = build()
        random.seed(number)
        model.fit(TEXTS, LABELS, epochs=number + 1, verbose=0, callbacks=[ExactResume(tmp_path), Order()])
    assert len(orders) == 2 and orders[0] == orders[1]


class Changing(keras.utils.PyDataset):
    """Gives another batch each time."""

    def __init__(self):
        super().__init__()
        self.labels = itertools.count()

    def __len__(self):
        return 2

    def __getitem__(self, index):
        return build_rows(), np.full(2, next(self.labels) % 3)


def build_rows():
    return {name: np.ones((2, 3), "int32") for name in ("token_ids", "segment_ids", "padding_mask")}


class Reshuffled(Changing):
    def on_epoch_end(self):
        self.random = np.random.default_rng()


def refused(data, message, tmp_path, **options):
    with pytest.raises(ValueError, match=message):
        build().fit(*data, verbose=0, callbacks=[ExactResume(tmp_path)], **options)


def test_data_that_cannot_be_resumed_is_refused(tmp_path):
    refused((iter([(build_rows(), np.ones(2))]),), "can only be read from its beginning", tmp_path, steps_per_epoch=1)
    refused((Reshuffled(),), "Reshuffled.on_epoch_end changes its batches", tmp_path, shuffle=False)
    refused((Changing(),), "shuffle=True makes Keras permute the batches of Changing", tmp_path)
    refused((Changing(),), "yields other batches when it is read again", tmp_path, shuffle=False)
    refused((build_rows(), np.ones(2)), "validation_split is not supported", tmp_path, validation_split=0.5)


def test_a_dataset_that_is_shuffled_anew_is_refused(tmp_path):
    tf = pytest.importorskip("tensorflow")
    dataset = tf.data.Dataset.from_tensor_slices((TEXTS, LABELS)).shuffle(14, seed=1)
    refused((dataset.batch(3),), "yields other batches .* reshuffle_each_iteration=False", tmp_path)


def test_another_training_is_refused(tmp_path):
    fit(tmp_path, epochs=1)
    other = kbi.optimization.BertAdamW(1e-3)
    with pytest.raises(ValueError, match=r"The optimizer's learning_rate was 0.009.*, now it is 0.001"):
        fit(tmp_path, build=lambda: build(optimizer=other))
    with pytest.raises(ValueError, match=r"data was LengthBatches of 5 batches, this is LengthBatches of 7 batches"):
        fit(tmp_path, batch_size=2)
    with pytest.raises(ValueError, match=r"Batch 0 of its data was different: the data has changed"):
        fit(tmp_path, data=(TEXTS[::-1], LABELS))
    with pytest.raises(ValueError, match=r"had the callbacks none, this one has BestWeights_1"):
        fit(tmp_path, callbacks=[lambda: BestWeights("loss")])


def test_an_epoch_that_has_begun_keeps_its_size(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        build().fit(TEXTS, LABELS, batch_size=3, callbacks=[ExactResume(tmp_path, every_steps=2), Interrupt(3)])
    with pytest.raises(ValueError, match="was saved at step 2 of 5 of an epoch, but this epoch has 4"):
        fit(tmp_path, steps_per_epoch=4)


def test_callbacks_that_move_the_weights_or_the_beginning_are_refused(tmp_path):
    with pytest.raises(ValueError, match="BackupAndRestore and ExactResume cannot be combined"):
        fit(tmp_path / "a", callbacks=[lambda: keras.callbacks.BackupAndRestore(str(tmp_path / "b"))])
    with pytest.raises(ValueError, match="ExactResume and ExactResume cannot be combined"):
        fit(tmp_path / "a", callbacks=[lambda: ExactResume(tmp_path / "c")])


def test_the_fit_of_another_model_is_refused(tmp_path):
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    model.compile("sgd", "mse")
    with pytest.raises(ValueError, match="only with the fit of a model of keras_bert_impl"):
        model.fit(np.ones((4, 3)), np.ones((4, 2)), verbose=0, callbacks=[ExactResume(tmp_path)])


@on("tensorflow", "jax")  # Keras has no steps_per_execution on torch
def test_steps_that_do_not_fill_an_execution_are_refused(tmp_path):
    with pytest.raises(ValueError, match="5 steps are not a multiple of steps_per_execution 2"):
        fit(tmp_path, build=lambda: build(steps_per_execution=2))
