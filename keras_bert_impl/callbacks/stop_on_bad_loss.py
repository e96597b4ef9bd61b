"""`StopOnBadLoss`: a NaN or infinite loss stops the training and saves the batch."""

import pathlib

import keras
import numpy as np

from keras_bert_impl import distribution
from keras_bert_impl.callbacks.step_data import StepCallback

BAD_GRADIENT = "The gradient of {} is not finite, and its update made the weights unusable."


class StopOnBadLoss(StepCallback):
    """Stops `fit` with an error when the loss is NaN or infinite, and saves the batch that led to it.

        model.fit(texts, labels, callbacks=[kbi.callbacks.StopOnBadLoss("run")])

    The file `diverged_step_NNNNNNNN.npz` holds the batch's arrays by name; labels and sample weights without names are
    `labels` and `sample_weight`. With several processes, one saves the batch that its own data yields.

    The loss is read once for all steps that Keras executes together (`steps_per_execution`). The optimizers of this
    library record which of these steps had the first bad gradient. With another optimizer, or with accumulated
    gradients, the error names all steps of the execution, and the file holds all their examples. A bad gradient with a
    finite loss is found with the next bad loss, or at the end of the epoch. `ExactResume` saves no state after a bad
    loss, nor after an epoch with a bad gradient.

    Args:
        directory (str or pathlib.Path): where to save the batch; created if it is missing.

    Raises: (in `fit`) ValueError that names the step and the file, or says why there is no file: a batch can be read
        again only if the data is a function of the step, see `ExactResume`.
    """

    def __init__(self, directory):
        super().__init__()
        self.directory = pathlib.Path(directory)

    def on_train_begin(self, logs=None):
        super().on_train_begin(logs)
        if self._record() is not None:
            self._record().assign(0)

    def on_train_batch_end(self, batch, logs=None):
        earlier = self.step
        super().on_train_batch_end(batch, logs)
        if np.isfinite(logs["loss"]):
            return
        number = self._first_bad_update()
        if number and number <= earlier:
            self._stop(number - 1, number, BAD_GRADIENT)
        first, last = (number - 1, number) if number else (earlier, self.step)
        self._stop(first, last, f"The loss of {{}} is {logs['loss']}.")

    def on_epoch_end(self, epoch, logs=None):
        number = self._first_bad_update()
        if number:
            self._stop(number - 1, number, BAD_GRADIENT)

    def _first_bad_update(self):
        """The number of the first step of this training with a bad gradient; None if there is none, or not recorded."""
        optimizer = self._optimizer()
        if self._record() is None or optimizer.gradient_accumulation_steps:
            return None
        number = int(distribution.to_numpy(self._record()))
        # The optimizer also counts the updates of earlier trainings.
        return number and self.step - (int(distribution.to_numpy(optimizer.iterations)) - number)

    def _optimizer(self):
        return getattr(self.model.optimizer, "inner_optimizer", self.model.optimizer)

    def _record(self):
        """The optimizer's variable with the number of its first bad update; None if it has none."""
        return getattr(self._optimizer(), "first_bad_update", None)

    def _stop(self, earlier, last, what):
        """Saves the batches of the steps after `earlier`, up to `last`, and raises ValueError."""
        where = f"step {last:,}" if last == earlier + 1 else f"steps {earlier + 1:,} to {last:,}"
        raise ValueError(
            f"{what.format(where)} {self._save(earlier, last)} The usual remedy is a lower learning rate or a longer "
            "warm-up."
        )

    def _save(self, earlier, last):
        """Saves the batches of these steps; returns a sentence about them."""
        if self.data is None:
            return f"Its batch could not be saved. {self.reason}"
        path = self.directory / f"diverged_step_{last:08d}.npz"
        if distribution.is_chief():
            batches = [named(self.data.batch(step)) for step in range(earlier, last)]
            rows = {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}
            self.directory.mkdir(parents=True, exist_ok=True)
            np.savez(path, **rows)
        return f"{path} holds the examples of the batch."


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
