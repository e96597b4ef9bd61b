"""report.html of a run directory: one file that needs no other, for a browser.

A template for each kind of run is filled with the JSON files of the run, its pictures and its worst errors. All of it
that comes from a user's data is escaped.
"""

import base64
import json
import pathlib
import shlex

import jinja2

from keras_bert_impl.json_files import written_whole
from keras_bert_impl.process_group import is_chief
from keras_bert_training.worst_errors import worst_errors

FILE = "report.html"
TEMPLATES = pathlib.Path(__file__).parent / "templates"
CONTENTS = ("run", "data", "history", "evaluation", "metrics", "summary")
PICTURES = {
    "curves.png": "Figures of training and validation",
    "confusion.png": "Confusion matrix: how often each class was predicted for each class",
    "f1_by_label.png": "F1 of each label",
}


def write(directory, kind, facts=None, **more):
    """Writes report.html, completely or not at all. One process writes.

    Args:
        directory: of the run. The template has its JSON files by their names, such as `metrics`.
        kind: of the run, the name of a template: "preparation", "pretraining" or "finetuning".
        facts: the `CardFacts` of a finished training; None for another run.
        more: what is in no file of the run.
    """
    if not is_chief():
        return
    directory = pathlib.Path(directory)
    page = _environment().get_template(f"{kind}.html")
    pictures = [(path.read_bytes(), alt) for name, alt in PICTURES.items() if (path := directory / name).is_file()]
    text = page.render(
        {name: _read(directory / f"{name}.json") for name in CONTENTS},
        directory=directory,
        facts=facts,
        pictures=[(base64.b64encode(picture).decode(), alt) for picture, alt in pictures],
        errors=worst_errors(directory),
        **more,
    )
    with written_whole(directory / FILE) as file:
        file.write(text)


def _environment():
    loader = jinja2.FileSystemLoader(TEMPLATES)
    made = jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    made.filters |= {
        "quoted": lambda path: shlex.quote(str(path)),
        "thousands": "{:,}".format,
        "counted": lambda pairs: [(what, f"{number:,}") for what, number in pairs],
        "rounded": _rounded,
        "cells": _cells,
        "options": lambda found: [(name, _option(found[name])) for name in sorted(found)],
    }
    return made


def _read(path):
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def _rounded(figures, prefix=""):
    return [(name.removeprefix(prefix), f"{value:.4f}") for name, value in figures.items() if name.startswith(prefix)]


def _cells(rows, part=None):
    """The rows of a table of numbers; of rows that are dicts of dicts, those of a part."""
    return [
        [name, *(f"{value:.1%}" if isinstance(value, float) else f"{value:,}" for value in found.values())]
        for name, found in ((name, row[part] if part else row) for name, row in rows.items())
    ]


def _option(value):
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)
