"""Reads the rows that a model is asked about, one at a time, and writes its answers."""

import contextlib
import csv
import dataclasses
import itertools
import json
import os
import pathlib
import shutil
import sys
import tempfile

from keras_bert_impl.json_files import written_whole
from keras_bert_impl.text.corpora.numbered_lines import text_lines
from keras_bert_training.tasks.conll import read_conll
from keras_bert_training.tasks.squad_files import read_questions
from keras_bert_training.tasks.tables import read_table

FORMATS = {".txt": "text", ".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".conll": "conll", ".json": "squad"}
LISTS = ("words", "endings")  # columns that hold a list of strings
STANDARD = "-"  # standard input or output


def read_rows(config, needed, optional, bad_rows):
    """Yields a dict for each row of the input, with all columns of its file.

    Args:
        config: a PredictConfig; its fields `text_column` and so on name the columns.
        needed: "text", "question" and so on: the columns without which the model cannot be asked. A row with "words"
            needs no "text".
        optional: columns that are used if they are there, in all rows or in none.
        bad_rows: a BadRows.

    Raises: ValueError for a malformed row unless such rows are skipped.
    """
    form = format_of(config)
    named = [field.name for field in dataclasses.fields(config) if field.name.endswith("_column")]
    named = [name.removesuffix("_column") for name in named if getattr(config, name) != getattr(type(config), name)]
    needed = (*needed, *(ours for ours in optional if ours in named))  # a name that no column has is misspelt
    names = {ours: getattr(config, f"{ours}_column") for ours in (*needed, *optional)}
    with input_path(config.input, form) as path:
        if form in ("csv", "tsv", "jsonl"):
            rows = read_table(path, {}, bad_rows, others=True)
        else:
            rows = READERS[form](path, config, bad_rows)
        yield from checked_rows(rows, names, needed, bad_rows)


def format_of(config):
    """The format of the input, by default that of the ending of its name."""
    if config.format != "auto":
        return config.format
    return FORMATS[".txt" if config.input == STANDARD else pathlib.Path(config.input).suffix]


@contextlib.contextmanager
def input_path(name, form):
    """The path of the input; standard input that is not read line by line is first copied to a temporary file."""
    if name != STANDARD:
        yield pathlib.Path(name)
    elif form == "text":
        yield None
    else:
        suffix = next(suffix for suffix, of_suffix in FORMATS.items() if of_suffix == form)
        with tempfile.NamedTemporaryFile(prefix="standard_input_", suffix=suffix) as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
            file.flush()
            yield pathlib.Path(file.name)


def texts(path, config, bad_rows):
    """A text in each line."""
    lines = (line.rstrip("\r\n") for line in sys.stdin) if path is None else text_lines(path)
    return ((f"line {number}", {config.text_column: line}) for number, line in enumerate(lines, start=1))


def words(path, config, bad_rows):
    """A word in each line, with its label, if there is one, in the last column; blank lines between sentences."""
    sentences = enumerate(read_conll(path, bad_rows, labelled=False), start=1)
    return (
        (f"sentence {number}", {config.words_column: one.words, **({"labels": one.labels} if one.labels else {})})
        for number, one in sentences
    )


def questions(path, config, bad_rows):
    """SQuAD's JSON."""
    found = read_questions(path, bad_rows, training=False).questions
    names = config.question_column, config.context_column
    return ((f"question {one.id}", {"id": one.id, names[0]: one.question, names[1]: one.context}) for one in found)


READERS = {"text": texts, "conll": words, "squad": questions}


def checked_rows(rows, names, needed, bad_rows):
    """Yields the rows that have the columns, with lists where lists are wanted."""
    present = None
    for place, row in rows:
        given = {ours for ours, name in names.items() if name in row}
        missing = set(needed) - given - ({"text"} if "words" in given else set())
        present = given if present is None else present
        if missing:
            bad_rows.add(place, f"no column {names[min(missing)]!r}, found {', '.join(map(str, row))}", row)
        elif given != present:
            bad_rows.add(place, f"only some rows have {names[min(given ^ present)]!r}, expected in all or in none", row)
        else:
            values = {names[ours]: checked_value(row[names[ours]], ours in LISTS) for ours in given}
            wrong = next((name for name, value in values.items() if value is None), None)
            if wrong is None:
                yield {**row, **values}
            else:
                kind = "a list of strings" if wrong in {names.get(ours) for ours in LISTS} else "a string"
                bad_rows.add(place, f"{wrong} is not {kind}", row[wrong])


def checked_value(value, is_list):
    """The value of a column, a string or a list of strings, which a table of cells holds as JSON; None if it is not."""
    if not is_list:
        return value if isinstance(value, str) else None
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except json.JSONDecodeError:
            return None
    return value if isinstance(value, list) and value and all(isinstance(one, str) for one in value) else None


@contextlib.contextmanager
def open_output(name, source):
    """A function that writes a list of dicts at once, to a .csv or .jsonl file or to standard output.

    Raises: ValueError if the name is that of the input `source`.
    """
    if name == STANDARD:
        yield lambda rows: write_json_lines(sys.stdout, rows)
        return
    if all(map(os.path.exists, (name, source))) and os.path.samefile(name, source):
        raise ValueError(f"--output {name} is the --input: name another file.")
    with written_whole(name) as file:
        yield CsvRows(file) if name.endswith(".csv") else lambda rows: write_json_lines(file, rows)


def joined(rows, answers, number):
    """The rows with their answers, and the number behind the names of the answers' columns, from `number` on: the first
    with which no row has a column of such a name, as a user's own "predicted"; a 1 is not written."""
    own, names = set().union(*rows), set().union(*answers)
    number = next(n for n in itertools.count(number) if own.isdisjoint(numbered(name, n) for name in names))
    pairs = zip(rows, answers, strict=True)
    return [row | {numbered(name, number): value for name, value in answer.items()} for row, answer in pairs], number


def numbered(name, number):
    """The name of a column: predicted, predicted_2 and so on."""
    return name if number == 1 else f"{name}_{number}"


def write_json_lines(file, rows):
    """Writes dicts as JSON Lines, at once."""
    for row in rows:
        print(json.dumps(row, ensure_ascii=False), file=file)
    file.flush()


class CsvRows:
    """Writes dicts as rows of a CSV with the columns of the first one; lists are written as JSON."""

    def __init__(self, file):
        self.file, self.writer = file, None

    def __call__(self, rows):
        if self.writer is None:
            self.writer = csv.DictWriter(self.file, list(rows[0]))
            self.writer.writeheader()
        for row in rows:
            self.writer.writerow({name: as_cell(value) for name, value in row.items()})
        self.file.flush()


def as_cell(value):
    """A value as a cell of a CSV: lists and dicts as JSON."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value
