"""One trial: trains a task from a checkpoint, or resumes this training where it stopped; called by `finetuning.py`."""

import dataclasses
import shutil
import time
import warnings

import keras

from keras_bert_impl import checkpoints, distribution
from keras_bert_impl.batching import LengthBatches, predict_rows
from keras_bert_impl.callbacks import BestWeights, ExactResume, SaveOnSignal, StopOnBadLoss
from keras_bert_impl.callbacks.steps_left import lines_of_progress
from keras_bert_impl.console import say, say_once, verbosity
from keras_bert_impl.encoders import build_encoder
from keras_bert_impl.encoders.trainable import enable_lora, freeze_layers, merge_lora
from keras_bert_impl.json_files import write_json
from keras_bert_impl.optimization import BertAdamW, WarmupLinearDecay
from keras_bert_impl.preprocessing.splits_and_weights import balanced_weights, weights_of_names, weights_of_rows
from keras_bert_impl.startup import without_native_output
from keras_bert_impl.text.tokenizers.rows import ROW_MULTIPLE
from keras_bert_training.finetuning_report import write_report
from keras_bert_training.runs import open_run

# With fewer weights than this XLA made TensorFlow's steps on two cores faster, with more it made them slower.
SMALL_MODEL = 5_000_000


def train(config, task, examples, directory, files):
    """Trains, keeps the weights of the epoch with the best dev figure, writes the results; returns the figures.

    Args:
        config: a FinetuneConfig of one trial, with the task's defaults filled in.
        task: see `keras_bert_training/tasks/__init__.py`.
        examples: the examples of each split, by name.
        directory: the run directory.
        files: SHA-256 of the files that the examples were read from, by name; written to data.json.
    """
    say("  reading the checkpoint and the texts")
    with without_native_output():  # it imports TensorFlow, if that is installed
        keras.utils.set_random_seed(config.seed)
    class_names = task.find_class_names(examples["train"])
    checkpoint = checkpoints.open_checkpoint(config.model)
    model = build_task_model(config, task, class_names, checkpoint)
    rows = featurize(config, task, examples, class_names, model)
    batches = {split: batches_of(config, part, model) for split, part in rows.items()}
    open_run(directory, config)
    write_json(directory / "data.json", {"files": files})
    total_steps = config.epochs * batches["train"].num_batches
    compile_for(model, config, task, total_steps)
    start = "random weights" if config.from_scratch else config.model
    say(f"  {len(rows['train']):,} training examples, {batches['train'].padding_share():.0%} padding, from {start}")
    scorer = DevScores(task, examples, rows, batches, class_names)
    best = BestWeights(scorer.name)
    fit(config, model, batches["train"], [scorer, best], directory)
    merge_lora(model)
    figures = write_report(config, task, examples, rows, batches, model, class_names, scorer.history, directory)
    if distribution.is_chief():
        shutil.rmtree(directory / "training_state", ignore_errors=True)
    return figures


def fit(config, model, batches, callbacks, directory):
    """Trains, or resumes; `callbacks` score the epochs and keep the best weights."""
    resume = ExactResume(directory / "training_state")
    if config.patience:
        name = callbacks[0].name
        stop = keras.callbacks.EarlyStopping(name, patience=config.patience, mode="max", verbose=1)
        callbacks = [*callbacks, stop]
    model.fit(
        batches,
        epochs=config.epochs,
        callbacks=[*callbacks, StopOnBadLoss(directory), resume, SaveOnSignal(resume), *lines_of_progress()],
        verbose=verbosity(),
    )


def build_task_model(config, task, class_names, checkpoint):
    """The task's model, with the checkpoint's weights in the encoder unless it trains from scratch.

    Weights that shall not learn are frozen.
    """
    shape = with_dropout(checkpoint.config, config.dropout_rate)
    policy = keras.dtype_policies.get(config.precision)
    encoder = build_encoder(shape, dtype=policy, **getattr(task, "encoder_options", {}))
    length = min(config.sequence_length, shape.max_length)
    model = task.build(encoder, checkpoint.tokenizer, class_names, length)
    if not config.from_scratch:
        # The head is always new: if the checkpoint has one, it was trained for another task.
        of_encoder = {weight.path.split("/")[0] for weight in encoder.weights}
        heads = {weight.path.split("/")[0] for weight in model.weights} - of_encoder
        if checkpoint.task == "ForMaskedLM" and checkpoint.has("pooler/"):
            heads.discard("pooler")  # which a ModernBERT has learnt with the masked words
        heads = tuple(f"{head}/" for head in sorted(heads))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the head, which is expected to be new
            new = checkpoints.load(model, checkpoint, except_for=heads).new
        missing = [path for path in new if not path.startswith(heads)]
        if missing:
            say_once(
                f"  note: {config.model} has no values for {', '.join(missing)}: they start with random values",
                config.data,
            )
    freeze_layers(model, config.frozen_layers)
    if config.lora_rank:
        enable_lora(model, config.lora_rank)
    return model


def with_dropout(shape, rate):
    """An encoder's configuration with this rate of dropout."""
    return dataclasses.replace(shape, hidden_dropout_rate=rate, attention_dropout_rate=rate)


def featurize(config, task, examples, class_names, model):
    """The Rows of each split, the training rows with the weights of their classes."""
    rows = {
        split: task.featurize(model.tokenizer, part, class_names, model.sequence_length)
        for split, part in examples.items()
    }
    for split, part in rows.items():
        if part.num_cut:
            say_once(
                f"  {split}: {part.num_cut:,} of {len(part.first):,} examples had more than {model.sequence_length} "
                "tokens and were truncated",
                config.data,
            )
    known = set(hashes_of_rows(rows["train"]))
    for split, part in rows.items():
        count = 0 if split == "train" else sum(found in known for found in hashes_of_rows(part))
        if count:
            say_once(f"  {split}: {count:,} of {len(part.first):,} examples are also in train", config.data)
    if config.class_weights is not None:
        if not class_names:
            raise ValueError("--class_weights applies only to tasks with classes: remove it.")
        train = rows["train"]
        if config.class_weights == "balanced":
            labels = train.of_texts(train.labels)
            seen = labels if train.weights is None else labels[train.of_texts(train.weights) > 0]
            by_class = balanced_weights(seen.ravel())
        else:
            by_class = weights_of_names(config.class_weights, class_names)
        train.weights = weights_of_rows(by_class, train.labels, train.weights)
    return rows


def hashes_of_rows(rows):
    """A number for each row, equal for rows of equal texts."""
    second = [()] * len(rows.first) if rows.second is None else rows.second
    return [hash((tuple(one), tuple(two))) for one, two in zip(rows.first, second, strict=True)]


def batches_of(config, rows, model):
    """The LengthBatches of a split."""
    model.encoder.check_texts(rows.first, rows.second, model.tokenizer.template)
    multiple = ROW_MULTIPLE if is_compiled(config, model) else 8
    options = {"seed": config.seed, "multiple": multiple}
    return LengthBatches(model.tokenizer, rows, config.batch_size, model.sequence_length, **options)


def is_compiled(config, model):
    """Whether steps are compiled, with XLA or torch's own compiler; compiling happens once for each shape."""
    if config.jit_compile == "on":
        distribution.check_can_compile()
    on_tensorflow = model.encoder.count_params() < SMALL_MODEL and distribution.can_compile()
    usual = {"tensorflow": on_tensorflow, "jax": True, "torch": distribution.hardware.has_accelerator()}
    return {"auto": usual[keras.backend.backend()], "on": True, "off": False}[config.jit_compile]


def compile_for(model, config, task, steps):
    """AdamW with warm-up and linear decay over the steps of the run."""
    schedule = WarmupLinearDecay(config.learning_rate, int(config.warmup_share * steps), steps)
    optimizer = BertAdamW(schedule, layer_decay=config.layer_decay)
    model.compile(optimizer=optimizer, loss=task.loss(), jit_compile=is_compiled(config, model))


class DevScores(keras.callbacks.Callback):
    """After each epoch, scores the dev splits and adds the main figure of the first to the logs, as `name`."""

    state_name = "dev_scores"

    def __init__(self, task, examples, rows, batches, class_names):
        super().__init__()
        self.task, self.class_names = task, class_names
        self.examples, self.rows, self.batches = examples, rows, batches
        self.name = f"{task.dev[0]}_{task.main_metric}"
        self.history = []

    def get_state(self):
        """For `ExactResume`."""
        return self.history, []

    def set_state(self, history, arrays):
        """For `ExactResume`."""
        self.history = history

    def on_epoch_begin(self, epoch, logs=None):
        self.start = time.monotonic()

    def on_epoch_end(self, epoch, logs=None):
        trained = time.monotonic() - self.start
        figures = {}
        for split in self.task.dev:
            outputs = predict_rows(self.model, self.batches[split])
            found = self.task.score(self.examples[split], self.rows[split], outputs, self.class_names)
            # The history does not need confusion matrices.
            figures[split] = {name: value for name, value in found.items() if isinstance(value, int | float)}
        value = figures[self.task.dev[0]][self.task.main_metric]
        self.history.append({"loss": float(logs["loss"]), "value": value, "seconds": trained, "dev": figures})
        logs[self.name] = value  # Keras prints it, and BestWeights reads it
