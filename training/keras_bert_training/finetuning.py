"""Fine-tunes a pre-trained checkpoint for a task of the paper, or one of your own.

    keras-bert finetune --task mrpc --data glue/MRPC --model bert-base-uncased --output runs/mrpc
    keras-bert finetune --task mrpc --data glue/MRPC --model bert-base-uncased --output runs/mrpc --search
    keras-bert finetune --task glue --data glue --model bert-base-uncased --output runs/glue
    keras-bert finetune --data data/sentences --model runs/pretrain/encoder --output runs/classifier
    keras-bert finetune --data datasets:nyu-mll/glue/rte --text_column sentence1 --pair_column sentence2 ...

Without --task, `--data` holds train, validation and test tables of your own (.jsonl, .csv, .tsv). The output directory
holds:
    run.json, data.json                 configuration and versions; SHA-256 of the files that were read
    model/                              the best epoch, as a Hugging Face checkpoint
    metrics.json                        figures of every labelled split and every epoch, seconds, share of padding
    predictions.jsonl, ...              predictions for the reported split; files for other splits end in its name
    confusion.png or f1_by_label.png    figures of the reported split as a picture
    curves.png                          loss and main figure over the epochs, if there were several
    MRPC.tsv, ...                       submissions for gluebenchmark.com
    report.html                         all of it on one page
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

from keras_bert_impl import distribution
from keras_bert_impl.console import say
from keras_bert_impl.json_files import write_json
from keras_bert_training.finetuning_report import write_finetuning
from keras_bert_training.finetuning_task import check_files, file_sums, find_task, read_splits
from keras_bert_training.finetuning_trial import train
from keras_bert_training.options.finetune import FinetuneConfig as FinetuneConfig
from keras_bert_training.options.rules import default_of
from keras_bert_training.runs import check_run, is_elsewhere, locked, open_run
from keras_bert_training.tasks import glue, hub_datasets

DEFAULTS = {"epochs": 3, "batch_size": 32, "learning_rate": 5e-5, "sequence_length": 128}


def run(config):
    """Trains, keeps the weights that are best on dev, and scores them on the test split, or on dev if the test split
    has no labels; returns the figures."""
    with distribution.distributed(config):
        return run_glue(config) if config.task == "glue" else run_task(config)


def run_task(config):
    """`run` for one task, on the devices that are set up."""
    with hub_datasets.as_directory(config.data, config.label_column) as data:
        task = find_task(config, data)
        usual = {**DEFAULTS, **task.defaults}
        chosen = {name: value for name, value in usual.items() if getattr(config, name) is None}
        config = dataclasses.replace(config, **chosen)
        for size in config.search_batch_sizes if config.search else [config.batch_size]:
            distribution.check_batch_size(size)
        directory = check_run(config.output, config)
        if distribution.from_chief((directory / "metrics.json").is_file()):
            if distribution.from_chief(is_elsewhere(directory, config.data)):
                check_files(directory, file_sums(task, ("train", *task.dev, *task.test), data), config.data)
            say(f"  {directory} holds the finished run.")
            return json.loads((directory / "metrics.json").read_text())
        with locked(directory):
            examples = read_splits(task, config, data)
            files = file_sums(task, examples, data)
            check_files(directory, files, config.data)
            if hasattr(task, "suited_to"):
                task = task.suited_to(examples["train"])
            trials = plan_trials(config)
            if len(trials) == 1:
                return train(config, task, examples, directory, files)
            return run_trials(config, task, examples, trials, directory, files)


SEARCHED = ("search_learning_rates", "search_batch_sizes", "search_epochs")
CHOSEN = ("learning_rate", "batch_size", "epochs")  # in each trial one of these values


def plan_trials(config):
    """The configurations to try, each with a folder and a seed of its own, and without search."""
    values = [[getattr(config, name)] for name in CHOSEN]
    if config.search:
        values = [getattr(config, name) for name in SEARCHED]
    usual = {name: default_of(config, name) for name in SEARCHED} | {"search": False, "seeds": 1}
    trials = []
    for rate, size, epochs in itertools.product(*values):
        for seed in range(config.seed, config.seed + config.seeds):
            folder = pathlib.Path(config.output) / "trials" / f"rate{rate:g}_batch{size}_epochs{epochs}_seed{seed}"
            options = dict(zip(CHOSEN, (rate, size, epochs), strict=True))
            trials.append(dataclasses.replace(config, **options, **usual, seed=seed, output=str(folder)))
    return trials


def run_trials(config, task, examples, trials, directory, files):
    """Runs the trials that are not finished and copies the files of the best into `directory`; returns the figures of
    the best, with the dev figures of all."""
    open_run(directory, config)
    write_json(directory / "data.json", {"files": files})
    found = []
    for number, trial in enumerate(trials, start=1):
        say(f"  trial {number} of {len(trials)}: {pathlib.Path(trial.output).name}")
        path = check_run(trial.output, trial) / "metrics.json"
        # One process may not see yet what another wrote: all train, or none.
        is_finished = distribution.from_chief(path.is_file())
        found.append(json.loads(path.read_text()) if is_finished else train(trial, task, examples, path.parent, files))
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
    write_finetuning(directory, trials[best], task, figures)
    return figures


def copy_up(trial, directory):
    """Copies what a trial has written into `directory`, except its configuration and figures."""
    for source in trial.iterdir():
        if source.is_dir():
            shutil.copytree(source, directory / source.name, dirs_exist_ok=True)
        elif source.name not in ("run.json", "data.json", "metrics.json"):
            shutil.copy(source, directory / source.name)


def run_glue(config):
    """Runs every GLUE task whose folder exists, writes submission/ and prints the table; returns the figures by
    task."""
    directory, figures = pathlib.Path(config.output), {}
    for name in glue.TASKS:
        data = pathlib.Path(config.data) / glue.folder_of(name)
        if not data.is_dir():
            say(f"  {data} not found: {name} is left out")
            continue
        say(f"{name}")
        task_config = dataclasses.replace(config, task=name, data=str(data), output=str(directory / name))
        figures[name] = run_task(task_config)
        if distribution.is_chief():
            (directory / "submission").mkdir(exist_ok=True)  # the files of all tasks
            for file in glue.TASKS[name].submissions.values():
                if (directory / name / file).is_file():
                    shutil.copy(directory / name / file, directory / "submission" / file)
    lines = glue.glue_table({name: found["splits"] for name, found in figures.items()})
    if distribution.is_chief():
        (directory / "table.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for line in lines:
        say(f"  {line}")
    return figures
