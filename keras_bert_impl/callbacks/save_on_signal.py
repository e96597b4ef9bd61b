"""`SaveOnSignal`: a process that is asked to end saves its training first."""

import signal
import sys

import keras

from keras_bert_impl import distribution
from keras_bert_impl.console import say


class SaveOnSignal(keras.callbacks.Callback):
    """Saves the state of a training when the process receives SIGTERM or Ctrl-C, as on preemptible machines.

        resume = kbi.callbacks.ExactResume("run")
        model.fit(texts, labels, callbacks=[resume, kbi.callbacks.SaveOnSignal(resume)])

    After SIGTERM the process ends with exit code 143; after Ctrl-C (SIGINT) it raises KeyboardInterrupt. A second
    Ctrl-C ends it at once. With several JAX processes, all save and end if one receives SIGTERM; none saves after
    Ctrl-C. After a signal during the last batch of an epoch, the epoch ends first, with its validation.

    Args:
        resume (ExactResume): the ExactResume of the same `fit`.

    Raises: (in `fit`) SystemExit or KeyboardInterrupt, after the state is saved; ValueError if `resume` is not among
        the callbacks, or if `fit` does not run in the main thread, which alone can receive signals.
    """

    def __init__(self, resume):
        super().__init__()
        self.resume, self.signal, self.is_asked = resume, distribution.EndSignal(), False

    def on_train_begin(self, logs=None):
        if self.resume.data is None:
            raise ValueError("SaveOnSignal saves with its own ExactResume callback: pass that one to fit as well.")
        self.signal.listen()

    def on_train_batch_end(self, batch, logs=None):
        self.is_asked = self.signal.after_execution() or self.is_asked
        if self.is_asked and not self.resume.is_at_end_of_epoch():
            self.resume.save()
            self._end()

    def on_epoch_end(self, epoch, logs=None):
        if self.is_asked:  # saved by the ExactResume, which comes first
            self._end()

    def _end(self):
        self.resume.finish()
        self.signal.stop_listening()
        say(f"\n  Asked to end: step {self.resume.step:,} is saved; the same lines or command resume from it.")
        if self.signal.number == signal.SIGINT:
            raise KeyboardInterrupt
        sys.exit(128 + signal.SIGTERM)

    def on_train_end(self, logs=None):
        self.signal.stop_listening()

    def on_train_error(self):
        # A notebook that continues could otherwise no longer be ended by the signal.
        self.signal.stop_listening()
