"""How many steps a pre-training run has, how they are divided into rounds, and whether they are compiled."""

import dataclasses
import json
import math
import time

import keras

from keras_bert_impl import distribution
from keras_bert_impl.console import say
from keras_bert_impl.distribution import hardware
from keras_bert_impl.json_files import write_json
from keras_bert_training.options.pretrain import OptimizerOptions
from keras_bert_training.pretraining_model import schedule_of

WORTH_MEASURING = 1000  # steps; fewer are over before it is known whether compiling them is faster


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
    return {"tensorflow": [True, False], "jax": [True], "torch": [False]}[keras.backend.backend()]


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
