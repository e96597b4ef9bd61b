"""`fit` that begins where an interrupted one stopped, also within an epoch.

Keras begins an epoch only with its first batch. So the rest of an interrupted epoch is a `fit` of its own, of fewer
steps, followed by a `fit` of the other epochs. Callbacks see one training: it begins and ends once, and the batches of
the rest have the numbers that they have in the whole epoch.
"""

import contextlib

import keras
from keras import tree

from keras_bert_impl.callbacks.exact_resume import ExactResume
from keras_bert_impl.callbacks.save_on_signal import SaveOnSignal
from keras_bert_impl.callbacks.step_data import steps_of
from keras_bert_impl.console import say
from keras_bert_impl.encoders import trained_weights

# These change what ExactResume saves, or where `fit` begins.
REFUSED = (keras.callbacks.BackupAndRestore, keras.callbacks.SwapEMAWeights)


def needs_steps(callbacks):
    """Whether a callback needs the data as a function of the step: those that have a method `set_data`."""
    return any(hasattr(callback, "set_data") for callback in flattened(callbacks))


def flattened(callbacks):
    """The callbacks of `fit`'s argument: a list, a single one, a CallbackList or None."""
    if isinstance(callbacks, keras.callbacks.CallbackList):
        return list(callbacks.callbacks)
    return tree.flatten(callbacks or [])


def fit(
    keras_fit, model, x=None, y=None, *, callbacks, epochs=1, initial_epoch=0, steps_per_epoch=None,
    batch_size=None, sample_weight=None, shuffle=True, validation_split=0.0, verbose="auto", **arguments,
):  # fmt: skip
    """`keras_fit(x, y, ...)`, for callbacks that need the data as a function of the step.

    Raises: ValueError if ExactResume is among them and the data are not such a function.
    """
    callbacks = flattened(callbacks)
    is_resumed = any(isinstance(callback, ExactResume) for callback in callbacks)
    try:
        if validation_split:
            raise ValueError("validation_split is not supported. Pass validation_data instead.")
        data = steps_of(x, y, sample_weight, batch_size, steps_per_epoch, shuffle)
    except ValueError as error:
        if is_resumed:
            raise ValueError(f"ExactResume cannot resume this fit. {error}") from None
        for callback in callbacks:
            if hasattr(callback, "set_data"):
                callback.set_data(None, str(error))
        with ended_on_errors(callbacks), trained_weights.kept(model):
            return keras_fit(
                x, y, callbacks=callbacks, epochs=epochs, initial_epoch=initial_epoch, steps_per_epoch=steps_per_epoch,
                batch_size=batch_size, sample_weight=sample_weight, shuffle=shuffle, validation_split=validation_split,
                verbose=verbose, **arguments,
            )  # fmt: skip
    arguments["validation_batch_size"] = arguments.get("validation_batch_size") or batch_size
    run = ResumedFit(keras_fit, model, data, callbacks, initial_epoch, verbose, arguments)
    run.train(data.steps_per_epoch, epochs)
    return run.end()


class ResumedFit:
    """A training that consists of several calls of Keras' `fit`, which are one to its callbacks.

    Args:
        keras_fit: `keras.Model.fit` of the model.
        model: compiled.
        data: as `step_data.steps_of` returns it.
        callbacks: a list.
        initial_epoch, verbose: as for `fit`.
        arguments: other arguments of `fit`.
        stop_is_final: whether a callback that sets `stop_training` ends the training for good.
    """

    def __init__(
        self, keras_fit, model, data, callbacks, initial_epoch=0, verbose="auto", arguments=None, stop_is_final=True,
    ):  # fmt: skip
        self.keras_fit, self.model, self.data, self.arguments = keras_fit, model, data, arguments or {}
        self.resume = the_only_resume(callbacks) or ExactResume(None)
        self.stop_is_final = stop_is_final
        for callback in callbacks:
            if hasattr(callback, "set_data"):
                callback.set_data(data)
        ends = [callback for callback in callbacks if isinstance(callback, SaveOnSignal)]
        others = [callback for callback in callbacks if callback not in (self.resume, *ends)]
        position = self.resume.open(model, data, others, initial_epoch, stop_is_final)
        self.epoch, self.step, self.done, self.is_stopped = position
        self.callbacks = SharedCallbacks(
            others, self.resume, ends, add_progbar=verbose != 0, model=model, verbose=verbose, epochs=1,
            steps=None,
        )  # fmt: skip

    def train(self, steps_per_epoch, epochs, shows_count=True):
        """Trains until `epochs` epochs are done, or a callback stops. `steps_per_epoch` may differ between two calls,
        and holds for an epoch that has begun. Without `shows_count` no "Epoch 2/9" is printed."""
        shown = {"epochs": epochs if shows_count else 1, "steps": steps_per_epoch}
        self.callbacks.set_params({**self.callbacks.params, **shown})
        is_stopped = self.is_stopped
        while self.epoch < epochs and not is_stopped:
            rest = steps_per_epoch - self.done
            until = self.epoch + 1 if self.done else epochs
            self.callbacks.begin_call(self.done)
            self.resume.begin_call(self.epoch, self.step, self.done, steps_per_epoch)
            with ended_on_errors(self.callbacks.callbacks), trained_weights.kept(self.model):
                self.keras_fit(
                    self.data.from_step(self.step),
                    steps_per_epoch=check_executions(self.model, rest),
                    initial_epoch=self.epoch,
                    epochs=until,
                    shuffle=False,
                    callbacks=self.callbacks,
                    **self.arguments,
                )
            self.epoch, self.step, self.done = self.resume.epoch, self.resume.step, 0
            is_stopped = self.model.stop_training
        self.is_stopped = is_stopped and self.stop_is_final

    def end(self):
        """Ends the training for the callbacks; returns its History."""
        if not self.callbacks.is_begun:
            say("  The saved training is complete: nothing is left to train.")
            self.callbacks.on_train_begin()
            self.model.optimizer.finalize_variable_values(self.model.trainable_variables)
        self.callbacks.end()
        return self.model.history


@contextlib.contextmanager
def ended_on_errors(callbacks):
    """If training raises, calls the method `on_train_error` of the callbacks that have one: Keras calls none then, and
    what they hold open would stay so."""
    try:
        yield
    except BaseException:
        with contextlib.ExitStack() as told:
            for callback in callbacks:
                if hasattr(callback, "on_train_error"):
                    told.callback(callback.on_train_error)
        raise


def the_only_resume(callbacks):
    """The ExactResume among the callbacks, or None. Raises ValueError for callbacks that do not go together."""
    found = [callback for callback in callbacks if isinstance(callback, ExactResume)]
    for callback in callbacks if found else ():
        if isinstance(callback, REFUSED) or (isinstance(callback, ExactResume) and callback is not found[0]):
            raise ValueError(f"{type(callback).__name__} and ExactResume cannot be combined. Remove one of them.")
    return found[0] if found else None


def check_executions(model, steps):
    """The number of steps. Raises ValueError if Keras, which executes `steps_per_execution` together, would do more."""
    together = model.steps_per_execution
    if steps % together:
        raise ValueError(
            f"{steps} steps are not a multiple of steps_per_execution {together}. Change one of "
            "them: steps_per_epoch in fit, steps_per_execution in compile."
        )
    return steps


class SharedCallbacks(keras.callbacks.CallbackList):
    """The callbacks of several calls of `fit`, which see one training."""

    is_begun, skipped, last_logs = False, 0, None

    def __init__(self, others, resume, ends, **arguments):
        # The state has to be saved when all others have seen the end of an epoch.
        super().__init__([*others, resume, *ends], add_history=True, **arguments)
        self.resume = resume

    def begin_call(self, skipped):
        """Tells that a call of `fit` follows, whose first epoch lacks its first `skipped` batches."""
        self.skipped = skipped

    def on_train_begin(self, logs=None):
        if not self.is_begun:
            self.is_begun = True
            super().on_train_begin(logs)
            self.resume.restore_history()

    def on_train_batch_begin(self, batch, logs=None):
        super().on_train_batch_begin(batch + self.skipped, logs)

    def on_train_batch_end(self, batch, logs=None):
        super().on_train_batch_end(batch + self.skipped, logs)

    def on_epoch_end(self, epoch, logs=None):
        super().on_epoch_end(epoch, logs)
        self.skipped = 0

    def on_train_end(self, logs=None):
        self.last_logs = logs

    def end(self):
        """Ends the training, which the last call of `fit` did not do."""
        super().on_train_end(self.last_logs)
