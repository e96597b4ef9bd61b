"""`ExactResume`: an interrupted `fit` continues, bit for bit, when it is called again."""

import json
import time

import keras
import numpy as np

from keras_bert_impl import distribution
from keras_bert_impl.callbacks.saved_states import TrainingState, assign, restore, step_of
from keras_bert_impl.callbacks.sharded_state import DamagedState
from keras_bert_impl.callbacks.step_data import StepCallback, checksum
from keras_bert_impl.console import say
from keras_bert_impl.distribution import SharedClock
from keras_bert_impl.kernels.random_state import random_state, restore_random_state

REMEDY = "Run the interrupted training again as it was, or give a new training a directory of its own."

# A callback with a state has two methods: `get_state()` returns (a JSON value, a list of arrays), `set_state(value,
# arrays)` restores them. The state is saved under the callback's attribute `state_name`, by default the name of its
# class. Of Keras' own callbacks these attributes are saved, single numbers or None; EarlyStopping has weights, too.
OF_KERAS = {
    keras.callbacks.EarlyStopping: ("best", "wait", "best_epoch", "stopped_epoch"),
    keras.callbacks.ReduceLROnPlateau: ("best", "wait", "cooldown_counter"),
    keras.callbacks.ModelCheckpoint: ("best",),
}


def get_state(callback):
    """The state of a callback; None if it has none."""
    if hasattr(callback, "get_state"):
        return callback.get_state()
    for kind, names in OF_KERAS.items():
        if isinstance(callback, kind):
            values = {name: getattr(callback, name) for name in names}
            numbers = {name: None if value is None else float(value) for name, value in values.items()}
            return numbers, list(getattr(callback, "best_weights", None) or [])
    return None


def set_state(callback, value, arrays):
    """Restores what `get_state` returned."""
    if hasattr(callback, "set_state"):
        callback.set_state(value, arrays)
        return
    for name, number in value.items():
        is_count = name not in ("best",) and number is not None
        setattr(callback, name, int(number) if is_count else number)
    if isinstance(callback, keras.callbacks.EarlyStopping):
        callback.best_weights = arrays or None


def states_of(callbacks):
    """(the JSON values of all callbacks with a state, by their names; their arrays as "name/place")."""
    values, arrays = {}, {}
    for name, _, (value, found) in with_states(callbacks):
        values[name] = [value, len(found)]
        arrays |= {f"{name}/{place}": array for place, array in enumerate(found)}
    return values, arrays


def with_states(callbacks):
    """Yields (name, callback, state) of those that have a state; names are numbered, to tell two of a class apart."""
    names = []
    for callback in callbacks:
        state = get_state(callback)
        if state is not None:
            names.append(getattr(callback, "state_name", type(callback).__name__))
            yield f"{names[-1]}_{names.count(names[-1])}", callback, state


def restore_states(callbacks, values, arrays):
    """Restores what `states_of` returned; arrays are those saved beside the variables.

    Raises: ValueError if the callbacks with a state are not the saved ones.
    """
    found = {name: callback for name, callback, _ in with_states(callbacks)}
    if found.keys() != values.keys():
        saved, given = (", ".join(sorted(names)) or "none" for names in (values, found))
        raise ValueError(f"The saved training had the callbacks {saved}, this one has {given}: pass the same ones.")
    for name, (value, count) in values.items():
        set_state(found[name], value, [arrays[f"{name}/{place}"] for place in range(count)])


class ExactResume(StepCallback):
    """Saves the complete state of a `fit`, so that an interrupted training continues where it stopped, bit for bit.

        model.fit(texts, labels, epochs=3, callbacks=[kbi.callbacks.ExactResume("run")])

    Run the same lines again after an interruption, also in a new process: the final weights are those of an
    uninterrupted training. The state holds weights, optimizer, random generators, metrics, the position in the data,
    and the state of other callbacks. If the training is complete, the same lines restore its result.

    It works with the `fit` of this library's models. The data must be a function of the step, or of seed and epoch:

    - texts and arrays, in an order that this callback can repeat, which is not that of Keras;
    - a `keras.utils.PyDataset` whose batches depend only on their index, or that has a method `start_epoch(epoch)`;
    - a `tf.data.Dataset` that yields the same batches whenever it is read: `shuffle(..., seed=1,
      reshuffle_each_iteration=False)`;
    - a function from the step to a dataset that begins with this step's batch, together with steps_per_epoch.

    Args:
        directory (str or pathlib.Path): where to save the states of this training alone. On JAX also a remote
            directory, such as gs://bucket/folder.
        every_minutes (float, optional): time between two saves within an epoch; None turns them off. The state is
            always saved at the end of an epoch. With several processes, the first process's clock decides.
            Default: 5.0.
        every_steps (int, optional): number of steps between two further saves within an epoch. Default: None, no
            further saves.

    Attributes:
        step (int): number of steps done, over all epochs.

    Raises: (in `fit`) ValueError if the data cannot be resumed, or if model, optimizer, data or the other callbacks are
        not those of the saved training.

    Example:
        >>> import tempfile
        >>> model = kbi.TextRegressor.from_pretrained("small_english")
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     resume = kbi.callbacks.ExactResume(directory)
        ...     history = model.fit(["Good.", "Bad."], [1.0, 0.0], callbacks=[resume], verbose=0)
        >>> resume.step
        1
    """

    def __init__(self, directory, every_minutes=5.0, every_steps=None):
        super().__init__()
        self.state = None if directory is None else TrainingState(directory)
        self.every_minutes, self.every_steps = every_minutes, every_steps
        self.epoch, self.done, self.steps_per_epoch = 0, 0, None
        self.random, self.notes, self.saved, self.arrays = {}, {}, None, {}
        self.seconds_to_save = 0.0

    def open(self, model, data, others, initial_epoch, stop_is_final):
        """Restores the saved state, if there is one, into model and callbacks.

        Returns: (epoch, step, steps done in this epoch, whether a callback has stopped the training for good).
        """
        self.data, self.others, self.stop_is_final = data, others, stop_is_final
        self.set_model(model)
        self.random, self.saved, self.arrays, self.history = random_state(), None, {}, {}
        for saved in self.state.newest_first() if self.state is not None else ():
            self.step, self.notes = step_of(saved.path), saved.notes
            self._check_same(model, data)
            try:
                self.arrays = restore(model, saved)
            except DamagedState as error:  # in all processes
                say(f"  {error}")
                continue
            self.saved = saved
            break
        if self.saved is None:
            self.step = 0
            self.notes = {"optimizer": optimizer_config(model), "data": data.description}
            self.notes |= {"seed": getattr(getattr(data, "dataset", None), "seed", None), "checksums": {}}
            if self.state is not None and data.is_checked and not distribution.is_shared():
                self._check_repeatable()
            return initial_epoch, 0, 0, False
        self.random = {
            name.removeprefix("random/"): array for name, array in self.arrays.items() if name.startswith("random/")
        }
        self.history = self.notes["history"]
        say(f"  resuming after step {self.step:,}")
        return self.notes["epoch"], self.step, self.notes["done"], self.notes["is_stopped"]

    def saved_state(self, name):
        """The JSON value that the callback of this `state_name` had saved; None if there is no saved state."""
        return self.notes["callbacks"][f"{name}_1"][0] if self.saved is not None else None

    def _check_repeatable(self):
        """Records the checksum of the first batch. Raises ValueError if the batch differs when it is read again."""
        first, *others = map(checksum, self.data.read_again())
        if any(other != first for other in others):
            raise ValueError(
                "ExactResume cannot resume this fit. The data yields other batches when it is read again: shuffle with "
                "shuffle(..., seed=1, reshuffle_each_iteration=False), draw from a generator that is seeded by the "
                "batch's index, or pass a function from the step to a dataset."
            )
        self.data.checksums[0] = first

    def _check_same(self, model, data):
        """Raises ValueError if the saved state is that of another training."""
        where = f"{self.state.directory} holds the state of another training."
        found = optimizer_config(model)
        for name in sorted(found.keys() | self.notes["optimizer"].keys()):
            saved, given = self.notes["optimizer"].get(name), found.get(name)
            if saved != given:
                raise ValueError(f"{where} The optimizer's {name} was {saved}, now it is {given}. {REMEDY}")
        if self.notes["data"] != data.description:
            saved, given = map(name_of, (self.notes["data"], data.description))
            raise ValueError(f"{where} Its data was {saved}, this is {given}. {REMEDY}")
        if getattr(getattr(data, "dataset", None), "is_seed_drawn", False):
            data.dataset.seed = self.notes["seed"]
            data.current_pass = None
        if distribution.is_shared() or not data.is_checked:
            return
        for step, expected in self.notes["checksums"].items():
            if checksum(data.batch(int(step))) != expected:
                raise ValueError(
                    f"{where} Batch {int(step):,} of its data was different: the data has changed, or its order "
                    f"differs in each process. {REMEDY}"
                )
            data.checksums[int(step)] = expected

    def begin_call(self, epoch, step, done, steps_per_epoch):
        """Tells where the next call of Keras' `fit` begins. Raises ValueError if a begun epoch now has another size."""
        if done and self.notes["steps_per_epoch"] != steps_per_epoch:
            raise ValueError(
                f"{self.state.directory} was saved at step {done} of {self.notes['steps_per_epoch']} of an epoch, "
                f"but this epoch has {steps_per_epoch} steps: pass the same steps_per_epoch."
            )
        self.epoch, self.step, self.done, self.steps_per_epoch = epoch, step, done, steps_per_epoch
        self.data.epoch_start = step - done

    def restore_history(self):
        """Gives Keras' History the epochs that were trained before; it has emptied itself when training began."""
        if self.history:
            self.model.history.history = {name: list(values) for name, values in self.history.items()}
            count = len(next(iter(self.history.values())))
            self.model.history.epoch = list(range(self.notes["epoch"] - count, self.notes["epoch"]))

    def on_train_begin(self, logs=None):
        if self.data is None:
            raise ValueError(
                "ExactResume works only with the fit of a model of keras_bert_impl, which can begin within an epoch."
            )
        if self.saved is not None:
            restore_states(self.others, self.notes["callbacks"], self.arrays)
        self.clock = SharedClock(self.every_minutes)

    def on_epoch_begin(self, epoch, logs=None):
        super().on_epoch_begin(epoch, logs)
        self.is_begun = False
        if self.saved is not None and self.done:
            self._restore_metrics()
        self.saved, self.arrays = None, {}

    def _restore_metrics(self):
        """Gives the metrics the values of the epoch's batches so far; Keras has reset them."""
        model = self.model
        if len(model.metrics_variables) != self.saved.count(
            "metrics"
        ):  # TensorFlow makes some of them only in the first step
            x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(self.data.batch(0))
            outputs = model(x)
            model.compute_loss(x, y, outputs, sample_weight, training=False)
            model.compute_metrics(x, y, outputs, sample_weight)
            model.reset_metrics()
        assign("metrics", model.metrics_variables, self.saved)

    def on_train_batch_begin(self, batch, logs=None):
        super().on_train_batch_begin(batch, logs)
        # Not earlier, because torch's data loader draws random numbers, too, when `fit` starts.
        if not self.is_begun:
            restore_random_state(self.random)
            self.is_begun = True

    def on_train_batch_end(self, batch, logs=None):
        super().on_train_batch_end(batch, logs)
        earlier, self.done = self.done, batch + 1
        self.random = random_state()
        if self.state is None or self.is_at_end_of_epoch():
            return  # saved by on_epoch_end, with what follows the last batch
        is_due = self.every_steps and earlier // self.every_steps != self.done // self.every_steps
        if self.clock.is_time() or is_due:
            self.save()

    def is_at_end_of_epoch(self):
        """Whether the last batch of an epoch is done, but not yet what follows it, such as validation."""
        return self.done >= self.steps_per_epoch

    def on_epoch_end(self, epoch, logs=None):
        for name, value in (logs or {}).items():
            if isinstance(value, int | float | np.number):
                self.history.setdefault(name, []).append(float(value))
        self.epoch, self.done, self.data.epoch_start = epoch + 1, 0, self.step
        if self.state is not None:
            self.save()

    def save(self):
        """Saves the state after the last batch."""
        model, start = self.model, time.monotonic()
        notes, arrays = states_of(self.others)
        arrays |= {f"random/{name}": array for name, array in self.random.items()}
        starts = sorted(step for step in self.data.checksums if step <= self.step)
        checksums = {str(step): self.data.checksums[step] for step in {*starts[:1], *starts[-1:]}}
        position = {"epoch": self.epoch, "done": self.done, "history": self.history, "callbacks": notes}
        position["steps_per_epoch"] = self.steps_per_epoch
        is_stopped = bool(self.stop_is_final and not self.done and model.stop_training)
        self.notes |= {**position, "is_stopped": is_stopped, "checksums": checksums}
        self.state.save(model, self.step, self.notes, arrays, metrics=self.done > 0)
        self.clock.restart()
        self.seconds_to_save = time.monotonic() - start

    def finish(self):
        """Returns when the last state is on the disk; several processes write it while training goes on."""
        if self.state is not None:
            self.state.finish()

    def on_train_end(self, logs=None):
        self.finish()


def optimizer_config(model):
    """The settings of a model's optimizer, as JSON values."""
    config = keras.saving.serialize_keras_object(model.optimizer)["config"]
    return json.loads(json.dumps(config, default=str))


def name_of(description):
    """How a message names the data that (kind, number of batches) describes."""
    kind, size = description
    return kind if size is None else f"{kind} of {size:,} batches"
