"""Writes datasets of the `datasets` library as the files that tasks read: `--data datasets:nyu-mll/glue/mrpc`."""

import contextlib
import json
import pathlib
import tempfile
import typing

import numpy as np

from keras_bert_impl.console import say

PREFIX = "datasets:"
# Our split -> names of a dataset's splits; the first one that exists is used.
SPLITS = {
    "train": ("train",),
    "dev": ("validation", "dev", "valid", "validation_matched"),
    "test": ("test", "test_matched"),
}
TAG_COLUMNS = ("ner_tags", "tags", "labels", "pos_tags")
UNLABELLED = (-1, -100, None)  # a missing label: in GLUE's test sets, in SNLI, in labels made for a loss
DEV_SHARE = 0.1


@contextlib.contextmanager
def as_directory(data, label_column="label"):
    """Yields the directory of a task's files: `data` itself, or a temporary one for "datasets:owner/name/config".

    Questions with contexts and answers are written as SQuAD's files (task question_answering), tokens with tags as
    CoNLL's (task ner). All other datasets become train.jsonl, validation.jsonl and test.jsonl with the same columns and
    the names of the classes. Rows without a label are left out and counted; if there is no validation split, a tenth of
    the training set becomes one.

    Args:
        data: a directory, or the name of a dataset.
        label_column: column of the label; for a dataset of tokens that has several columns of tags, the one to use.
    """
    if not data.startswith(PREFIX):
        yield data
        return
    with tempfile.TemporaryDirectory() as directory:
        dataset = _load(data.removeprefix(PREFIX))
        write_files(dataset, pathlib.Path(directory), label_column)
        yield directory


def repository_of(data):
    """The "owner/name" of a dataset of the hub; None for a directory and for a dataset of this machine."""
    name = data.removeprefix(PREFIX)
    is_of_hub = data.startswith(PREFIX) and "/" in name and not pathlib.Path(name).exists()
    return "/".join(name.split("/")[:2]) if is_of_hub else None


def _load(name):
    import datasets

    parts = name.split("/")
    # A path of this machine, or owner/name and perhaps the name of a configuration.
    path, *configuration = [name] if pathlib.Path(name).exists() else ["/".join(parts[:2]), *parts[2:]]
    return datasets.load_dataset(path, *configuration)


def write_files(dataset, directory, label_column="label"):
    """Writes the splits of a `datasets.DatasetDict` as `as_directory` describes."""
    found = {ours: next((dataset[name] for name in names if name in dataset), None) for ours, names in SPLITS.items()}
    kind, label = _layout_of(found["train"], label_column)
    parts = {split: _labelled(split, rows, kind, label) for split, rows in found.items() if rows is not None}
    if "dev" not in parts or not parts["dev"].has_labels:
        parts["train"], parts["dev"] = _split_off(parts["train"].rows, kind)
    for split, part in parts.items():
        if kind == "questions":
            (directory / f"{split}.json").write_text(json.dumps(_squad(*part)), encoding="utf-8")
        elif kind == "table":
            name = "validation" if split == "dev" else split
            (directory / f"{name}.jsonl").write_text(_json_lines(*part, label), encoding="utf-8")
        elif part.has_labels:  # a file of words and labels cannot hold words without labels
            (directory / f"{split}.txt").write_text(_conll(part.rows, label), encoding="utf-8")


class Part(typing.NamedTuple):
    """The rows of a split that have labels; all of them if none has one."""

    rows: typing.Any
    has_labels: bool


def _layout_of(rows, label_column):
    """What a dataset holds, "questions", "tokens" or a "table", and the column of its labels."""
    if {"question", "context", "answers"} <= set(rows.column_names):
        return "questions", "answers"
    wanted = TAG_COLUMNS if label_column == "label" else (label_column,)
    tags = next((name for name in wanted if {name, "tokens"} <= set(rows.column_names)), None)
    return ("table", label_column) if tags is None else ("tokens", tags)


def _labelled(split, rows, kind, label):
    """The Part of a split. Reports how many rows have no label."""
    if label not in rows.column_names:
        return Part(rows, False)
    values = list(rows[label])
    if kind == "questions":  # if others have answers, a question without answers cannot be answered
        return Part(rows, any(value["text"] for value in values))
    if kind == "tokens":
        places = [place for place, tags in enumerate(values) if not set(tags) & set(UNLABELLED)]
    elif hasattr(rows.features[label], "names") or set(values) <= set(UNLABELLED):
        places = [place for place, value in enumerate(values) if value not in UNLABELLED]
    else:  # -1 among other numbers is a number
        places = [place for place, value in enumerate(values) if value is not None]
    missing = len(values) - len(places)
    if missing == len(values):
        say(f"  {split}: none of the {len(values):,} examples has a label")
        return Part(rows, False)
    if missing:
        say(f"  {split}: {missing:,} of {len(values):,} examples have no label and are left out")
    return Part(rows.select(places) if missing else rows, True)


def _split_off(rows, kind):
    """(train, dev): dev is a tenth of the training rows, drawn at random with a fixed seed; all questions of a context
    stay together."""
    groups = list(rows["context"]) if kind == "questions" else list(range(len(rows)))
    names = list(dict.fromkeys(groups))
    count = max(1, round(DEV_SHARE * len(names)))
    held_out = {names[place] for place in np.random.default_rng(0).permutation(len(names))[:count]}
    places = {True: [], False: []}
    for place, name in enumerate(groups):
        places[name in held_out].append(place)
    say(f"  no validation split with labels: {len(places[True]):,} of the {len(rows):,} training examples become dev")
    return Part(rows.select(places[False]), True), Part(rows.select(places[True]), True)


def _squad(rows, has_labels):
    """SQuAD's layout, a paragraph for each question; a question without answers counts as impossible if others have
    answers."""
    with_impossible = has_labels and any(not row["answers"]["text"] for row in rows)
    paragraphs = []
    for number, row in enumerate(rows):
        question = {"id": str(row.get("id", number)), "question": row["question"]}
        if has_labels:
            answers = zip(row["answers"]["text"], row["answers"]["answer_start"], strict=True)
            question["answers"] = [{"text": text, "answer_start": start} for text, start in answers]
        if with_impossible:
            question["is_impossible"] = not question["answers"]
        paragraphs.append({"context": row["context"], "qas": [question]})
    return {"version": "v2.0" if with_impossible else "1.1", "data": [{"title": "", "paragraphs": paragraphs}]}


def _conll(rows, tags):
    feature = rows.features[tags]
    names = getattr(getattr(feature, "feature", feature), "names", None)  # of a sequence of ClassLabels
    lines = []
    for row in rows:
        labels = row[tags] if names is None else [names[tag] for tag in row[tags]]
        lines += [f"{word}\t{label}" for word, label in zip(row["tokens"], labels, strict=True)] + [""]
    return "\n".join(lines) + "\n"


def _json_lines(rows, has_labels, label_column):
    names = {name: getattr(feature, "names", None) for name, feature in rows.features.items()}
    lines = []
    for row in rows:
        named = {
            name: cell if names[name] is None or cell in UNLABELLED else names[name][cell]
            for name, cell in row.items()
            if has_labels or name != label_column
        }
        lines.append(json.dumps(named, ensure_ascii=False, default=str))
    return "\n".join(lines) + "\n"
