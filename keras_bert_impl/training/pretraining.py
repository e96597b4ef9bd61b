"""Pre-trains BERT on masked words, and on next sentences if the rows are pairs.

    keras-bert pretrain --config quickstart/pretrain --data data --output runs/pretrain
    KERAS_BACKEND=jax keras-bert pretrain ...

`--data` is the directory that keras-bert prepare-data wrote. The output directory holds:
    run.json, plan.json               configuration and versions; steps, rounds and the measured time of a step
    encoder/                          the model as Hugging Face's BertForPreTraining, with its vocabulary
    evaluation.json, curves.png       figures on held-out text beside two baselines; learning curves
    history.json, tensorboard/        losses and accuracies of every round
    training_state/                   the saved states; to resume an interrupted run, give the same command again
"""

import dataclasses
import functools
import importlib.util
import json
import time
import typing

import keras

from keras_bert_impl import checkpoints, distribution
from keras_bert_impl.callbacks import ExactResume, SaveOnSignal, StopOnBadLoss
from keras_bert_impl.callbacks.resumed_fit import ResumedFit
from keras_bert_impl.callbacks.step_data import FunctionSteps
from keras_bert_impl.configurations.bert import BertConfig
from keras_bert_impl.console import say, verbosity
from keras_bert_impl.distribution import Kind
from keras_bert_impl.encoders.families import build_encoder
from keras_bert_impl.json_files import write_json
from keras_bert_impl.models import Pretrainer
from keras_bert_impl.optimization import BertAdamW, BertLamb, MovableDecay, WarmupLinearDecay
from keras_bert_impl.training import pretraining_report
from keras_bert_impl.training.pretraining_data import PretrainingData
from keras_bert_impl.training.pretraining_rounds import Rounds
from keras_bert_impl.training.runs import check_run, open_run


@dataclasses.dataclass
class PretrainConfig:
    """Pre-trains BERT on masked words, and on next sentences if the rows are pairs.

    Args:
        data: directory that keras-bert prepare-data wrote; also a remote one that TensorFlow can read, such as
            gs://bucket/folder.
        output: run directory; the same command resumes an interrupted run.
        size: bert_tiny, bert_mini, bert_small, bert_medium, bert_base or bert_large.
        num_layers, hidden_size, num_heads, intermediate_size: replace the values that belong to the size.
        masking_unit: what is masked: token as in the paper, whole_word, or span; only for data that is masked while it
            is read.
        initializer_range: standard deviation of the initial weights; 0.02 in the paper. A narrow model learns sooner
            with more.
        dropout_rate: dropout on hidden states and attention; 0.1 in the paper, 0 if training sees the data only a few
            times.
        sequence_length: length of the rows to train on, one of the prepared lengths; default is the shorter one.
        init: checkpoint directory to start from, such as the encoder of a run on shorter rows; default is random
            weights.
        steps: number of batches to train on; default is as many as fit into `max_minutes`.
        batch_size: number of rows in a batch.
        learning_rate: peak learning rate, reached after the warm-up; then it decays linearly to 0.
        warmup_share: share of the steps in which the learning rate rises; 1 % in the paper.
        weight_decay: not applied to biases and layer norms; 0.01 in the paper.
        beta_2: decay rate of AdamW's second moment; 0.999 in the paper, 0.98 for runs of a few thousand steps.
        optimizer: adamw as in the paper, or lamb for batches of thousands of rows.
        gradient_accumulation_steps: number of batches whose gradients are accumulated before the weights are updated.
        ema_momentum: keep an exponential moving average of the weights with this momentum, for example 0.999, and save
            the average.
        gradient_checkpointing: compute each block a second time for its gradients instead of keeping its activations: a
            third more work, but much larger batches in the same memory.
        precision: Keras dtype policy: float32 or mixed_bfloat16.
        jit_compile: compile with XLA, or on torch with its own compiler: on, off, or auto, which means on for JAX, off
            for torch, and for TensorFlow whichever is measured to be faster.
        steps_per_execution: steps that Keras runs in one call: figures, SIGTERM and a NaN or infinite loss are handled
            after the last of them. 20 or more if a step takes only a few milliseconds; must be 1 on torch.
        steps_per_round: steps in a round; after each round progress is printed, the model is validated and the state is
            saved. Default is a twentieth of all steps, at most 1,000.
        validation_batches: number of validation batches after each round, with rows from all files of the split.
        streams: number of streams to divide the files into. A batch takes equally many rows from each stream, and each
            of several JAX processes reads only its own streams: for more than about 150 chips, where reading all files
            limits the speed. The batches are the same for any number of processes that divides the number of streams.
        max_minutes: train for this many minutes, or for `steps` if that takes less time; default is no limit. How many
            steps fit into the time is measured at the start and again after each round, and the learning rate falls so
            that it is 0 when the time is up.
        seed: random seed for initial weights, order of the rows and masks.
        distribution: which devices compute: single; on TensorFlow mirrored (the GPUs of this machine), multi_worker
            (the machines in TF_CONFIG) or tpu; on JAX data_parallel (all devices of all processes) or model_parallel
            (each weight matrix is split over some of them). batch_size counts the rows of all devices together.
        devices: number of devices to use; without an accelerator, the number of virtual devices to divide the CPU into,
            for trying things out.
        model_devices: for model_parallel, the number of devices that share one copy of the model.
        tpu: for distribution tpu, the name of the TPU.
    """

    GROUPS: typing.ClassVar = {
        "the model": (
            *(
                "size",
                "num_layers",
                "hidden_size",
                "num_heads",
                "intermediate_size",
                "initializer_range",
                "dropout_rate",
                "init",
            ),
        ),
        "the rows": ("sequence_length", "masking_unit", "batch_size", "streams", "validation_batches"),
        "the optimizer": (
            *("optimizer", "learning_rate", "warmup_share", "weight_decay", "beta_2"),
            *("gradient_accumulation_steps", "ema_momentum"),
        ),
        "how long": ("steps", "max_minutes", "steps_per_round"),
        "speed and memory": ("precision", "jit_compile", "gradient_checkpointing", "steps_per_execution"),
        "devices": ("distribution", "devices", "model_devices", "tpu"),
    }

    data: str
    output: str
    size: str = "bert_mini"
    num_layers: int | None = None
    hidden_size: int | None = None
    num_heads: int | None = None
    intermediate_size: int | None = None
    masking_unit: typing.Literal["token", "whole_word", "span"] = "token"
    initializer_range: float | None = None
    dropout_rate: float = 0.1
    sequence_length: int | None = None
    init: str | None = None
    steps: int | None = None
    batch_size: int = 32
    learning_rate: float = 1e-4
    warmup_share: float = 0.01
    weight_decay: float = 0.01
    beta_2: float = 0.999
    optimizer: typing.Literal["adamw", "lamb"] = "adamw"
    gradient_accumulation_steps: int | None = None
    ema_momentum: float | None = None
    gradient_checkpointing: bool = False
    precision: str = "float32"
    jit_compile: typing.Literal["auto", "on", "off"] = "auto"
    steps_per_execution: int = 1
    steps_per_round: int | None = None
    validation_batches: int = 20
    streams: int = 1
    max_minutes: float | None = None
    seed: int = 0
    distribution: Kind = "single"
    devices: int | None = None
    model_devices: int = 1
    tpu: str = "local"


def run(config):
    """Checks the configuration, then trains; returns the figures on held-out text."""
    with distribution.distributed(config):
        return run_here(config)


def run_here(config):
    """`run`, on the devices that are set up."""
    directory = check_run(config.output, config)
    if (directory / "evaluation.json").is_file():
        say(f"{directory} holds the finished run.")
        return json.loads((directory / "evaluation.json").read_text())
    data = PretrainingData(config)
    check_shares(config)
    if config.steps is None and config.max_minutes is None:
        raise ValueError("The length of the run is missing: give --steps, --max-minutes, or both.")
    check_executions(config)
    open_run(directory, config)
    with data.naming_damage():
        return train(config, data, directory)


def check_shares(config):
    """Raises ValueError for options that do not work with several devices or processes."""
    distribution.check_batch_size(config.batch_size)
    processes = distribution.num_processes()
    if processes > 1 and (config.steps is None or config.max_minutes is not None):
        raise ValueError(
            f"All {processes} processes must train for the same number of steps: give --steps, and no --max-minutes."
        )


def check_executions(config):
    """Raises ValueError if `steps_per_execution` does not suit the backend or the number of steps."""
    if config.steps_per_execution < 1:
        raise ValueError(f"steps_per_execution {config.steps_per_execution} must be at least 1.")
    if config.steps_per_execution > 1 and keras.backend.backend() == "torch":
        raise ValueError(
            f"steps_per_execution {config.steps_per_execution} must be 1 on torch, where Keras supports no other value."
        )
    if config.steps is not None and config.steps < config.steps_per_execution:
        raise ValueError(
            f"steps {config.steps} must be at least steps_per_execution {config.steps_per_execution}: give more steps, "
            "or a smaller --steps_per_execution."
        )


def train(config, data, directory):
    """Plans, trains, evaluates and saves; returns the figures on held-out text."""
    plan = make_plan(config, data, directory)
    keras.utils.set_random_seed(config.seed)
    schedule = schedule_of(config, plan["steps"])
    model = build(config, data, plan["jit_compile"], schedule)
    if config.init is not None:
        checkpoints.load(model, checkpoints.open_checkpoint(config.init))
    resume = ExactResume(directory / "training_state", every_minutes=None)
    rounds = Rounds(directory, config, plan, data, schedule, model.encoder.config, resume)
    fit(model, data, rounds, resume, directory)
    model.save_pretrained(directory / "encoder")
    if distribution.is_chief():
        data.tokenizer.save_pretrained(directory / "encoder")
    return pretraining_report.write(model, data, rounds.history, directory)


def fit(model, data, rounds, resume, directory):
    """Trains from the last saved step to the last one. Consecutive rounds of equal size share one call of Keras' `fit`,
    so that the data is opened only once for them."""
    callbacks = [rounds, StopOnBadLoss(directory), resume, SaveOnSignal(resume)]
    if distribution.is_chief():
        callbacks.append(pretraining_report.TensorBoardLog(data, rounds, directory / "tensorboard"))
    batches = FunctionSteps(
        lambda step: data.for_fit("train", start_step=step, repeat=True), is_checked=False, batch=data.batch_at
    )
    run = ResumedFit(
        functools.partial(keras.Model.fit, model),
        model,
        batches,
        callbacks,
        verbose=verbosity(),
        arguments={"validation_data": data.validation()},
        stop_is_final=False,  # `rounds` stops a call of `fit` when the next round has another size
    )
    rounds.set_state(resume.saved_state("rounds") or [])
    config = rounds.config
    say(
        f"  {model.count_params():,} weights, {keras.backend.backend()} backend, {config.precision}; "
        f"steps {run.step:,} to {rounds.total_steps:,} of {config.batch_size} rows of {data.sequence_length} tokens"
    )
    remedy = "" if importlib.util.find_spec("tensorboard") else " (pip install tensorboard)"
    say(f"  progress: tensorboard --logdir {directory / 'tensorboard'}{remedy}")
    while rounds.begun() < rounds.total_steps:
        steps = rounds.steps_in_round()
        run.train(steps, len(rounds.history) + (rounds.total_steps - rounds.begun()) // steps)
    run.end()


def make_plan(config, data, directory):
    """The plan of a run: whether steps are compiled, how many steps there are, in all and in a round, and how many
    minutes training may take. The plan is made once for each run and kept in plan.json; with limited time, `Rounds`
    revises it."""
    path = directory / "plan.json"
    if path.is_file():
        return json.loads(path.read_text())
    start = time.monotonic()
    choices = jit_choices(config.jit_compile)
    measured = {}
    if len(choices) > 1 or config.max_minutes is not None:
        measured = {choice: measure_step(config, data, choice) for choice in choices}
        for choice, seconds in measured.items():
            say(f"  {seconds * 1000:.0f} ms a step {'with' if choice else 'without'} compilation")
    jit_compile = min(choices, key=measured.get) if measured else choices[0]
    steps, minutes = config.steps, config.max_minutes
    if minutes is not None:
        minutes -= (time.monotonic() - start) / 60
        # A twentieth of the time for validation and saving.
        room = max(config.steps_per_execution, int(0.95 * minutes * 60 / measured[jit_compile]))
        say(f"  {config.max_minutes:g} minutes are enough for {room:,} steps")
        steps = room if steps is None else min(steps, room)
    steps_per_round = min(steps, config.steps_per_round or min(1000, -(-steps // 20)))
    together = config.steps_per_execution
    if steps % together:
        say(
            f"  {steps:,} steps are rounded down to {steps - steps % together:,}: {steps // together:,} executions of "
            f"{together} steps"
        )
    plan = {
        "jit_compile": jit_compile,
        "seconds_per_step": measured.get(jit_compile),
        "steps_per_round": -(-steps_per_round // together) * together,  # rounded up
        "steps": steps - steps % together,
        "minutes": minutes,
    }
    write_json(path, plan)
    return plan


def jit_choices(jit_compile):
    """The values of `jit_compile` to choose from; with "auto", both are worth measuring on TensorFlow.

    On two cores XLA made the steps of a small model twice as fast and those of a larger one slower. Keras' own "auto"
    does not use XLA without a GPU.
    """
    if jit_compile != "auto":
        return [jit_compile == "on"]
    if not distribution.can_compile():
        return [False]
    return {"tensorflow": [True, False], "jax": [True], "torch": [False]}[keras.backend.backend()]


def measure_step(config, data, jit_compile, steps=40):
    """Mean seconds of a training step within `fit`, measured with a model that is discarded afterwards."""
    config = dataclasses.replace(config, steps_per_execution=1)
    model = build(config, data, jit_compile, schedule_of(config, 1000))
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


def schedule_of(config, steps):
    """The learning rate schedule of a run that is planned to have this many steps."""
    kind = WarmupLinearDecay if config.max_minutes is None else MovableDecay
    return kind(config.learning_rate, int(config.warmup_share * steps), steps)


def build(config, data, jit_compile, schedule):
    """A new model, compiled with this learning rate schedule."""
    encoder = build_encoder(
        model_config(config, data),
        packed=data.packed,
        rematerialize=config.gradient_checkpointing,
        dtype=keras.dtype_policies.get(config.precision),
    )
    model = Pretrainer(encoder, next_sentence=data.has_pairs)
    averaged = {} if config.ema_momentum is None else {"use_ema": True, "ema_momentum": config.ema_momentum}
    optimizer = {"adamw": BertAdamW, "lamb": BertLamb}[config.optimizer](
        schedule,
        weight_decay=config.weight_decay,
        beta_2=config.beta_2,
        gradient_accumulation_steps=config.gradient_accumulation_steps,
        **averaged,
    )
    model.compile(optimizer=optimizer, jit_compile=jit_compile, steps_per_execution=config.steps_per_execution)
    return model


MODEL_OPTIONS = ("num_layers", "hidden_size", "num_heads", "intermediate_size", "initializer_range")


def model_config(config, data):
    """The configuration of the encoder: that of `size` with the changes asked for, or that of the checkpoint `init`."""
    dropout = {"hidden_dropout_rate": config.dropout_rate, "attention_dropout_rate": config.dropout_rate}
    shape = {name: getattr(config, name) for name in MODEL_OPTIONS if getattr(config, name) is not None}
    if config.init is None:
        return BertConfig.from_name(config.size, vocabulary_size=data.tokenizer.vocabulary_size, **dropout, **shape)
    if shape:
        raise ValueError(f"The checkpoint {config.init} determines these of the model: leave out {', '.join(shape)}.")
    checkpoint = checkpoints.open_checkpoint(config.init)
    if checkpoint.tokenizer is not None and checkpoint.tokenizer.vocabulary != data.tokenizer.vocabulary:
        raise ValueError(
            f"{config.init} has another vocabulary than the data in {data.directory}: prepare the data with --vocab "
            f"{config.init}/vocab.txt."
        )
    return dataclasses.replace(checkpoint.config, **dropout)
