"""A `fit` that was interrupted ends as if it had not been; one that could not is refused."""

import itertools
import pathlib
import random
import subprocess
import sys

import keras
import numpy as np
import pytest
from made_fits import LABELS, TEXTS, Interrupt, assert_equal, build, fit
from tiers import every_backend, on

import keras_bert_impl as kbi
from keras_bert_impl.callbacks import BestWeights, ExactResume
from keras_bert_impl.callbacks.saved_states import TrainingState

# 14 texts in batches of 3 are 5 steps. Interrupted in the first epoch, at the end of one, within one, in the last.
BREAKS = (3, 4, 3, 5)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return fit(tmp_path_factory.mktemp("whole"), validation_data=(TEXTS, LABELS))


@every_backend
def test_an_interrupted_fit_of_texts_ends_as_an_uninterrupted_one(whole, tmp_path):
    """Weights with dropout, and the history with the running means of metrics and with validation."""
    assert_equal(fit(tmp_path, BREAKS, validation_data=(TEXTS, LABELS)), whole)


def test_masks_of_texts_are_the_same_again(tmp_path):
    def build_masked_lm():
        return build(kbi.MaskedLM)

    runs = [fit(tmp_path / name, breaks, (TEXTS,), build_masked_lm) for name, breaks in (("a", ()), ("b", (7,)))]
    assert_equal(*runs)


def test_arrays_are_batched_in_an_order_that_can_be_repeated(tmp_path):
    def rows(model):
        return model.rows(TEXTS), np.array(LABELS)

    runs = [fit(tmp_path / name, breaks, rows) for name, breaks in (("a", ()), ("b", (7,)))]
    assert_equal(*runs)


@pytest.mark.parametrize("steps", [None, 4])
def test_a_dataset_is_read_on_from_the_step(tmp_path, steps):
    """With steps_per_epoch, an epoch begins where the one before stopped in the dataset."""
    tf = pytest.importorskip("tensorflow")

    def dataset(model):
        return (tf.data.Dataset.from_tensor_slices((model.rows(TEXTS), LABELS)).batch(3),)

    options = {"batch_size": None, "steps_per_epoch": steps}
    runs = [fit(tmp_path / name, breaks, dataset, **options) for name, breaks in (("a", ()), ("b", (7,)))]
    assert_equal(*runs)


def test_a_dataset_of_texts_is_read_on_from_the_step(tmp_path):
    tf = pytest.importorskip("tensorflow")
    dataset = tf.data.Dataset.from_tensor_slices((TEXTS, LABELS)).batch(3)
    runs = [fit(tmp_path / name, breaks, (dataset,), batch_size=None) for name, breaks in (("a", ()), ("b", (7,)))]
    assert_equal(*runs)


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

    options = {"batch_size": None, "steps_per_epoch": 4}
    runs = [fit(tmp_path / name, breaks, data, **options) for name, breaks in (("a", ()), ("b", (7,)))]
    assert_equal(*runs)
    # The first batch is also read for the checks.
    assert [step for step in opened if step][-2:] == [6, 8], "the rest of the second epoch, and the others"


def test_averaged_weights_replace_the_weights_only_at_the_end(tmp_path):
    """Keras does it at the end of each `fit`, and the rest of an interrupted epoch is one."""

    def build_averaged():
        return build(optimizer=kbi.optimization.BertAdamW(1e-2, use_ema=True, ema_momentum=0.9))

    runs = [fit(tmp_path / name, breaks, build=build_averaged) for name, breaks in (("a", ()), ("b", (3,)))]
    assert_equal(*runs)


def test_the_best_weights_and_the_patience_of_others_go_on(tmp_path):
    callbacks = [
        lambda: BestWeights("loss", mode="min"),
        lambda: keras.callbacks.EarlyStopping("accuracy", patience=1, min_delta=2.0),
    ]
    runs = [fit(tmp_path / name, breaks, callbacks=callbacks, epochs=9) for name, breaks in (("a", ()), ("b", (4, 4)))]
    assert_equal(*runs)
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
    refused((build_rows(), np.ones(2)), "validation_split divides arrays within Keras", tmp_path, validation_split=0.5)


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
    with pytest.raises(ValueError, match="holds an epoch of 5 steps, 2 of them done, but this one has 4"):
        fit(tmp_path, steps_per_epoch=4)


def test_callbacks_that_move_the_weights_or_the_beginning_are_refused(tmp_path):
    with pytest.raises(ValueError, match="BackupAndRestore and ExactResume exclude each other"):
        fit(tmp_path / "a", callbacks=[lambda: keras.callbacks.BackupAndRestore(str(tmp_path / "b"))])
    with pytest.raises(ValueError, match="ExactResume and ExactResume exclude each other"):
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


NOTEBOOK = """
import sys

sys.path[:0] = {paths}
import keras
import keras_bert_impl as kbi
from made_fits import LABELS, TEXTS, build

class Tell(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        print("step", flush=True)

directory = sys.argv[1]
model = build(run_eagerly=False)
model.fit(
    TEXTS * 3, LABELS * 3, batch_size=3, epochs=5, verbose=0, validation_data=(TEXTS, LABELS),
    callbacks=[
        Tell(),
        kbi.callbacks.ExactResume(directory, every_steps=2),
        kbi.callbacks.BestWeights("val_accuracy"),
        kbi.callbacks.StopOnBadLoss(directory),
        kbi.callbacks.TrainingFigures(),
    ],
)
model.save_weights(directory + "/end.weights.h5")
"""


@pytest.mark.full
def test_a_notebook_killed_ten_times_ends_as_if_it_had_not_been(tmp_path):
    """SIGKILL after a random number of steps, most of them within an epoch of 14; steps are compiled as usual."""
    tests = pathlib.Path(__file__).parents[1]
    script = tmp_path / "notebook.py"
    script.write_text(NOTEBOOK.format(paths=[str(tests), str(tests.parent)]))

    def start(name):
        command = [sys.executable, script, tmp_path / name]
        (tmp_path / name).mkdir(exist_ok=True)
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    whole = start("whole")
    output, errors = whole.communicate()
    assert whole.returncode == 0, errors
    draw, kills = random.Random(0), []
    while True:
        process, steps = start("broken"), 0
        until = draw.randint(3, 9) if len(kills) < 10 else None
        for line in process.stdout:
            steps += line == "step\n"
            if steps == until:
                process.kill()
                break
        if process.wait() == 0:
            break
        assert until is not None, process.stderr.read()
        kills.append(steps)
    print(f"{keras.backend.backend()}: {output.count('step')} steps; killed after {kills} steps of each process")
    assert len(kills) == 10
    one, other = (TrainingState(tmp_path / name).read_last() for name in ("broken", "whole"))
    assert one[0] == other[0] == 70 and one[1].keys() == other[1].keys()
    for name, array in one[1].items():
        np.testing.assert_array_equal(array, other[1][name], err_msg=name)
    model, arrays = build(), []
    for name in ("broken", "whole"):
        model.load_weights(tmp_path / name / "end.weights.h5")
        arrays.append(model.get_weights())
    assert all(np.array_equal(a, b) for a, b in zip(*arrays, strict=True))
