"""A callback that knows the number of the step."""

import keras


class StepCallback(keras.callbacks.Callback):
    """Counts the steps of a training over all its epochs, also where it goes on in the middle of one.

    Attributes:
        data: of the `fit`, as `step_data.steps_of` returns it; None if they are no function of the step.
        reason: why they are none.
        step: how many steps are done; within a batch, how many were done before it.
        epoch_start: how many were done before this epoch.
    """

    def __init__(self):
        super().__init__()
        self.data, self.reason = None, "It was not recorded."
        self.step = self.epoch_start = 0

    def set_data(self, data, reason=None):
        self.data, self.reason = data, reason

    def on_train_begin(self, logs=None):
        self.step = 0

    def on_epoch_begin(self, epoch, logs=None):
        self.epoch_start = self.step if self.data is None else self.data.epoch_start

    def on_train_batch_begin(self, batch, logs=None):
        self.step = self.epoch_start + batch

    def on_train_batch_end(self, batch, logs=None):
        self.step = self.epoch_start + batch + 1
