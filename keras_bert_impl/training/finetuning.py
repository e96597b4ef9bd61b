"""Fine-tunes a pre-trained checkpoint for a task: the paper's, or one of your own.

    keras-bert finetune --task mrpc --data glue/MRPC --model bert-base-uncased --output runs/mrpc
    keras-bert finetune --task mrpc --data glue/MRPC --model bert-base-uncased --output runs/mrpc --search
    keras-bert finetune --task glue --data glue --model bert-base-uncased --output runs/glue
    keras-bert finetune --data data/sentences --model runs/pretrain/encoder --output runs/classifier
    keras-bert finetune --data datasets:nyu-mll/glue/rte --text_column sentence1 --pair_column sentence2 ...

Without --task, `--data` holds train, validation and test tables of your own (.jsonl, .csv, .tsv). The output holds:
    run.json                            configuration and versions
    model/                              the best epoch, as a Hugging Face checkpoint
    metrics.json                        figures of every labelled split, of every epoch, seconds, padding
    predictions.jsonl, ...              of the split the figures are from; those of others bear its name
    confusion.png or f1_by_label.png    the same as a picture
    MRPC.tsv, ...                       what gluebenchmark.com takes
    saved_model/                        with --export
    trials/                             with --seeds or --search, one folder each; the best is copied up

The same command goes on where an interrupted one stopped.
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
from keras_bert_impl.training.runs import check_run, open_run

# The folders of the official distribution.
GLUE_FOLDERS = {name: name.upper() for name in glue.TASKS} | {"cola": "CoLA"}


@dataclasses.dataclass
class FinetuneConfig:
    """Fine-tunes a pre-trained checkpoint for a task.

    Args:
        data: directory with the task's files, for glue with a folder for each task; or datasets:owner/name/config
            of the Hugging Face hub, or datasets: and a path, for tables of your own, question_answering and ner.
        model: checkpoint directory to start from.
        output: run directory.
        task: a name; text_classification or text_regression for tables of your own; glue for all of it; or the path
            of a Python file that defines TASK.
        task_options: fields of the task to set, such as task_options.document_context=true or task_options.stride=64.
        text_column: own tables, the column of the text.
        pair_column: own tables, the column of a second text, if there is one.
        label_column: own tables, the column of the label; of a data set of tokens on the hub, that of the tags.
        bad_rows: malformed rows: stop at the first, or skip and count them; default is the task's, mostly stop.
        from_scratch: take only the checkpoint's shape and vocabulary, with random weights: what pre-training brought.
        epochs: passes over the training rows; default 3, or the task's in the paper, which tries 2 to 4.
        batch_size: default 32, or the task's in the paper, which tries 16 and 32.
        learning_rate: peak; default 5e-5, or the task's in the paper, which tries 5e-5 to 2e-5.
        warmup_share: of all steps, until the peak; then linear decay to 0.
        dropout_rate: on hidden states and attention while fine-tuning.
        sequence_length: longer texts are cut to so many tokens; default 128, 384 for questions.
        seeds: restarts with seed, seed + 1, ...; the best on dev is kept, mean and deviation are reported.
        search: try all of the following on dev, the paper's sweep.
        search_learning_rates: tried by search.
        search_batch_sizes: tried by search.
        search_epochs: tried by search.
        frozen_layers: embeddings and so many blocks do not learn.
        layer_decay: each block learns at this share of the rate of the block above it.
        lora_rank: learn low-rank updates of this rank in place of the blocks' kernels; 0 for none.
        class_weights: class to weight in the loss, or balanced.
        patience: stop after so many epochs without a better dev figure.
        export: write a SavedModel that takes strings.
        trim_vocabulary: train with the words that the task's texts use alone; the others only decay, which is done at
            the end. The result is the same, sooner.
        precision: Keras dtype policy: float32 or mixed_bfloat16.
        jit_compile: XLA, or on torch its own compiler: on, off, or auto: on for JAX, and for TensorFlow where the
            model is small.
        seed: of new weights, order and dropout.
        distribution: which devices compute: single; on TensorFlow mirrored (the GPUs of this machine) or multi_worker
            (of the machines in TF_CONFIG); on JAX data_parallel (all devices, of all processes) or model_parallel (each
            weight matrix over some of them). batch_size is that of all together.
        devices: use so many; without an accelerator, so many parts of the CPU, to try things out.
        model_devices: for model_parallel, the devices that share one copy of the model.
    """

    GROUPS: typing.ClassVar = {
        "the task's data": (
            *("task_options", "text_column", "pair_column", "label_column", "bad_rows"),
            *("sequence_length", "trim_vocabulary"),
        ),
        "training": (
            *("from_scratch", "epochs", "batch_size", "learning_rate", "warmup_share", "dropout_rate"),
            *("class_weights", "patience", "seed"),
        ),
        "several trials": ("seeds", "search", "search_learning_rates", "search_batch_sizes", "search_epochs"),
        "which weights learn": ("frozen_layers", "layer_decay", "lora_rank"),
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
    """Trains, keeps what is best on dev, scores it on the test split, or on dev if test has no labels; the figures."""
    with distribution.distributed(config):
        return run_here(config)


def run_here(config):
    """`run`, on the devices that are set up."""
    if config.task == "glue":
        return run_glue(config)
    with hub_datasets.as_directory(config.data, config.label_column) as data:
        return run_task(config, data)


def run_task(config, data):
    """The same for one task, whose files lie in the directory `data`."""
    task = find_task(config, data)
    chosen = {name: getattr(config, name) or task.defaults.get(name, usual) for name, usual in DEFAULTS.items()}
    config = dataclasses.replace(config, **chosen)
    if config.export and not getattr(task, "exports", True):
        raise ValueError(f"The task {task.name} has no SavedModel to export: leave export out.")
    check_devices(config)
    directory = check_run(config.output, config)
    if (directory / "metrics.json").is_file():
        say(f"  {directory} holds the finished run.")
        return json.loads((directory / "metrics.json").read_text())
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


def check_devices(config):
    """Raises ValueError for what several devices or processes cannot do."""
    for size in config.search_batch_sizes if config.search else [config.batch_size]:
        distribution.check_batch_size(size)
    if config.export and distribution.num_processes() > 1:
        raise ValueError(
            "A SavedModel is written by one process: leave export out, then keras-bert export --model "
            f"{config.output}/model --output {config.output}/saved_model"
        )


def plan_trials(config):
    """The configurations to try, each with its folder, one seed and no search."""
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
    """Runs the trials that are not finished, copies the best up; its figures, with those of all on dev."""
    open_run(directory, config)
    found = []
    for number, trial in enumerate(trials, start=1):
        say(f"  trial {number} of {len(trials)}: {pathlib.Path(trial.output).name}")
        path = check_run(trial.output, trial) / "metrics.json"
        figures = json.loads(path.read_text()) if path.is_file() else train(trial, task, examples, path.parent)
        found.append(figures)
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
    """What a trial has written, but its own configuration and figures."""
    for source in trial.iterdir():
        if source.is_dir():
            shutil.copytree(source, directory / source.name, dirs_exist_ok=True)
        elif source.name not in ("run.json", "metrics.json"):
            shutil.copy(source, directory / source.name)


def run_glue(config):
    """Every GLUE task whose folder lies in the data; writes submission/ and prints the table. Figures by task."""
    directory, figures = pathlib.Path(config.output), {}
    for name, folder in GLUE_FOLDERS.items():
        data = pathlib.Path(config.data) / folder
        if not data.is_dir():
            say(f"  {data} not found: {name} left out")
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
    """What gluebenchmark.com takes of a task, beside that of the others."""
    (directory / "submission").mkdir(exist_ok=True)
    for file in glue.TASKS[name].submissions.values():
        if (directory / name / file).is_file():
            shutil.copy(directory / name / file, directory / "submission" / file)
