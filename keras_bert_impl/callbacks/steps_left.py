"""What is left of an epoch, as lines in a file."""

import time

import keras

from keras_bert_impl.console import progress_line, say, verbosity


def lines_of_progress(what="epoch"):
    """The callback, where a file gets one line for each epoch; none on a terminal, and in all but one process. `what`
    the lines call an epoch."""
    return [StepsLeft(what)] if verbosity() == 2 else []


class StepsLeft(keras.callbacks.Callback):
    """Prints how many steps of an epoch are done and how long the rest takes, where the output is a file: after
    `silence` seconds, and then each time that twice as many have passed. A terminal has Keras' bar instead."""

    def __init__(self, what="epoch", silence=30.0):
        super().__init__()
        self.what, self.silence = what, silence

    def on_epoch_begin(self, epoch, logs=None):
        self.start, self.due, self.begun = time.monotonic(), self.silence, None

    def on_train_batch_begin(self, batch, logs=None):
        self.begun = batch if self.begun is None else self.begun  # a resumed epoch begins with a later step

    def on_train_batch_end(self, batch, logs=None):
        spent, steps = time.monotonic() - self.start, self.params.get("steps")
        done = batch + 1 - self.begun
        if spent >= self.due and batch + 1 != steps:
            self.due = 2 * spent
            say(f"  steps of this {self.what}: {progress_line(done, steps and steps - self.begun, spent)}")
