"""Data sets of the `datasets` library as the files that tasks read: `--data datasets:nyu-mll/glue/mrpc`."""

import contextlib
import importlib.util
import json
import pathlib
import tempfile

PREFIX = "datasets:"
# Our split -> theirs; the first that is there is taken.
SPLITS = {
    "train": ("train",),
    "dev": ("validation", "dev", "valid", "validation_matched"),
    "test": ("test", "test_matched"),
}
TAG_COLUMNS = ("ner_tags", "tags", "labels", "pos_tags")


@contextlib.contextmanager
def as_directory(data):
    """Yields the directory of a task's files: `data` itself, or a temporary one for "datasets:owner/name/config".

    Questions with contexts and answers become SQuAD's files (task question_answering), tokens with tags CoNLL's (task
    ner), all others train.jsonl, validation.jsonl and test.jsonl with their columns, classes by their names.

    Raises: ValueError if the library is missing, or it finds no such data set, with what it said.
    """
    if not data.startswith(PREFIX):
        yield data
        return
    with tempfile.TemporaryDirectory() as directory:
        write_files(_load(data.removeprefix(PREFIX)), pathlib.Path(directory))
        yield directory


def _load(name):
    if importlib.util.find_spec("datasets") is None:
        raise ValueError(f"{PREFIX}{name} needs the datasets library: pip install 'keras_bert_impl[datasets]'")
    import datasets

    parts = name.split("/")
    # A path of this machine, or owner/name and perhaps the name of a configuration.
    path, *configuration = [name] if pathlib.Path(name).exists() else ["/".join(parts[:2]), *parts[2:]]
    try:
        return datasets.load_dataset(path, *configuration)
    except Exception as error:  # the library raises its own, requests' and the hub's
        raise ValueError(f"{PREFIX}{name} cannot be had, {type(error).__name__}: {error}") from error


def write_files(dataset, directory):
    """Writes the splits of a `datasets.DatasetDict` as `as_directory` says."""
    for split, theirs in SPLITS.items():
        found = next((dataset[name] for name in theirs if name in dataset), None)
        if found is None:
            continue
        tags = next((name for name in TAG_COLUMNS if name in found.column_names), None)
        if {"question", "context", "answers"} <= set(found.column_names):
            (directory / f"{split}.json").write_text(json.dumps(_squad(found)), encoding="utf-8")
        elif "tokens" in found.column_names and tags is not None:
            (directory / f"{split}.txt").write_text(_conll(found, tags), encoding="utf-8")
        else:
            name = "validation" if split == "dev" else split
            (directory / f"{name}.jsonl").write_text(_json_lines(found), encoding="utf-8")


def _squad(rows):
    """A paragraph a question; one without answers is impossible, if any question of the split is."""
    with_impossible = any(not row["answers"]["text"] for row in rows)
    paragraphs = []
    for number, row in enumerate(rows):
        answers = zip(row["answers"]["text"], row["answers"]["answer_start"], strict=True)
        question = {
            "id": str(row.get("id", number)),
            "question": row["question"],
            "answers": [{"text": text, "answer_start": start} for text, start in answers],
        }
        if with_impossible:
            question["is_impossible"] = not question["answers"]
        paragraphs.append({"context": row["context"], "qas": [question]})
    return {"version": "v2.0" if with_impossible else "1.1", "data": [{"title": "", "paragraphs": paragraphs}]}


def _conll(rows, tags):
    names = _class_names(rows.features[tags])
    lines = []
    for row in rows:
        labels = row[tags] if names is None else [names[tag] for tag in row[tags]]
        lines += [f"{word}\t{label}" for word, label in zip(row["tokens"], labels, strict=True)] + [""]
    return "\n".join(lines) + "\n"


def _json_lines(rows):
    names = {name: _class_names(feature) for name, feature in rows.features.items()}
    # The hub marks what has no label with class -1, as GLUE's test sets.
    hidden = {name for name, classes in names.items() if classes is not None and -1 in rows[name]}
    lines = []
    for row in rows:
        cells = {name: cell for name, cell in row.items() if name not in hidden}
        named = {name: cell if names[name] is None else names[name][cell] for name, cell in cells.items()}
        lines.append(json.dumps(named, ensure_ascii=False, default=str))
    return "\n".join(lines) + "\n"


def _class_names(feature):
    """The names of a ClassLabel, or of a sequence of them; None for another feature."""
    names = getattr(feature, "names", None)
    return names if names is not None else getattr(getattr(feature, "feature", None), "names", None)
