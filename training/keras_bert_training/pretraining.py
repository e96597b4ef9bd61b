"""Pre-trains BERT on masked words, and on next sentences if the rows are pairs; other families on what they learn.

    keras-bert pretrain --config quickstart/pretrain --data data --output runs/pretrain
    KERAS_BACKEND=jax keras-bert pretrain ...

`--data` is the directory that keras-bert prepare-data wrote. The output directory holds:
    run.json, data.json, plan.json    configuration and versions; which data; steps, rounds and the time of a step
    encoders/STEP/                    with --encoder_rounds, the model after these steps
    encoder/                          the model as Hugging Face's BertForPreTraining, with its vocabulary; of an ELECTRA
                                      the discriminator, and the generator in encoder/generator
    evaluation.json, curves.png       figures on held-out text beside two baselines; learning curves
    report.html                       all of it on one page; during the run, what there is so far
    history.json, tensorboard/        losses and accuracies of every round
    training_state/                   the saved states; to resume an interrupted run, give the same command again
    profile/                          with --profile_steps, what the device did during some steps
"""

import contextlib
import dataclasses
import functools
import importlib.util
import json
import math

import keras

from keras_bert_impl import checkpoints, distribution
from keras_bert_impl.callbacks import ExactResume, ProfileSteps, SaveOnSignal, StopOnBadLoss
from keras_bert_impl.callbacks.profile_steps import steps_to_profile
from keras_bert_impl.callbacks.step_data import FunctionSteps
from keras_bert_impl.callbacks.steps_left import lines_of_progress
from keras_bert_impl.console import say, verbosity
from keras_bert_impl.distribution import hardware
from keras_bert_impl.encoders.resumed_fit import ResumedFit
from keras_bert_impl.json_files import write_json
from keras_bert_impl.startup import without_native_output
from keras_bert_training import pretraining_report
from keras_bert_training.options.pretrain import ModelOptions, ObjectiveOptions, OptimizerOptions, RowOptions
from keras_bert_training.options.pretrain import PretrainConfig as PretrainConfig
from keras_bert_training.pretraining_data import PretrainingData
from keras_bert_training.pretraining_model import build_pretrainer, rates_of_family, schedule_of
from keras_bert_training.pretraining_plan import Rounds, check_steps, make_plan, steps_of_update
from keras_bert_training.remote_output import Output
from keras_bert_training.runs import check_run, is_elsewhere, locked, open_run


def run(config):
    """Checks the configuration, then trains; returns the figures on held-out text."""
    return run_with(config, open_data, build_pretrainer)


def open_data(config):
    """The PretrainingData of a run, masked as the family of its model is."""
    return PretrainingData(
        config.data,
        config.part(RowOptions),
        config.part(ObjectiveOptions),
        config.seed,
        hides_words=config.objective != "permuted_lm",  # masked by the model, which needs the words, too
        rates=rates_of_family(config.part(ModelOptions)),
    )


def run_with(config, open_data, build):
    """`run` for any model that is trained on pre-training rows.

    Args:
        config: a PretrainConfig.
        open_data: function from the configuration to the PretrainingData; checks what can be checked before the run.
        build: function from (config, data, jit_compile, schedule) to a compiled model, as
            `pretraining_model.build_pretrainer`.
    """
    with distribution.distributed(config), Output(config.output) as output:
        directory = check_run(output.directory, config)
        if distribution.from_chief((directory / "evaluation.json").is_file()):
            if distribution.from_chief(is_elsewhere(directory, config.data)):
                check_data(directory, open_data(config))
            say(f"{output.name} holds the finished run.")
            return json.loads((directory / "evaluation.json").read_text())
        say(f"  opening the data in {config.data}")
        data = open_data(config)
        check_shares(config)
        check_steps(config)
        hardware.keep_compiled(config.compilation_cache)
        # A bucket has no locks, and a process' own copy of it needs none.
        with contextlib.nullcontext() if output.is_remote else locked(directory):
            check_data(directory, data)
            open_run(directory, config, is_copy=output.is_remote)
            write_json(directory / "data.json", {"directory": data.directory, "fingerprint": data.fingerprint})
            output.send()  # a state may be there before the first round ends, and is resumed with these files only
            with data.naming_damage():
                return train(config, data, output, build)


def check_data(directory, data):
    """Raises ValueError if the run began with other rows, or another vocabulary, than there are now."""
    path = directory / "data.json"
    begun = json.loads(path.read_text())["fingerprint"] if path.is_file() else data.fingerprint
    if not distribution.from_chief(begun == data.fingerprint):
        raise ValueError(
            f"{directory} holds a run that started on other data: {data.directory} was prepared again since then. "
            "Name another output, or restore the first data."
        )


def check_shares(config):
    """Raises ValueError for options that do not work with several devices or processes."""
    distribution.check_batch_size(config.batch_size)
    processes = distribution.num_processes()
    if processes > 1 and (config.steps is None or config.max_minutes is not None):
        raise ValueError(
            f"All {processes} processes must train for the same number of steps: give --steps, and no --max-minutes."
        )


def train(config, data, output, build):
    """Plans, trains, evaluates and saves; returns the figures on held-out text."""
    directory = output.directory
    plan = make_plan(config, data, directory, build)
    output.send()
    config = dataclasses.replace(config, steps_per_execution=plan["steps_per_execution"])
    with without_native_output():  # it imports TensorFlow, if that is installed
        keras.utils.set_random_seed(config.seed)
    schedule = schedule_of(config.part(OptimizerOptions), plan["steps"], can_move=config.max_minutes is not None)
    model = build(config, data, plan["jit_compile"], schedule)
    if config.init is not None:
        model.load_pretrained(config.init)
    resume = ExactResume(output.states, every_minutes=config.save_minutes)
    flops = model.training_flops(data.batch_size, data.sequence_length, data.predictions_per_sequence)
    rounds = Rounds(directory, plan, steps_of_update(config)[1], config.steps, data, schedule, flops, resume)
    log = pretraining_report.TensorBoardLog(rounds, directory / "tensorboard")
    with contextlib.closing(log):
        try:
            fit(config, model, data, rounds, resume, log, output)
        except (KeyboardInterrupt, SystemExit):  # by SaveOnSignal
            if distribution.is_chief():
                rounds.report(is_running=False)
            raise
    model.save_pretrained(directory / "encoder")
    if distribution.is_chief():
        data.tokenizer.save_pretrained(directory / "encoder")
    report = pretraining_report.write(model, data, rounds, directory)
    masks = pretraining_report.filled_rows(model, data)
    if distribution.is_chief():
        pretraining_report.write_pretraining(directory, config, data, report, masks)
    return report


def fit(config, model, data, rounds, resume, log, output):
    """Trains from the last saved step to the last one. Consecutive rounds of equal size share one call of Keras' `fit`,
    so that the data is opened only once for them."""
    directory = output.directory
    every = config.encoder_rounds
    kept = [KeptEncoders(every, rounds, data.tokenizer, directory / "encoders")] if every else []
    # Encoders are kept before the state is saved: a run that is interrupted in between writes the last one again.
    sending = keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: output.send())
    callbacks = [rounds, StopOnBadLoss(directory), *kept, resume, SaveOnSignal(resume), log, sending]
    callbacks += lines_of_progress("round")
    if config.profile_steps is not None:
        callbacks.append(ProfileSteps(*steps_to_profile(config.profile_steps), directory / "profile"))
    batches = FunctionSteps(
        lambda step: data.for_fit("train", start_step=step, repeat=True), is_checked=False, batch=data.batch_at
    )
    run = ResumedFit(
        functools.partial(keras.Model.fit, model),  # the model's own would make another ResumedFit of each call
        model,
        batches,
        callbacks,
        verbose=verbosity(),
        arguments={"validation_data": data.validation()},
        stop_is_final=False,  # `rounds` stops a call of `fit` when the next round has another size
    )
    rounds.set_state(resume.saved_state("rounds") or [])
    trained = sum(math.prod(weight.shape) for weight in model.trainable_weights)
    say(
        f"  {trained:,} parameters, {keras.backend.backend()} backend, {config.precision}; "
        f"steps {run.step:,} to {rounds.total_steps:,} of {config.batch_size} examples of {data.sequence_length} tokens"
    )
    remedy = "" if importlib.util.find_spec("tensorboard") else " (pip install tensorboard)"
    say(f"  progress: tensorboard --logdir {output.name}/tensorboard{remedy}")
    if config.init is not None and run.step == 0:
        pretraining_report.print_start(model, data)
    while rounds.begun() < rounds.total_steps:
        steps = rounds.steps_in_round()
        until = len(rounds.history) + (rounds.total_steps - rounds.begun()) // steps
        run.train(steps, until, shows_count=False)  # `rounds` prints it
    run.end()


class KeptEncoders(keras.callbacks.Callback):
    """Saves the model after every so many rounds in a folder named after the step."""

    def __init__(self, every, rounds, tokenizer, directory):
        super().__init__()
        self.every, self.rounds, self.tokenizer, self.directory = every, rounds, tokenizer, directory

    def on_epoch_end(self, epoch, logs=None):
        if len(self.rounds.history) % self.every:
            return
        place = self.directory / str(self.rounds.step)
        self.model.save_pretrained(place)
        if distribution.is_chief():
            self.tokenizer.save_pretrained(place)
            checkpoints.write_card(place)  # which can show programs now that take texts
