"""`StopOnBadLoss`: a NaN or infinite loss stops the training and saves the batch."""

import pathlib

import keras
import numpy as np

from keras_bert_impl import distribution


class StopOnBadLoss(keras.callbacks.Callback):
    """Stops `fit` with an error when the loss is NaN or infinite, and saves the batch that led to it.

    The file `diverged_step_NNNNNNNN.npz` holds the batch's arrays by their names; labels and sample weights without
    names are `labels` and `sample_weight`. Of steps that Keras executes together, it holds the rows of all. The batch
    is that of the whole process group's step, as the data gives it to this process.

    Args:
        directory: where to save the batch; created if missing.

    Raises (in `fit`): ValueError, which names the step and the file; or why there is no file: the batch can be read
        again only if the data is a function of the step, see `ExactResume`.
    """

    def __init__(self, directory):
        super().__init__()
        self.directory, self.data, self.reason = pathlib.Path(directory), None, "It was not recorded."
        self.step, self.start = 0, 0

    def set_data(self, data, reason=None):
        self.data, self.reason = data, reason

    def on_train_begin(self, logs=None):
        self.step = 0

    def on_epoch_begin(self, epoch, logs=None):
        self.start = self.step if self.data is None else self.data.epoch_start

    def on_train_batch_begin(self, batch, logs=None):
        self.step = self.start + batch

    def on_train_batch_end(self, batch, logs=None):
        earlier, self.step = self.step, self.start + batch + 1
        if np.isfinite(logs["loss"]):
            return
        where = f"step {self.step:,}" if self.step == earlier + 1 else f"steps {earlier + 1:,} to {self.step:,}"
        raise ValueError(
            f"The loss of {where} is {logs['loss']}. {self._save(earlier)} The usual remedy is a lower learning rate "
            "or a longer warm-up."
        )

    def _save(self, earlier):
        """Saves the batches after the step `earlier`; returns a sentence about them."""
        if self.data is None:
            return f"Its batch could not be saved. {self.reason}"
        path = self.directory / f"diverged_step_{self.step:08d}.npz"
        if distribution.is_chief():
            batches = [named(self.data.batch(step)) for step in range(earlier, self.step)]
            rows = {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}
            self.directory.mkdir(parents=True, exist_ok=True)
            np.savez(path, **rows)
        return f"{path} holds the rows of the batch."


def named(batch):
    """The arrays of a batch by their names."""
    parts = zip(("inputs", "labels", "sample_weight"), keras.utils.unpack_x_y_sample_weight(batch), strict=True)
    arrays = {}
    for name, part in parts:
        if isinstance(part, dict):
            arrays |= part
        elif isinstance(part, list | tuple):
            arrays |= {f"{name}_{place}": array for place, array in enumerate(part)}
        elif part is not None:
            arrays[name] = part
    return {name: keras.ops.convert_to_numpy(array) for name, array in arrays.items()}
