"""Pre-trains BERT on masked words and next sentences.

    python training/pretrain.py --config training/recipes/quickstart.yaml --data data --output runs/pretrain
    KERAS_BACKEND=jax python training/pretrain.py ...

`--data` is what training/prepare_data.py wrote. The output holds:
    run.json, plan.json               configuration and versions; steps, rounds and the measured time of a step
    encoder/                          the model as Hugging Face's BertForPreTraining, with its vocabulary
    evaluation.json, curves.png       held-out figures beside two baselines
    history.json, tensorboard/        losses and accuracies as they went
    training_state/                   to go on after an interruption: give the same command again
"""

import quiet_start  # noqa: F401

import dataclasses
import json
import os
import pathlib
import sys
import time
import typing

import keras
import numpy as np

import pretraining_report
from keras_bert_impl import BertConfig, BertEncoder, BertPretrainer, WordPieceTokenizer
from keras_bert_impl.optimization import BertAdamW, WarmupLinearDecay
from keras_bert_impl.preprocessing.pretraining import read_training_data
from keras_bert_impl.runs import check_run, main, open_run, say, write_json


@dataclasses.dataclass
class PretrainConfig:
    """Pre-trains BERT on masked words and next sentences.

    Args:
        data: directory that training/prepare_data.py wrote.
        output: run directory; the same command goes on where an interrupted run stopped.
        size: bert_tiny, bert_mini, bert_small, bert_medium, bert_base or bert_large.
        num_layers, hidden_size, num_heads, intermediate_size: replace the size's own.
        dropout_rate: on hidden states and attention; 0.1 in the paper, 0 where the data is not seen often.
        steps: batches to train on; default is as many as `max_minutes` have room for, measured at the start.
        batch_size: rows of a batch.
        learning_rate: peak, reached after the warm-up; then linear decay to 0.
        warmup_share: part of the steps in which the learning rate rises; 1 % in the paper.
        weight_decay: 0.01 in the paper; not on biases and layer norms.
        beta_2: memory of AdamW's second moment; 0.999 in the paper, 0.98 for runs of some thousand steps.
        precision: Keras dtype policy: float32 or mixed_bfloat16.
        jit_compile: XLA, or on torch its own compiler: on, off, or auto: JAX on, torch off, TensorFlow as measured.
        steps_per_round: a line of progress, a validation and a saved state after so many steps; default is a
            twentieth of all, at most 1,000.
        validation_batches: batches of the validation split in each round.
        max_minutes: stop after so many minutes, at the end of a round; default is no limit.
        seed: of weights, order and masks.
    """

    data: str
    output: str
    size: str = "bert_mini"
    num_layers: int | None = None
    hidden_size: int | None = None
    num_heads: int | None = None
    intermediate_size: int | None = None
    dropout_rate: float = 0.1
    steps: int | None = None
    batch_size: int = 32
    learning_rate: float = 1e-4
    warmup_share: float = 0.01
    weight_decay: float = 0.01
    beta_2: float = 0.999
    precision: str = "float32"
    jit_compile: typing.Literal["auto", "on", "off"] = "auto"
    steps_per_round: int | None = None
    validation_batches: int = 20
    max_minutes: float | None = None
    seed: int = 0


def run(config):
    """Trains, evaluates and saves; returns the held-out figures."""
    directory = check_run(config.output, config)
    if (directory / "evaluation.json").is_file():
        say(f"{directory} holds the finished run.")
        return json.loads((directory / "evaluation.json").read_text())
    data = PretrainingData(config)
    if config.steps is None and config.max_minutes is None:
        raise ValueError("How long? Give --steps, or --max-minutes for as many steps as they have room for.")
    open_run(directory, config)
    plan = make_plan(config, data, directory)
    rounds = Rounds(directory, config.max_minutes)
    # The step is added so that a run that goes on does not draw the dropout of its first steps again.
    keras.utils.set_random_seed(config.seed + rounds.last_step)
    model, first_step = load_or_build(config, plan, directory, data.tokenizer)
    say(
        f"  {model.count_params():,} weights, {keras.backend.backend()} backend, {config.precision}; "
        f"steps {first_step:,} to {plan['steps']:,} of {config.batch_size} rows of {data.sequence_length} tokens"
    )
    say(f"  progress: tensorboard --logdir {directory / 'tensorboard'}")
    model.fit(
        data.batches("train", start_step=first_step, repeat=True),
        steps_per_epoch=plan["steps_per_round"],
        initial_epoch=first_step // plan["steps_per_round"],
        epochs=plan["steps"] // plan["steps_per_round"],
        validation_data=data.batches("validation").take(config.validation_batches),
        verbose=1 if sys.stdout.isatty() else 2,  # a file gets a line for each round
        shuffle=False,  # the data set has shuffled
        callbacks=[rounds, keras.callbacks.TensorBoard(str(directory / "tensorboard"), write_graph=False)],
    )
    model.save_pretrained(directory / "encoder")
    data.tokenizer.save_pretrained(directory / "encoder")
    return pretraining_report.write(model, data, rounds.history, directory)


class PretrainingData:
    """The prepared data of a run: its tokenizer, its row length, its batches."""

    def __init__(self, config):
        self.directory = pathlib.Path(config.data)
        if not (self.directory / "summary.json").is_file():
            raise ValueError(f"{self.directory} holds no prepared data: run training/prepare_data.py --output first.")
        prepared = json.loads((self.directory / "run.json").read_text())["configuration"]
        self.tokenizer = WordPieceTokenizer.from_pretrained(self.directory)
        self.sequence_length = prepared["sequence_length"]
        self.predictions_per_sequence = prepared["predictions_per_sequence"]
        self.static_masks = prepared["static_masks"]
        self.batch_size, self.seed = config.batch_size, config.seed

    def batches(self, split, start_step=0, repeat=False):
        """A tf.data.Dataset of (inputs, labels)."""
        return read_training_data(
            sorted((self.directory / "pretraining" / split).glob("*.tfrecord")),
            self.tokenizer,
            sequence_length=self.sequence_length,
            predictions_per_sequence=self.predictions_per_sequence,
            batch_size=self.batch_size,
            seed=self.seed,
            start_step=start_step,
            static_masks=self.static_masks,
            repeat=repeat,
        )

    def unmasked_rows(self, split):
        """The `token_ids` of a split as they were before masking, (batch, length) at a time."""
        for inputs, labels in self.batches(split).as_numpy_iterator():
            token_ids = inputs["token_ids"].copy()
            row, column = np.nonzero(labels["mask_weights"])
            token_ids[row, inputs["mask_positions"][row, column]] = labels["mask_ids"][row, column]
            yield token_ids


def make_plan(config, data, directory):
    """Compiled or not, how many steps, in rounds of how many: made once a run, kept in plan.json."""
    path = directory / "plan.json"
    if path.is_file():
        return json.loads(path.read_text())
    start = time.monotonic()
    choices = jit_choices(config.jit_compile)
    measured = {}
    if len(choices) > 1 or config.steps is None:
        measured = {choice: measure_step(config, data, choice) for choice in choices}
        for choice, seconds in measured.items():
            say(f"  {seconds * 1000:.0f} ms a step {'with' if choice else 'without'} compilation")
    jit_compile = min(choices, key=measured.get) if measured else choices[0]
    steps = config.steps
    if steps is None:
        # A twentieth of the time for validation and saving.
        room = 0.95 * (config.max_minutes * 60 - (time.monotonic() - start))
        steps = max(1, int(room / measured[jit_compile]))
        say(f"  {config.max_minutes:g} minutes have room for {steps:,} steps")
    steps_per_round = min(steps, config.steps_per_round or min(1000, -(-steps // 20)))
    plan = {
        "jit_compile": jit_compile,
        "seconds_per_step": measured.get(jit_compile),
        "steps_per_round": steps_per_round,
        "steps": steps // steps_per_round * steps_per_round,  # whole rounds
    }
    write_json(path, plan)
    return plan


def jit_choices(jit_compile):
    """What to try for `jit_compile`; with "auto", TensorFlow is worth trying both ways.

    On two cores XLA made steps of a small model twice as fast and those of a larger one slower. Keras' own "auto"
    leaves it off without a GPU.
    """
    if jit_compile != "auto":
        return [jit_compile == "on"]
    return {"tensorflow": [True, False], "jax": [True], "torch": [False]}[keras.backend.backend()]


def measure_step(config, data, jit_compile, steps=40):
    """Mean seconds of a training step within `fit`, of a model that is thrown away."""
    model = build(config, data.tokenizer, jit_compile, steps=1000)
    clock = StepClock()
    model.fit(data.batches("train", repeat=True), steps_per_epoch=steps, verbose=0, shuffle=False, callbacks=[clock])
    # The first ones compile. Until the end, where all results are there: JAX goes on before a step is computed.
    return (clock.end - clock.times[4]) / (steps - 5)


class StepClock(keras.callbacks.Callback):
    """Notes when each step and when the whole ended."""

    def __init__(self):
        super().__init__()
        self.times = []

    def on_train_batch_end(self, batch, logs=None):
        self.times.append(time.monotonic())

    def on_train_end(self, logs=None):
        self.end = time.monotonic()


def load_or_build(config, plan, directory, tokenizer):
    """The compiled model and the step to go on from: the saved state of this run, or a new model and 0."""
    state = directory / "training_state" / "state.keras"
    if state.is_file():
        model = keras.saving.load_model(state)
        say(f"  going on from {state}")
        return model, int(model.optimizer.iterations)
    return build(config, tokenizer, plan["jit_compile"], plan["steps"]), 0


def build(config, tokenizer, jit_compile, steps):
    """A new model, compiled for a run of so many steps."""
    policy = keras.dtype_policies.get(config.precision)
    shape = {name: getattr(config, name) for name in ("num_layers", "hidden_size", "num_heads", "intermediate_size")}
    bert = BertConfig.from_name(
        config.size,
        vocabulary_size=tokenizer.vocabulary_size,
        hidden_dropout_rate=config.dropout_rate,
        attention_dropout_rate=config.dropout_rate,
        **{name: value for name, value in shape.items() if value is not None},
    )
    model = BertPretrainer(BertEncoder(bert, dtype=policy))
    schedule = WarmupLinearDecay(config.learning_rate, int(config.warmup_share * steps), steps)
    optimizer = BertAdamW(schedule, weight_decay=config.weight_decay, beta_2=config.beta_2)
    model.compile(optimizer=optimizer, jit_compile=jit_compile)
    return model


class Rounds(keras.callbacks.Callback):
    """After each round of steps: records the figures, saves the state, stops when the time is up."""

    def __init__(self, directory, max_minutes):
        super().__init__()
        self.state = directory / "training_state"
        self.state.mkdir(exist_ok=True)
        self.history_path = directory / "history.json"
        self.history = json.loads(self.history_path.read_text()) if self.history_path.is_file() else []
        self.max_minutes = max_minutes
        self.earlier_minutes = self.history[-1]["minutes"] if self.history else 0.0
        self.last_step = self.history[-1]["step"] if self.history else 0

    def on_train_begin(self, logs=None):
        self.start = time.monotonic()

    def on_epoch_end(self, epoch, logs=None):
        minutes = self.earlier_minutes + (time.monotonic() - self.start) / 60
        step = int(self.model.optimizer.iterations)
        self.history.append({"step": step, "minutes": minutes, **{name: float(v) for name, v in logs.items()}})
        # The state first: a history that is ahead of it would count a round twice after an interruption.
        self.model.save(self.state / "writing.keras")
        os.replace(self.state / "writing.keras", self.state / "state.keras")
        write_json(self.history_path, self.history)
        if self.max_minutes and minutes >= self.max_minutes:
            say(f"\n  The {self.max_minutes:g} minutes are over: stopping at step {step:,}.")
            self.model.stop_training = True


if __name__ == "__main__":
    main(PretrainConfig, run)
