"""Pre-trains BERT on masked words and next sentences.

    keras-bert pretrain --config quickstart/pretrain --data data --output runs/pretrain
    KERAS_BACKEND=jax keras-bert pretrain ...

`--data` is what keras-bert prepare-data wrote. The output holds:
    run.json, plan.json               configuration and versions; steps, rounds and the measured time of a step
    encoder/                          the model as Hugging Face's BertForPreTraining, with its vocabulary
    evaluation.json, curves.png       held-out figures beside two baselines
    history.json, tensorboard/        losses and accuracies as they went
    training_state/                   to go on after an interruption: give the same command again
"""

import dataclasses
import json
import time
import typing

import keras

from keras_bert_impl import checkpoints, distribution
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
    """Pre-trains BERT on masked words and next sentences.

    Args:
        data: directory that keras-bert prepare-data wrote; may be one that TensorFlow reads, gs://bucket/folder.
        output: run directory; the same command goes on where an interrupted run stopped.
        size: bert_tiny, bert_mini, bert_small, bert_medium, bert_base or bert_large.
        num_layers, hidden_size, num_heads, intermediate_size: replace the size's own.
        masking_unit: token as in the paper, whole_word, or span; of data that is masked while it is read.
        dropout_rate: on hidden states and attention; 0.1 in the paper, 0 where the data is not seen often.
        sequence_length: of the rows to train on, of those prepared; default is the shorter.
        init: checkpoint directory to start from, such as the encoder of a run on shorter rows; default is random
            weights.
        steps: batches to train on; default is as many as `max_minutes` have room for.
        batch_size: rows of a batch.
        learning_rate: peak, reached after the warm-up; then linear decay to 0.
        warmup_share: part of the steps in which the learning rate rises; 1 % in the paper.
        weight_decay: 0.01 in the paper; not on biases and layer norms.
        beta_2: memory of AdamW's second moment; 0.999 in the paper, 0.98 for runs of some thousand steps.
        optimizer: adamw as in the paper, or lamb for batches of thousands.
        gradient_accumulation_steps: batches whose gradients are added up before the weights move.
        ema_momentum: keep an exponential moving average of the weights, and save that; 0.999 for example.
        gradient_checkpointing: compute each block a second time for its gradients rather than keep what it computed: a
            third more work, for much larger batches in the same memory.
        precision: Keras dtype policy: float32 or mixed_bfloat16.
        jit_compile: XLA, or on torch its own compiler: on, off, or auto: JAX on, torch off, TensorFlow as measured.
        steps_per_execution: steps that follow one another without this script: figures, SIGTERM and a loss that is no
            number wait for the last of them. 20 or more where a step takes some milliseconds; 1 on torch.
        steps_per_round: a line of progress, a validation and a saved state after so many steps; default is a
            twentieth of all, at most 1,000.
        validation_batches: batches of the validation split in each round, with rows of all its files.
        streams: deal the files out to so many streams, of which a batch takes equal shares and each of several JAX
            processes reads its own: for more than some 150 chips, where reading all of them is the bound. The batches
            are the same for any number of processes that divides it.
        max_minutes: train for so many minutes, or `steps` where they are less; default is no limit. How many steps they
            have room for is measured at the start and again after each round, and the learning rate falls so that it is
            0 when the time is up.
        seed: of weights, order and masks.
        distribution: which devices compute: single; on TensorFlow mirrored (the GPUs of this machine), multi_worker (of
            the machines in TF_CONFIG) or tpu; on JAX data_parallel (all devices, of all processes) or model_parallel
            (each weight matrix over some of them). batch_size is that of all together.
        devices: use so many; without an accelerator, so many parts of the CPU, to try things out.
        model_devices: for model_parallel, the devices that share one copy of the model.
        tpu: for tpu, its name.
    """

    GROUPS: typing.ClassVar = {
        "the model": (
            *("size", "num_layers", "hidden_size", "num_heads", "intermediate_size", "dropout_rate", "init"),
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
    """Checks what it is given, then trains; returns the held-out figures."""
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
        raise ValueError("How long? Give --steps, or --max-minutes for as many steps as they have room for.")
    check_executions(config)
    open_run(directory, config)
    with data.naming_damage():
        return train(config, data, directory)


def check_shares(config):
    """Raises ValueError for what several devices or processes cannot do."""
    distribution.check_batch_size(config.batch_size)
    processes = distribution.num_processes()
    if processes > 1 and (config.steps is None or config.max_minutes is not None):
        raise ValueError(f"{processes} processes must all do the same: give --steps, and no --max-minutes.")


def check_executions(config):
    """Raises ValueError for `steps_per_execution` where it cannot be."""
    if config.steps_per_execution < 1:
        raise ValueError(f"steps_per_execution {config.steps_per_execution} must be at least 1.")
    if config.steps_per_execution > 1 and keras.backend.backend() == "torch":
        raise ValueError("steps_per_execution is 1 on torch, where Keras has no other.")
    if config.steps is not None and config.steps < config.steps_per_execution:
        raise ValueError(f"{config.steps} steps are less than one execution of {config.steps_per_execution}.")


def train(config, data, directory):
    """Plans, trains, evaluates and saves; returns the held-out figures."""
    plan = make_plan(config, data, directory)
    keras.utils.set_random_seed(config.seed)
    schedule = schedule_of(config, plan["steps"])
    model = build(config, data, plan["jit_compile"], schedule)
    rounds = Rounds(directory, config, plan, data, schedule)
    if not rounds.restore(model) and config.init is not None:
        checkpoints.load(model, checkpoints.open_checkpoint(config.init))
    say(
        f"  {model.count_params():,} weights, {keras.backend.backend()} backend, {config.precision}; "
        f"steps {rounds.step:,} to {rounds.total_steps:,} of {config.batch_size} rows of {data.sequence_length} tokens"
    )
    say(f"  progress: tensorboard --logdir {directory / 'tensorboard'}")
    fit(model, data, rounds, directory)
    model.save_pretrained(directory / "encoder")
    if distribution.is_chief():
        data.tokenizer.save_pretrained(directory / "encoder")
    return pretraining_report.write(model, data, rounds.history, directory)


def fit(model, data, rounds, directory):
    """Trains from the step of `rounds` to their end. Rounds of equal size that follow one another are one `fit`, for
    which the data is opened once."""
    callbacks, validation = [rounds], data.validation()
    if distribution.is_chief():
        callbacks.append(pretraining_report.MoreOnTensorBoard(data, rounds, directory / "tensorboard"))
        callbacks.append(keras.callbacks.TensorBoard(str(directory / "tensorboard"), write_graph=False))
    while rounds.step < rounds.total_steps:
        steps = rounds.steps_to_go()
        model.fit(
            data.for_fit("train", start_step=rounds.step, repeat=True),
            steps_per_epoch=steps,
            initial_epoch=len(rounds.history),
            # `rounds` ends it when the next round is of another size.
            epochs=len(rounds.history) + (rounds.total_steps - rounds.step) // steps,
            validation_data=validation,
            verbose=verbosity(),
            shuffle=False,  # the data set has shuffled
            callbacks=callbacks,
        )


def make_plan(config, data, directory):
    """Compiled or not, how many steps, in rounds of how many, and how many minutes of training: made once a run, kept
    in plan.json. Where the time is limited, `Rounds` goes on planning."""
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
        say(f"  {config.max_minutes:g} minutes have room for {room:,} steps")
        steps = room if steps is None else min(steps, room)
    steps_per_round = min(steps, config.steps_per_round or min(1000, -(-steps // 20)))
    together = config.steps_per_execution
    if steps % together:
        say(f"  {steps:,} steps are {steps // together:,} executions of {together}: {steps - steps % together:,} steps")
    plan = {
        "jit_compile": jit_compile,
        "seconds_per_step": measured.get(jit_compile),
        "steps_per_round": -(-steps_per_round // together) * together,  # of few the more
        "steps": steps - steps % together,
        "minutes": minutes,
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
    if not distribution.can_compile():
        return [False]
    return {"tensorflow": [True, False], "jax": [True], "torch": [False]}[keras.backend.backend()]


def measure_step(config, data, jit_compile, steps=40):
    """Mean seconds of a training step within `fit`, of a model that is thrown away."""
    config = dataclasses.replace(config, steps_per_execution=1)
    model = build(config, data, jit_compile, schedule_of(config, 1000))
    clock = StepClock()
    model.fit(data.for_fit("train", repeat=True), steps_per_epoch=steps, verbose=0, shuffle=False, callbacks=[clock])
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


def schedule_of(config, steps):
    """The learning rate of a run that is planned to have so many steps."""
    kind = WarmupLinearDecay if config.max_minutes is None else MovableDecay
    return kind(config.learning_rate, int(config.warmup_share * steps), steps)


def build(config, data, jit_compile, schedule):
    """A new model, compiled to be trained with this learning rate."""
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


def model_config(config, data):
    """The configuration of the encoder asked for: a size with changes, or that of the checkpoint to start from."""
    dropout = {"hidden_dropout_rate": config.dropout_rate, "attention_dropout_rate": config.dropout_rate}
    shape = {name: getattr(config, name) for name in ("num_layers", "hidden_size", "num_heads", "intermediate_size")}
    shape = {name: value for name, value in shape.items() if value is not None}
    if config.init is None:
        return BertConfig.from_name(config.size, vocabulary_size=data.tokenizer.vocabulary_size, **dropout, **shape)
    if shape:
        raise ValueError(f"The checkpoint {config.init} has its own sizes: leave out {', '.join(shape)}.")
    checkpoint = checkpoints.open_checkpoint(config.init)
    if checkpoint.tokenizer is not None and checkpoint.tokenizer.vocabulary != data.tokenizer.vocabulary:
        raise ValueError(
            f"{config.init} has another vocabulary than {data.directory}: prepare the data with --vocab "
            f"{config.init}/vocab.txt."
        )
    return dataclasses.replace(checkpoint.config, **dropout)
