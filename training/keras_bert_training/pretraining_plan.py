"""How many steps a pre-training run has, whether they are compiled, and what happens between its rounds: the history,
and with limited time a new plan."""

import dataclasses
import json
import math
import time

import keras

from keras_bert_impl import distribution
from keras_bert_impl.callbacks import TrainingFigures
from keras_bert_impl.console import say
from keras_bert_impl.distribution import hardware, is_chief
from keras_bert_impl.json_files import write_json
from keras_bert_training import pretraining_report, report
from keras_bert_training.options.pretrain import OptimizerOptions
from keras_bert_training.pretraining_model import schedule_of

WORTH_MEASURING = 1000  # steps; fewer are over before it is known whether compiling them is faster


# With limited time, a round ends early once it has taken this share of the time that was left when it began.
MOST_OF_TIME_LEFT = 0.75
SECONDS_BETWEEN_REPORTS = 60


class Rounds(TrainingFigures):
    """After each round of steps, records its figures in history.json.

    With limited time, every round ends with a new plan: how many steps fit into the time that is left, at the speed of
    this round, or at the speed measured at the start if it only compiled. The learning rate then falls to 0 by the last
    of them.

    Args:
        directory: the run directory.
        plan: as `make_plan` returns it.
        unit: the steps of which a run has a multiple, see `steps_of_update`.
        most_steps: the most steps there may be; None if only the time is limited.
        data: the PretrainingData.
        schedule: the learning rate schedule; a MovableDecay if the time is limited.
        flops_per_step: the arithmetic of a step.
        resume: the ExactResume of the run.
    """

    state_name = "rounds"

    def __init__(self, directory, plan, unit, most_steps, data, schedule, flops_per_step, resume):
        positions = data.batch_size * data.sequence_length
        super().__init__(positions * data.share_of_tokens, positions, flops_per_step)
        self.directory, self.plan, self.unit, self.most_steps = directory, plan, unit, most_steps
        self.schedule, self.resume = schedule, resume
        self.history, self.total_steps, self.earlier_minutes = [], plan["steps"], 0.0
        self.round_ends_all, self.time_start, self.minutes_at_round = False, time.monotonic(), 0.0
        self.validation_start, self.is_validated = 0.0, False
        self.reported, self.is_first = time.monotonic(), True

    def get_state(self):
        """For `ExactResume`."""
        return self.history, []

    def set_state(self, history, arrays=()):
        """For `ExactResume`."""
        self.history = history
        self.step = self.begun()
        if history:
            self.earlier_minutes, self.total_steps = history[-1]["minutes"], history[-1]["planned_steps"]

    def flops_per_token(self):
        """The arithmetic of a step, by its tokens without padding."""
        tokens, _, flops = self.given
        return flops / tokens

    def minutes(self):
        """Minutes of training so far; those of rounds that an earlier process did not finish do not count."""
        return self.earlier_minutes + (time.monotonic() - self.time_start) / 60

    def begun(self):
        """The step at which the current round began."""
        return self.history[-1]["step"] if self.history else 0

    def steps_in_round(self):
        """The size of the current round. It depends only on the step at which it began and the plan made then, even if
        it was interrupted."""
        left, size = self.total_steps - self.begun(), self.plan["steps_per_round"]
        together = self.plan["steps_per_execution"]
        # With limited time, the last rounds get shorter and shorter: a delay in the last one cannot be made up for.
        if self.plan["minutes"] is not None and left > max(together, size // 4):
            left = -(-left // (2 * together)) * together
        return min(size, left)

    def on_epoch_begin(self, epoch, logs=None):
        super().on_epoch_begin(epoch, logs)
        self.minutes_at_round, self.size = self.minutes(), self.steps_in_round()
        self.round_ends_all = self.begun() + self.size == self.total_steps
        steps = f"steps {self.begun() + 1:,} to {self.begun() + self.size:,}"
        about = "about " if self.plan["minutes"] is not None else ""  # by the speed so far
        say(f"Round {len(self.history) + 1}: {steps} of {about}{self.total_steps:,}")

    def on_train_batch_end(self, batch, logs=None):
        super().on_train_batch_end(batch, logs)
        if self._takes_too_long():
            self.model.stop_training = True

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
        self.figures = self.measure()
        if self.plan["minutes"] is not None and self.step < self.total_steps:
            self._plan_anew()
        self.is_first = False
        learned = {name: float(value) for name, value in logs.items()}
        planned = {"planned_steps": self.total_steps}
        self.history.append({"step": self.step, "minutes": self.minutes(), **learned, **self.figures, **planned})
        write_json(self.directory / "history.json", self.history)
        self._report()
        # At the end, which may have come nearer since this `fit` began, or for a round of another size, that needs its
        # own `fit`.
        if self.step >= self.total_steps or self.steps_in_round() != self.size:
            self.model.stop_training = True

    def _report(self):
        """Writes the report of what there is so far, now and then: drawing takes half a second."""
        if time.monotonic() - self.reported < SECONDS_BETWEEN_REPORTS or not is_chief():
            return
        self.reported = time.monotonic()
        self.report(is_running=True)

    def report(self, is_running):
        """Writes the report of what there is so far: of a run that goes on, or that was interrupted."""
        if self.history:
            pretraining_report.curves_of(self.history, {}).savefig(self.directory / "curves.png")
        step = self.step if is_running else self.resume.step
        report.write(self.directory, "pretraining", is_running=is_running, step=step, total_steps=self.total_steps)

    def _plan_anew(self):
        """Moves the end of training to the last step that fits into the time left."""
        besides = time.monotonic() - self.validation_start + self.resume.seconds_to_save  # needed once in each round
        # A first round of one execution, which compiled, says nothing about the next ones.
        only_compiled = self.is_first and not self.is_compiled
        seconds = self.plan["seconds_per_step"] if only_compiled else self.seconds_per_step()
        seconds += besides / self.plan["steps_per_round"]
        left = (self.plan["minutes"] - self.minutes()) * 60
        # Some shorter rounds come before the last one, which makes about two more rounds.
        room = max((left - 2 * besides) / seconds, min(left / seconds, self.plan["steps_per_round"] / 4))
        total = max(-(-(self.step + 1) // self.unit), int(self.step + room) // self.unit) * self.unit
        if self.most_steps is not None:
            total = min(total, self.most_steps // self.unit * self.unit)
        if abs(total - self.total_steps) > 0.1 * (self.total_steps - self.step):
            room = total - self.step
            say(f"\n  Steps take {seconds * 1000:.0f} ms now: the time left is enough for {room:,} of them.")
        self.total_steps = total
        self.schedule.move_end(self.step, total)


def make_plan(config, data, directory, build):
    """The plan of a run: whether steps are compiled, how many steps there are, in all and in a round, and how many
    minutes training may take. The plan is made once for each run and kept in plan.json; with limited time, `Rounds`
    revises it."""
    path = directory / "plan.json"
    if distribution.from_chief(path.is_file()):
        return json.loads(path.read_text())
    start, (together, unit) = time.monotonic(), steps_of_update(config)
    choices = jit_choices(config.jit_compile)
    measured = {}
    is_long = config.steps is None or config.steps >= WORTH_MEASURING
    if (len(choices) > 1 and is_long) or config.max_minutes is not None:
        for choice in choices:
            how = f"{'with' if choice else 'without'} compilation"
            say(f"  measuring steps {how}")
            measured[choice] = measure_step(config, data, build, choice)
            say(f"  {measured[choice] * 1000:.0f} ms a step {how}")
    jit_compile = min(choices, key=measured.get) if measured else choices[-1]
    steps, minutes = config.steps, config.max_minutes
    if minutes is not None:
        minutes -= (time.monotonic() - start) / 60
        # A twentieth of the time for validation and saving.
        room = max(unit, int(0.95 * minutes * 60 / measured[jit_compile]))
        say(f"  {config.max_minutes:g} minutes are enough for {room:,} steps")
        steps = room if steps is None else min(steps, room)
    steps_per_round = steps_per_round_of(config, steps, together)
    if steps % unit:
        say(
            f"  {steps:,} steps are rounded down to {steps - steps % unit:,}, a multiple of steps_per_execution "
            f"{together} and gradient_accumulation_steps {config.gradient_accumulation_steps or 1}"
        )
    plan = {
        "jit_compile": jit_compile,
        "seconds_per_step": measured.get(jit_compile),
        "steps_per_round": steps_per_round,
        "steps_per_execution": together,
        "steps": steps - steps % unit,
        "minutes": minutes,
    }
    write_json(path, plan)
    return plan


def steps_of_update(config):
    """(steps that are executed together, the steps of which a run has a multiple).

    The gradients of a number of steps that fills no update would be lost, and so would part of an execution.
    """
    together = config.steps_per_execution or usual_steps_per_execution(config.steps)
    return together, math.lcm(together, config.gradient_accumulation_steps or 1)


def check_steps(config):
    """Raises ValueError if a run has no length, or fewer steps than an update of the weights takes."""
    if config.steps is None and config.max_minutes is None:
        raise ValueError("The length of the run is missing: give --steps, --max-minutes, or both.")
    together, unit = steps_of_update(config)
    if config.steps is not None and config.steps < unit:
        raise ValueError(
            f"steps {config.steps} is below {unit}, in which steps_per_execution {together} and "
            f"gradient_accumulation_steps {config.gradient_accumulation_steps or 1} both fit: give more steps."
        )


def steps_per_round_of(config, steps, together):
    """The steps of each round but the last of a run of so many steps, in whole executions of `together`."""
    size = min(steps, config.steps_per_round or min(1000, -(-steps // 20)))
    return -(-size // together) * together  # rounded up


def jit_choices(jit_compile):
    """The values of `jit_compile` to choose from, of which the last takes no time to compile; with "auto", both are
    worth measuring on TensorFlow, for a run that is not short.

    On two cores XLA made the steps of a small model twice as fast and those of a larger one slower. Keras' own "auto"
    does not use XLA without a GPU.
    """
    if jit_compile == "on":
        distribution.check_can_compile()
    if jit_compile != "auto":
        return [jit_compile == "on"]
    if not distribution.can_compile():
        return [False]
    return {"tensorflow": [True, False], "jax": [True], "torch": [hardware.has_accelerator()]}[keras.backend.backend()]


def measure_step(config, data, build, jit_compile, steps=40):
    """Mean seconds of a training step within `fit`, measured with a model that is discarded afterwards."""
    config = dataclasses.replace(config, steps_per_execution=1)
    schedule = schedule_of(config.part(OptimizerOptions), 1000, can_move=config.max_minutes is not None)
    model = build(config, data, jit_compile, schedule)
    clock = StepClock()
    model.fit(data.for_fit("train", repeat=True), steps_per_epoch=steps, verbose=0, shuffle=False, callbacks=[clock])
    # The first steps compile. Measured up to the end of training, when all results are computed: JAX starts the next
    # step before the one before is finished.
    return (clock.end - clock.times[4]) / (steps - 5)


class StepClock(keras.callbacks.Callback):
    """Records when each step and when training ended."""

    def __init__(self):
        super().__init__()
        self.times = []

    def on_train_batch_end(self, batch, logs=None):
        self.times.append(time.monotonic())

    def on_train_end(self, logs=None):
        self.end = time.monotonic()


def usual_steps_per_execution(steps):
    """The number for a run of so many steps, None if the time decides: on an accelerator, where Python would take a
    noticeable part of a step, the first number from 20 to 50 that divides the steps, or 20; otherwise 1."""
    if keras.backend.backend() == "torch" or not hardware.has_accelerator():
        return 1
    divisors = (number for number in range(20, 51) if steps is not None and steps % number == 0)
    return min(next(divisors, 20), steps or 20)
