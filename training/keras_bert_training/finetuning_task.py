"""Finds the task of a fine-tuning run and reads the examples of its splits; called by `finetuning.py`."""

import dataclasses
import json
import os
import pathlib
import runpy

from keras_bert_impl import distribution
from keras_bert_impl.console import say
from keras_bert_impl.suggestions import did_you_mean
from keras_bert_impl.text.rows.shards import file_identity
from keras_bert_training.tasks import endings, glue, named_entities, own_data, question_answering
from keras_bert_training.tasks.tables import BadRows

TASKS = {**glue.TASKS, **question_answering.TASKS, **endings.TASKS, **named_entities.TASKS}
# The parts that every task has, see `keras_bert_training/tasks/__init__.py`.
PARTS = (
    "name", "splits", "dev", "test", "main_metric", "defaults", "paper", "bad_rows", "read", "find_class_names",
    "build", "loss", "featurize", "score", "write_predictions", "submissions",
)  # fmt: skip


def find_task(config, data):
    """The task that the configuration names, with its options. Raises ValueError if there is no such task, or if it
    lacks a part."""
    if config.task in own_data.KINDS:
        columns = (config.text_column, config.pair_column, config.label_column)
        task = own_data.own_task(config.task, data, *columns)
    elif config.task.endswith(".py"):
        task = runpy.run_path(config.task)["TASK"]
    elif config.task in TASKS:
        task = TASKS[config.task]
    else:
        known = [*own_data.KINDS, *TASKS, "glue"]
        raise ValueError(
            f"There is no task {config.task!r}: give one of {', '.join(known)}, or the path of a .py file."
            + did_you_mean(config.task, known)
        )
    missing = [part for part in PARTS if not hasattr(task, part)]
    if missing:
        raise ValueError(
            f"TASK in {config.task} lacks {', '.join(missing)}: keras_bert_training.tasks lists a task's parts."
        )
    return dataclasses.replace(task, **config.task_options) if config.task_options else task


def read_splits(task, config, data):
    """The examples of each split by name. Reports malformed rows, and test splits left out because their file is
    missing. Raises ValueError for a dev split without labels."""
    examples = {}
    for split in ("train", *task.dev, *task.test):
        # Leaving a row out of a test set would shift the lines of the submission.
        bad_rows = BadRows("stop" if split in task.test else config.bad_rows or task.bad_rows)
        if split in task.test and not file_of(task, split, data).is_file():
            say(f"  {split}: there is no file for this split, so nothing is predicted for it")
            continue
        examples[split] = task.read(data, split, bad_rows)
        if split in task.dev and examples[split].labels is None:
            raise ValueError(
                f"The {split} split of {task.name} in {data} has no labels, which are needed to choose the best "
                "epoch: give a file with labels, such as a part of the training data, or another split in "
                "task_options.dev."
            )
        for message in bad_rows.messages[:5]:
            say(f"  left out: {message}")
        if bad_rows.messages:
            say(f"  {split}: {len(bad_rows.messages):,} malformed rows left out")
    return examples


def file_of(task, split, data):
    """The path of a split's file. `task.splits` holds its name, a tuple that begins with the name, or an object with a
    `path`."""
    place = task.splits[split]
    if hasattr(place, "path"):
        return place.path(data)
    return pathlib.Path(data) / (place if isinstance(place, str) else place[0])


def file_sums(task, splits, data):
    """The SHA-256 of the files that splits are read from, by their paths in the directory `data`.

    If a split has no file of its own, all files of the directory count: the task has made it of some of them.
    """
    paths = set()
    for split in splits:
        path = file_of(task, split, data)
        others = pathlib.Path(data).glob("*") if pathlib.Path(data).is_dir() else ()
        paths |= {path} if path.is_file() else {other for other in others if other.is_file()}
    sums = {}
    for path in sorted(paths):
        sums[pathlib.Path(os.path.relpath(path, data)).as_posix()] = file_identity(path)["sha256"]
    return sums


def check_files(directory, sums, data):
    """Raises ValueError, in all processes, if the run in a directory began with other files, naming the first."""
    path = directory / "data.json"
    with distribution.failing_together():
        begun = json.loads(path.read_text())["files"] if distribution.is_chief() and path.is_file() else {}
        for name, sha256 in begun.items():
            if sums.get(name) != sha256:
                raise ValueError(
                    f"{directory} holds a run that started with a different {name} from the one in {data} now. Name "
                    "another output, or restore the first file."
                )
