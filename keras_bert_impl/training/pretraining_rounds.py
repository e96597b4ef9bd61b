"""What happens between the steps of pre-training: figures, saved states, and the reasons to stop."""

import signal
import sys
import time

import keras
import numpy as np

from keras_bert_impl import distribution
from keras_bert_impl.callbacks.flops import matrix_product_ceiling, training_flops
from keras_bert_impl.callbacks.training_state import TrainingState, restore
from keras_bert_impl.console import say
from keras_bert_impl.json_files import write_json

# With limited time, a round ends early once it has taken this share of the time that was left when it began.
MOST_OF_TIME_LEFT = 0.75


class Rounds(keras.callbacks.Callback):
    """After each round of steps, records the figures and saves the state. Stops when the process is asked to end, or
    when the loss is NaN or infinite.

    With limited time, every round ends with a new plan: how many steps fit into the time that is left, at the speed of
    this round. The learning rate then falls to 0 by the last of them.

    Args:
        directory: the run directory.
        config: a PretrainConfig.
        plan: as `make_plan` returns it.
        data: the PretrainingData.
        schedule: the learning rate schedule; a MovableDecay if the time is limited.
    """

    def __init__(self, directory, config, plan, data, schedule):
        super().__init__()
        self.directory, self.config, self.plan, self.data, self.schedule = directory, config, plan, data, schedule
        self.state = TrainingState(directory / "training_state")
        self.history, self.step, self.total_steps, self.earlier_minutes = [], 0, plan["steps"], 0.0
        self.end_signal = distribution.EndSignal()
        self.figures = {}
        self.round_start, self.first_step, self.last_step_end, self.ceiling = 0.0, 0, 0.0, None
        self.round_begun, self.is_compiled, self.round_ends_all = 0, False, False
        self.start, self.minutes_at_round, self.seconds_to_save = time.monotonic(), 0.0, 0.0
        self.validation_start, self.is_validated = 0.0, False

    def restore(self, model):
        """Restores the last saved state into the model; returns whether there was one."""
        found = self.state.read_last()
        if found is None:
            return False
        self.step, arrays, self.history = found
        restore(model, arrays)
        if self.history:
            self.earlier_minutes, self.total_steps = self.history[-1]["minutes"], self.history[-1]["planned_steps"]
        say(f"  resuming after step {self.step:,}")
        return True

    def minutes(self):
        """Minutes of training so far; those of rounds that an earlier process did not finish do not count."""
        return self.earlier_minutes + (time.monotonic() - self.start) / 60

    def steps_to_go(self):
        """How many steps of the current round are left. The size of a round depends only on the step at which it began
        and the plan made then, even if it was interrupted."""
        begun = self.history[-1]["step"] if self.history else 0
        left, size, together = self.total_steps - begun, self.plan["steps_per_round"], self.config.steps_per_execution
        # With limited time, the last rounds get shorter and shorter: a delay in the last one cannot be made up for.
        if self.plan["minutes"] is not None and left > max(together, size // 4):
            left = -(-left // (2 * together)) * together
        return begun + min(size, left) - self.step

    def on_train_begin(self, logs=None):
        self.begun, self.is_compiled = self.step, False
        self.end_signal.listen()

    def on_train_batch_begin(self, batch, logs=None):
        # At the first step of a round and not earlier: torch's data loader draws random numbers, too, as `fit` starts.
        if batch == 0:
            self.round_begun = self.step
            reseed(self.config.seed, self.step)
            self.minutes_at_round = self.minutes()
            self.round_ends_all = self.step + self.steps_to_go() == self.total_steps
        if batch == 0 or not self.is_compiled:  # the first execution compiles
            self.round_start, self.first_step = time.monotonic(), self.step
        self.is_compiled = self.step > self.begun

    def on_train_batch_end(self, batch, logs=None):
        earlier, self.step = self.step, self.round_begun + batch + 1
        self.last_step_end = time.monotonic()
        if not np.isfinite(logs["loss"]):
            self._diverged(earlier, logs)
        if self._takes_too_long():
            self.model.stop_training = True
        if self.end_signal.after_execution():
            self.state.save(self.model, self.step, self.history)
            say(f"\n  Asked to end: step {self.step:,} is saved; the same command resumes from it.")
            sys.exit(128 + signal.SIGTERM)

    def _diverged(self, earlier, logs):
        path = self.directory / f"diverged_step_{self.step:08d}.npz"
        if distribution.is_chief():
            batches = [self.data.batch_at(step) for step in range(earlier, self.step)]
            rows = keras.tree.map_structure(lambda *parts: np.concatenate(parts), *batches)
            np.savez(path, **rows[0], **rows[1])
        where = f"step {self.step:,}" if self.step == earlier + 1 else f"steps {earlier + 1:,} to {self.step:,}"
        raise ValueError(
            f"The loss of {where} is {logs['loss']}. {path} holds the rows of the batch; the last saved state is in "
            f"{self.state.directory}. The usual remedy is a lower learning rate or a longer warm-up."
        )

    def _takes_too_long(self):
        """Whether the round has to end now, so that the next ones have time for the learning rate to fall."""
        if self.plan["minutes"] is None or self.round_ends_all:
            return False
        left = self.plan["minutes"] - self.minutes_at_round
        return self.minutes() - self.minutes_at_round > MOST_OF_TIME_LEFT * left

    def on_test_begin(self, logs=None):
        self.is_validated = False

    def on_test_batch_end(self, batch, logs=None):
        if not self.is_validated:  # the first batch compiles
            self.validation_start, self.is_validated = time.monotonic(), True

    def on_epoch_end(self, epoch, logs=None):
        self.figures = {
            **self.speed(),
            "learning_rate": float(self.model.optimizer.learning_rate),
            "gradient_norm": float(distribution.to_numpy(self.model.optimizer.gradient_norm)),
        }
        if self.plan["minutes"] is not None and self.step < self.total_steps:
            self._plan_anew()
        learned = {name: float(value) for name, value in logs.items()}
        planned = {"planned_steps": self.total_steps}
        self.history.append({"step": self.step, "minutes": self.minutes(), **learned, **self.figures, **planned})
        start = time.monotonic()
        self.state.save(self.model, self.step, self.history)
        write_json(self.directory / "history.json", self.history)
        self.seconds_to_save = time.monotonic() - start
        if self.steps_to_go() != self.step - self.round_begun:
            self.model.stop_training = True  # the next round has another size and needs its own `fit`

    def _plan_anew(self):
        """Moves the end of training to the last step that fits into the time left."""
        besides = time.monotonic() - self.validation_start + self.seconds_to_save  # needed once in each round
        seconds = self.seconds_per_step() + besides / self.plan["steps_per_round"]
        together, most = self.config.steps_per_execution, self.config.steps
        left = (self.plan["minutes"] - self.minutes()) * 60
        # Some shorter rounds come before the last one, which makes about two more rounds.
        room = max((left - 2 * besides) / seconds, min(left / seconds, self.plan["steps_per_round"] / 4))
        total = self.step + max(1, int(room / together)) * together
        total = total if most is None else min(total, most - most % together)
        if abs(total - self.total_steps) > 0.1 * (self.total_steps - self.step):
            room = total - self.step
            say(f"\n  Steps take {seconds * 1000:.0f} ms now: the time left is enough for {room:,} of them.")
        self.total_steps = total
        self.schedule.move_end(self.step, total)

    def seconds_per_step(self):
        """Mean seconds of a step in this round, without compilation."""
        return (self.last_step_end - self.round_start) / max(1, self.step - self.first_step)

    def speed(self):
        """The speed of the round's steps: tokens a second, and arithmetic as a share of what the machine can do."""
        seconds = self.seconds_per_step()
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
