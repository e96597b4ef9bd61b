"""`ProfileSteps`: what the device does during some steps, for TensorBoard or Perfetto."""

import contextlib
import pathlib

from keras_bert_impl.callbacks.step_data import StepCallback
from keras_bert_impl.console import say
from keras_bert_impl.distribution import hardware


class ProfileSteps(StepCallback):
    """Records a profile of some training steps: which operations ran when, on the device and on the host.

        model.fit(..., callbacks=[kbi.callbacks.ProfileSteps(100, 110, "runs/profile")])

    JAX and TensorFlow write files for TensorBoard's profile plugin (`pip install xprof`); torch writes `trace.json`,
    which https://ui.perfetto.dev opens. Steps that Keras executes together (`steps_per_execution`) are recorded
    together: from the first execution that begins at or after `first` to the one that ends at or after `last`. The
    profile ends with the epoch at the latest.

    Args:
        first (int): number of the first step, counted from 1 over all epochs. The first steps of a training compile.
        last (int): number of the last step.
        directory (str or pathlib.Path): where to write the profile.

    Raises: ValueError unless 1 <= first <= last; and where JAX would crash, with the remedy.
    """

    def __init__(self, first, last, directory):
        super().__init__()
        if not 1 <= first <= last:
            raise ValueError(f"Steps {first} to {last} cannot be profiled: name the first and the last, from 1.")
        hardware.check_tracing()
        self.first, self.last, self.directory = first, last, pathlib.Path(directory)
        self.open, self.is_done = contextlib.ExitStack(), False
        self.is_recording = False

    def on_train_batch_begin(self, batch, logs=None):
        super().on_train_batch_begin(batch, logs)
        is_due = self.step + 1 >= self.first and not self.is_done
        if is_due and not self.is_recording:
            self.open.enter_context(hardware.traced(self.directory))
            self.is_recording = True

    def on_train_batch_end(self, batch, logs=None):
        super().on_train_batch_end(batch, logs)
        if self.is_recording and self.step >= self.last:
            self._finish()

    def on_epoch_end(self, epoch, logs=None):
        if self.is_recording:  # what follows an epoch, such as validation, is no training step
            self._finish()

    def on_train_error(self):
        if self.is_recording:  # the steps before an error are worth seeing, and the next profile could not begin
            self._finish()

    def on_train_end(self, logs=None):
        if not self.is_done:
            say(f"  No profile: this training ended at step {self.step:,}, before step {self.first:,}.")

    def _finish(self):
        self.open.close()
        self.is_recording, self.is_done = False, True
        say(f"\n  The profile of the steps up to {self.step:,} is in {self.directory}.")


def steps_to_profile(text):
    """(first, last) of an option such as 100:110."""
    first, _, last = text.partition(":")
    if not (first.isdecimal() and last.isdecimal()):
        raise ValueError(f"--profile_steps {text} is not of the form 100:110.")
    return int(first), int(last)
