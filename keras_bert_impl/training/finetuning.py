"""Fine-tunes a pre-trained checkpoint for a task of the paper, or one of your own.

    keras-bert finetune --task mrpc --data glue/MRPC --model bert-base-uncased --output runs/mrpc
    keras-bert finetune --task mrpc --data glue/MRPC --model bert-base-uncased --output runs/mrpc --search
    keras-bert finetune --task glue --data glue --model bert-base-uncased --output runs/glue
    keras-bert finetune --data data/sentences --model runs/pretrain/encoder --output runs/classifier
    keras-bert finetune --data datasets:nyu-mll/glue/rte --text_column sentence1 --pair_column sentence2 ...

Without --task, `--data` holds train, validation and test tables of your own (.jsonl, .csv, .tsv). The output directory
holds:
    run.json                            configuration and versions
    model/                              the best epoch, as a Hugging Face checkpoint
    metrics.json                        figures of every labelled split and every epoch, seconds, share of padding
    predictions.jsonl, ...              predictions for the reported split; files for other splits end in its name
    confusion.png or f1_by_label.png    figures of the reported split as a picture
    MRPC.tsv, ...                       submissions for gluebenchmark.com
    saved_model/                        with --export
    trials/                             with --seeds or --search, one folder for each trial; the files of the best one
                                        are copied into the output directory

The same command resumes an interrupted run.
"""

import dataclasses
import itertools
import json
import pathlib
import shutil
import statistics
import typing

from keras_bert_impl import distribution
from keras_bert_impl.console import say
from keras_bert_impl.json_files import write_json
from keras_bert_impl.tasks import glue, hub_datasets
from keras_bert_impl.training.finetuning_report import print_paper, write_glue_table
from keras_bert_impl.training.finetuning_task import find_task, read_splits
from keras_bert_impl.training.finetuning_trial import train
from keras_bert_impl.training.finished_run import score_new_splits
from keras_bert_impl.training.runs import check_run, open_run
from keras_bert_impl.training.task_distillation import check_teacher

# The folders of the official distribution.
GLUE_FOLDERS = {name: name.upper() for name in glue.TASKS} | {"cola": "CoLA"}


@dataclasses.dataclass
class FinetuneConfig:
    """Fine-tunes a pre-trained checkpoint for a task.

    Args:
        data: directory with the task's files, for glue with a folder for each task. For tables of your own,
            question_answering and ner also datasets:owner/name/config for a dataset of the Hugging Face hub, or
            datasets: followed by a path.
        model: checkpoint directory to start from.
        output: run directory.
        task: name of a task; text_classification or text_regression for tables of your own; glue for all its tasks; or
            the path of a Python file that defines TASK.
        task_options: fields of the task to set, such as task_options.document_context=true or task_options.stride=64.
        text_column: for tables of your own, the column of the text.
        pair_column: for tables of your own, the column of a second text, if there is one.
        label_column: for tables of your own, the column of the label; for a dataset of tokens on the hub, the column of
            the tags.
        bad_rows: what to do with malformed rows: stop at the first, or skip and count them; default is the task's own,
            for most tasks stop.
        from_scratch: use only the checkpoint's shape and vocabulary and start from random weights, to see what
            pre-training contributes.
        teacher: fine-tuned checkpoint for the same task, whose outputs for the training texts the model learns beside
            the labels; for tasks that find the class or a number of a text.
        teacher_weight: share of the teacher's outputs in the loss, from 0 to 1, the rest being that of the labels;
            default is 0.5.
        temperature: with a teacher of classes, what the logits are divided by before the softmax; default is 2.
        epochs: passes over the training set; default is 3, or the paper's value for the task. The paper tries 2 to 4.
        batch_size: default is 32, or the paper's value for the task. The paper tries 16 and 32.
        learning_rate: peak; default is 5e-5, or the paper's value for the task. The paper tries 5e-5 to 2e-5.
        warmup_share: share of the steps in which the learning rate rises to its peak; then it decays linearly to 0.
        dropout_rate: dropout on hidden states and attention while fine-tuning.
        sequence_length: longer texts are cut to this many tokens; default is 128, or 384 for question answering.
        seeds: number of trials, with seed, seed + 1, ...; the best on dev is kept, mean and deviation are reported.
        search: try all combinations of the following three options and keep the best on dev, as the paper does.
        search_learning_rates: learning rates that search tries.
        search_batch_sizes: batch sizes that search tries.
        search_epochs: numbers of epochs that search tries.
        frozen_layers: number of lower blocks that are frozen, together with the embeddings; 0 freezes nothing.
        layer_decay: each block's learning rate as a share of that of the block above it.
        lora_rank: rank of the low-rank updates (LoRA) that are learned in place of the blocks' kernels; 0 for none.
        join: checkpoint directory of a second encoder, whose vectors are joined to those of the first, for example one
            that reads from right to left beside one that reads from left to right, as ELMo does.
        bilstm_units: units of each direction of an LSTM between encoder and head (section 5.1); 0 for none.
        class_weights: weight of each class in the loss, by its name, or balanced.
        patience: stop after this many epochs without a better dev figure.
        export: write a SavedModel that takes strings.
        trim_vocabulary: train only with the words that occur in the task's texts. The embeddings of all others would
            only be subject to weight decay, which is applied at the end: the result is the same, in less time. Of a
            tokenizer other than WordPiece all pieces are kept.
        precision: Keras dtype policy: float32 or mixed_bfloat16.
        jit_compile: compile with XLA, or on torch with its own compiler: on, off, or auto, which means on for JAX, and
            for TensorFlow if the model is small.
        seed: random seed for new weights, order of the rows and dropout.
        distribution: which devices compute: single; on TensorFlow mirrored (the GPUs of this machine) or multi_worker
            (the machines in TF_CONFIG); on JAX data_parallel (all devices of all processes) or model_parallel (each
            weight matrix is split over some of them). batch_size counts the rows of all devices together.
        devices: number of devices to use; without an accelerator, the number of virtual devices to divide the CPU into,
            for trying things out.
        model_devices: for model_parallel, the number of devices that share one copy of the model.
    """

    REMOTE: typing.ClassVar = {"teacher": ("hf://",)}
    GROUPS: typing.ClassVar = {
        "the task's data": (
            *("task_options", "text_column", "pair_column", "label_column", "bad_rows"),
            *("sequence_length", "trim_vocabulary"),
        ),
        "training": (
            *("from_scratch", "epochs", "batch_size", "learning_rate", "warmup_share", "dropout_rate"),
            *("class_weights", "patience", "seed"),
        ),
        "a teacher": ("teacher", "teacher_weight", "temperature"),
        "several trials": ("seeds", "search", "search_learning_rates", "search_batch_sizes", "search_epochs"),
        "which weights learn": ("frozen_layers", "layer_decay", "lora_rank"),
        "on top of the encoder": ("join", "bilstm_units"),
        "speed and memory": ("precision", "jit_compile"),
        "devices": ("distribution", "devices", "model_devices"),
    }

    data: str
    model: str
    output: str
    task: str = "text_classification"
    task_options: dict[str, typing.Any] = dataclasses.field(default_factory=dict)
    text_column: str = "text"
    pair_column: str = "text_pair"
    label_column: str = "label"
    bad_rows: typing.Literal["stop", "skip"] | None = None
    from_scratch: bool = False
    teacher: str | None = None
    teacher_weight: float | None = None
    temperature: float | None = None
    epochs: int | None = None
    batch_size: int | None = None
    learning_rate: float | None = None
    warmup_share: float = 0.1
    dropout_rate: float = 0.1
    sequence_length: int | None = None
    seeds: int = 1
    search: bool = False
    search_learning_rates: list[float] = dataclasses.field(default_factory=lambda: [5e-5, 4e-5, 3e-5, 2e-5])
    search_batch_sizes: list[int] = dataclasses.field(default_factory=lambda: [16, 32])
    search_epochs: list[int] = dataclasses.field(default_factory=lambda: [2, 3, 4])
    frozen_layers: int = 0
    layer_decay: float = 1.0
    lora_rank: int = 0
    join: str | None = None
    bilstm_units: int = 0
    class_weights: dict[str, float] | typing.Literal["balanced"] | None = None
    patience: int | None = None
    export: bool = False
    trim_vocabulary: bool = True
    precision: str = "float32"
    jit_compile: typing.Literal["auto", "on", "off"] = "auto"
    seed: int = 0
    distribution: typing.Literal["single", "mirrored", "multi_worker", "data_parallel", "model_parallel"] = "single"
    devices: int | None = None
    model_devices: int = 1


DEFAULTS = {"epochs": 3, "batch_size": 32, "learning_rate": 5e-5, "sequence_length": 128}


def run(config):
    """Trains, keeps the weights that are best on dev, and scores them on the test split, or on dev if the test split
    has no labels; returns the figures."""
    with distribution.distributed(config):
        return run_here(config)


def run_here(config):
    """`run`, on the devices that are set up."""
    if config.task == "glue":
        return run_glue(config)
    with hub_datasets.as_directory(config.data, config.label_column) as data:
        return run_task(config, data)


def run_task(config, data):
    """`run` for one task, whose files are in the directory `data`."""
    task = find_task(config, data)
    usual = {**DEFAULTS, **{name: value for name, value in task.defaults.items() if name in DEFAULTS}}
    chosen = {name: value for name, value in usual.items() if getattr(config, name) is None}
    config = dataclasses.replace(config, **chosen)
    if config.export and not getattr(task, "exports", True):
        raise ValueError(f"The task {task.name} has no SavedModel to export: leave export out.")
    check_stack(config, task)
    check_devices(config)
    check_teacher(config, task)
    directory = check_run(config.output, config)
    if distribution.from_chief((directory / "metrics.json").is_file()):
        say(f"  {directory} holds the finished run.")
        return score_new_splits(config, task, data, directory)
    examples = read_splits(task, config, data)
    if hasattr(task, "suited_to"):
        task = task.suited_to(examples["train"])
    trials = plan_trials(config)
    if len(trials) == 1:
        figures = train(config, task, examples, directory)
    else:
        figures = run_trials(config, task, examples, trials, directory)
    print_paper(task, figures)
    return figures


def check_stack(config, task):
    """Raises ValueError for options that do not work with a stack of encoders, or with an LSTM on top."""
    if config.join is None and not config.bilstm_units:
        return
    for name, usual in (("frozen_layers", 0), ("layer_decay", 1.0), ("lora_rank", 0), ("export", False)):
        if getattr(config, name) != usual:
            raise ValueError(f"{name} does not work together with join or bilstm_units: leave {name} out.")
    if getattr(task, "features", None) is not None:
        raise ValueError("A task on frozen features has its own BiLSTM: leave join and bilstm_units out, or features.")


def check_devices(config):
    """Raises ValueError for options that do not work with several devices or processes."""
    for size in config.search_batch_sizes if config.search else [config.batch_size]:
        distribution.check_batch_size(size)
    if config.export and distribution.num_processes() > 1:
        raise ValueError(
            "A SavedModel is written by a single process: leave export out, and afterwards run keras-bert export "
            f"--model {config.output}/model --output {config.output}/saved_model"
        )


def plan_trials(config):
    """The configurations to try, each with a folder and a seed of its own, and without search."""
    choices = [("learning_rate", "batch_size", "epochs")]
    values = [[config.learning_rate], [config.batch_size], [config.epochs]]
    if config.search:
        values = [config.search_learning_rates, config.search_batch_sizes, config.search_epochs]
    trials = []
    for rate, size, epochs in itertools.product(*values):
        for seed in range(config.seed, config.seed + config.seeds):
            folder = pathlib.Path(config.output) / "trials" / f"rate{rate:g}_batch{size}_epochs{epochs}_seed{seed}"
            options = dict(zip(choices[0], (rate, size, epochs), strict=True))
            trials.append(dataclasses.replace(config, **options, seed=seed, seeds=1, search=False, output=str(folder)))
    return trials


def run_trials(config, task, examples, trials, directory):
    """Runs the trials that are not finished and copies the files of the best into `directory`; returns the figures of
    the best, with the dev figures of all."""
    open_run(directory, config)
    found = []
    for number, trial in enumerate(trials, start=1):
        say(f"  trial {number} of {len(trials)}: {pathlib.Path(trial.output).name}")
        path = check_run(trial.output, trial) / "metrics.json"
        # One process may not see yet what another wrote: all train, or none.
        is_finished = distribution.from_chief(path.is_file())
        found.append(json.loads(path.read_text()) if is_finished else train(trial, task, examples, path.parent))
    values = [figures["splits"][task.dev[0]][task.main_metric] for figures in found]
    best = max(range(len(values)), key=values.__getitem__)
    summary = {
        "trials": {pathlib.Path(trial.output).name: value for trial, value in zip(trials, values, strict=True)},
        "best_trial": pathlib.Path(trials[best].output).name,
        "mean": statistics.mean(values),
        "deviation": statistics.stdev(values) if len(values) > 1 else 0.0,
    }
    deviation = f"{summary['mean']:.4f}, deviation {summary['deviation']:.4f}"
    say(f"  {task.dev[0]} {task.main_metric} of {len(values)} trials: best {values[best]:.4f}, mean {deviation}")
    if distribution.is_chief():
        copy_up(pathlib.Path(trials[best].output), directory)
    figures = {**found[best], **summary}
    write_json(directory / "metrics.json", figures)
    return figures


def copy_up(trial, directory):
    """Copies what a trial has written into `directory`, except its configuration and figures."""
    for source in trial.iterdir():
        if source.is_dir():
            shutil.copytree(source, directory / source.name, dirs_exist_ok=True)
        elif source.name not in ("run.json", "metrics.json"):
            shutil.copy(source, directory / source.name)


def run_glue(config):
    """Runs every GLUE task whose folder exists, writes submission/ and prints the table; returns the figures by
    task."""
    directory, figures = pathlib.Path(config.output), {}
    for name, folder in GLUE_FOLDERS.items():
        data = pathlib.Path(config.data) / folder
        if not data.is_dir():
            say(f"  {data} not found: {name} is left out")
            continue
        say(f"{name}")
        task_config = dataclasses.replace(config, task=name, data=str(data), output=str(directory / name))
        figures[name] = run_here(task_config)
        if distribution.is_chief():
            copy_submissions(directory, name)
    if not figures:
        raise ValueError(f"{config.data} holds none of the folders {', '.join(GLUE_FOLDERS.values())}.")
    write_glue_table(directory, figures)
    return figures


def copy_submissions(directory, name):
    """Copies a task's submission files into submission/, which collects those of all tasks."""
    (directory / "submission").mkdir(exist_ok=True)
    for file in glue.TASKS[name].submissions.values():
        if (directory / name / file).is_file():
            shutil.copy(directory / name / file, directory / "submission" / file)
