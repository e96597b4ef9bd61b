"""What happens between the steps of pre-training: figures, saved states, and the reasons to stop."""

import signal
import sys
import time

import keras
import numpy as np

from keras_bert_impl import distribution
from keras_bert_impl.flops import matrix_product_ceiling, training_flops
from keras_bert_impl.runs import say, write_json
from training_state import TrainingState, reseed, restore


class Rounds(keras.callbacks.Callback):
    """After each round of steps: records the figures and saves the state. Stops when the time is up, when the process
    is asked to end, or when the loss is no number.

    Args:
        directory: of the run.
        config: a PretrainConfig.
        steps_per_round: of the plan.
        data: the PretrainingData.
    """

    def __init__(self, directory, config, steps_per_round, data):
        super().__init__()
        self.directory, self.config, self.steps_per_round = directory, config, steps_per_round
        self.data = data
        self.state = TrainingState(directory / "training_state")
        self.history, self.step, self.earlier_minutes = [], 0, 0.0
        self.end_signal = distribution.EndSignal()
        self.figures = {}
        self.round_start, self.first_step, self.last_step_end, self.ceiling = 0.0, 0, 0.0, None
        self.round_begun, self.is_compiled = 0, False

    def restore(self, model):
        """Puts the last saved state into the model; whether there was one."""
        found = self.state.read_last()
        if found is None:
            return False
        self.step, arrays, self.history = found
        restore(model, arrays)
        self.earlier_minutes = self.history[-1]["minutes"] if self.history else 0.0
        say(f"  going on after step {self.step:,}")
        return True

    def on_train_begin(self, logs=None):
        self.start, self.begun, self.is_compiled = time.monotonic(), self.step, False
        self.end_signal.listen()

    def on_train_batch_begin(self, batch, logs=None):
        # Of a round the first: not earlier, for torch's data loader draws as well, when `fit` starts.
        if batch == 0:
            self.round_begun = self.step
            reseed(self.config.seed, self.step)
        if batch == 0 or not self.is_compiled:  # the first execution compiles
            self.round_start, self.first_step = time.monotonic(), self.step
        self.is_compiled = self.step > self.begun

    def on_train_batch_end(self, batch, logs=None):
        earlier, self.step = self.step, self.round_begun + batch + 1
        self.last_step_end = time.monotonic()
        if not np.isfinite(logs["loss"]):
            self._diverged(earlier, logs)
        if self.end_signal.after_execution():
            self.state.save(self.model, self.step, self.history)
            say(f"\n  Asked to end: step {self.step:,} is saved, the same command goes on from it.")
            sys.exit(128 + signal.SIGTERM)

    def _diverged(self, earlier, logs):
        path = self.directory / f"diverged_step_{self.step:08d}.npz"
        if distribution.is_chief():
            batches = [self.data.batch_at(step) for step in range(earlier, self.step)]
            rows = keras.tree.map_structure(lambda *parts: np.concatenate(parts), *batches)
            np.savez(path, **rows[0], **rows[1])
        where = f"step {self.step:,}" if self.step == earlier + 1 else f"steps {earlier + 1:,} to {self.step:,}"
        raise ValueError(
            f"The loss of {where} is {logs['loss']}. {path} holds the rows; the last good state stays in "
            f"{self.state.directory}. A lower learning rate, or a longer warm-up, is the usual remedy."
        )

    def on_epoch_end(self, epoch, logs=None):
        minutes = self.earlier_minutes + (time.monotonic() - self.start) / 60
        self.figures = {
            **self.speed(),
            "learning_rate": float(self.model.optimizer.learning_rate),
            "gradient_norm": float(distribution.to_numpy(self.model.optimizer.gradient_norm)),
        }
        learned = {name: float(value) for name, value in logs.items()}
        self.history.append({"step": self.step, "minutes": minutes, **learned, **self.figures})
        self.state.save(self.model, self.step, self.history)
        write_json(self.directory / "history.json", self.history)
        if self.config.max_minutes and minutes >= self.config.max_minutes:
            say(f"\n  The {self.config.max_minutes:g} minutes are over: stopping at step {self.step:,}.")
            self.model.stop_training = True

    def speed(self):
        """Of the round's training steps: tokens a second, and the arithmetic as a share of what the machine can do."""
        seconds = (self.last_step_end - self.round_start) / max(1, self.step - self.first_step)
        if self.ceiling is None:
            one = matrix_product_ceiling(self.model.encoder.dtype_policy.compute_dtype)
            self.ceiling = one * distribution.num_processors()
        rows, length = self.config.batch_size, self.data.sequence_length
        flops = training_flops(self.model.encoder.config, rows, length, self.data.predictions_per_sequence)
        return {
            "tokens_per_second": rows * length * self.data.share_of_tokens / seconds,
            "share_of_tokens": self.data.share_of_tokens,
            "flops_utilization": flops / seconds / self.ceiling,
        }

    def on_train_end(self, logs=None):
        self.end_signal.stop_listening()
