"""`TrainingFigures`: how fast a training is, and the norm of its gradients."""

import time

import keras
import numpy as np

from keras_bert_impl import distribution
from keras_bert_impl.callbacks.flops import device_ceiling, training_flops
from keras_bert_impl.callbacks.step_data import StepCallback
from keras_bert_impl.distribution import hardware
from keras_bert_impl.optimization import rate_of_last_step

GIB = 2**30
PERCENTILES = (50, 90, 99)


class TrainingFigures(StepCallback):
    """Adds speed, memory and gradients to the logs of each epoch, which Keras prints and keeps in its history.

    | name                     | meaning                                                                            |
    | ---                      | ---                                                                                |
    | `tokens_per_second`      | tokens without padding                                                             |
    | `share_of_tokens`        | fraction of all positions that are tokens; the others are padding                  |
    | `flops_utilization`      | FLOP/s as a fraction of the devices' maximum (`flops.device_ceiling`), 0 to 1      |
    | `seconds_per_step_p50`   | median seconds of a step; also _p90 and _p99; steps executed together count as     |
    |                          | their mean                                                                         |
    | `device_memory_gib`      | largest memory in use on a device so far; not on a CPU                             |
    | `learning_rate`          | that of the last step                                                              |
    | `gradient_norm`          | that of the last step before clipping, with an optimizer of this library           |

    The first step of a training compiles, and counts only if there are no others; validation never counts.

    Without arguments, the batches are counted, which works for texts, arrays and PyDatasets. For a tf.data.Dataset,
    whose batches are not counted, give all three arguments: fewer have no effect.

    Args:
        tokens_per_step (int, optional): number of tokens in a batch, without padding. Default: None, counted.
        positions_per_step (int, optional): number of tokens in a batch, with padding. Default: None, counted.
        flops_per_step (float, optional): FLOPs of a step. Default: None, counted.

    Example:
        >>> model = kbi.TextRegressor.from_pretrained("small_english")
        >>> figures = kbi.callbacks.TrainingFigures()
        >>> history = model.fit(["Good.", "Bad."], [1.0, 0.0], callbacks=[figures], verbose=0)
        >>> "tokens_per_second" in history.history
        True
    """

    def __init__(self, tokens_per_step=None, positions_per_step=None, flops_per_step=None):
        super().__init__()
        self.given = (tokens_per_step, positions_per_step, flops_per_step)
        self.counted, self.listens, self.ceiling, self.ceiling_source = {}, False, None, None
        self.start, self.first_step, self.end = 0.0, 0, 0.0
        self.times = []  # (step, time) after each execution
        self.is_compiled = self.is_executed = False
        self.figures = {}

    def set_data(self, data, reason=None):
        super().set_data(data, reason)
        self.counted = {}
        self.listens = data is not None and data.listeners is not None and None in self.given
        if self.listens:
            data.listeners.append(self._count)

    def _count(self, step, batch):
        """Counts tokens, positions and arithmetic of the batch of a step when Keras reads it."""
        inputs = keras.utils.unpack_x_y_sample_weight(batch)[0]
        mask = inputs.get("padding_mask") if isinstance(inputs, dict) else None
        if mask is None:
            return
        *rows, length = mask.shape
        predictions = inputs["mask_positions"].shape[-1] if "mask_positions" in inputs else 0
        decodes = getattr(self._model, "enhanced_decoder", False)
        flops = training_flops(self._model.encoder, int(np.prod(rows)), length, predictions, decodes)
        self.counted[step] = (int(np.sum(mask)), mask.size, flops)

    def on_train_begin(self, logs=None):
        super().on_train_begin(logs)
        self.is_compiled = self.is_executed = False

    def on_epoch_begin(self, epoch, logs=None):
        super().on_epoch_begin(epoch, logs)
        self.is_begun = False

    def on_train_batch_begin(self, batch, logs=None):
        super().on_train_batch_begin(batch, logs)
        if not self.is_begun or not self.is_compiled:  # the first execution compiles
            self.start, self.first_step, self.is_begun = time.monotonic(), self.step, True
            self.times = [(self.first_step, self.start)]
        self.is_compiled = self.is_executed

    def on_train_batch_end(self, batch, logs=None):
        super().on_train_batch_end(batch, logs)
        self.end, self.is_executed = time.monotonic(), True
        self.times.append((self.step, self.end))

    def on_epoch_end(self, epoch, logs=None):
        self.figures = self.measure()
        if logs is not None:
            logs |= self.figures

    def measure(self):
        """The figures of the epoch's steps so far."""
        optimizer = self.model.optimizer
        figures = {**self._speed(), **self._step_times()}
        memory = hardware.peak_memory()
        if memory is not None:
            figures["device_memory_gib"] = memory / GIB
        figures["learning_rate"] = rate_of_last_step(optimizer)
        norm = getattr(getattr(optimizer, "inner_optimizer", optimizer), "gradient_norm", None)
        if norm is not None:
            figures["gradient_norm"] = float(distribution.to_numpy(norm))
        return figures

    def seconds_per_step(self):
        """Mean seconds of a step in this epoch, without the one that compiles unless there is no other."""
        return (self.end - self.start) / (self.step - self.first_step)

    def _speed(self):
        seconds, work = self.seconds_per_step(), self._work_per_step()
        self.counted = {step: counts for step, counts in self.counted.items() if step >= self.step}
        if work is None:
            return {}
        tokens, positions, flops = work
        figures = {"tokens_per_second": tokens / seconds, "share_of_tokens": tokens / positions}
        return {**figures, "flops_utilization": flops / seconds / self._ceiling_above(flops / seconds)}

    def _ceiling_above(self, rate):
        """FLOP/s of the devices at most, not below `rate`, which was reached."""
        if self.ceiling is None:
            of_device, self.ceiling_source = device_ceiling(self.model.encoder.dtype_policy.compute_dtype)
            self.ceiling = of_device * distribution.num_processors()
        if rate > self.ceiling:
            self.ceiling, self.ceiling_source = rate, "the fastest epoch of this training, above all products measured"
        return self.ceiling

    def _step_times(self):
        """Percentiles of the seconds of a step of this epoch."""
        steps, times = np.array(self.times).T
        found = np.percentile(np.diff(times) / np.diff(steps), PERCENTILES)
        return {f"seconds_per_step_p{share}": float(value) for share, value in zip(PERCENTILES, found, strict=True)}

    def _work_per_step(self):
        """(tokens, positions, arithmetic) of a step of this epoch; None if they are not known."""
        if None not in self.given:
            return self.given
        counts = [self.counted[step] for step in range(self.first_step, self.step) if step in self.counted]
        return np.mean(counts, axis=0).tolist() if counts else None
