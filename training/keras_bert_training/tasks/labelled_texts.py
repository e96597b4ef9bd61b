"""Texts, or pairs of texts, each with a label: the examples of classification and regression."""

import pathlib
import re
import typing

import numpy as np

from keras_bert_impl.json_files import write_json_lines, written_whole
from keras_bert_impl.preprocessing import TextPreprocessor
from keras_bert_impl.preprocessing.long_texts import arguments_of
from keras_bert_impl.suggestions import one_of
from keras_bert_training.tasks.tables import read_table

WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+")


class LabelledTexts(typing.NamedTuple):
    """Texts; `pairs` is None for single texts, `labels` for unlabelled ones."""

    texts: list[str]
    pairs: list[str] | None
    labels: list | None

    def rows(self, tokenizer, sequence_length, labels=None, long_texts="cut"):
        """The Rows of the examples.

        Args:
            tokenizer: a Tokenizer.
            sequence_length: the longest row.
            labels: (examples, ...), or None.
            long_texts: "cut", "head_and_tail" or "windows", see `preprocessing.long_texts`.

        Raises: ValueError for pairs that are not cut.
        """
        if long_texts != "cut" and self.pairs is not None:
            raise ValueError(
                f"long_texts {long_texts!r} applies to single texts, but these are pairs, which are truncated."
            )
        preprocessor = TextPreprocessor(tokenizer, sequence_length, **arguments_of(long_texts))
        return preprocessor.rows(self.texts if self.pairs is None else (self.texts, self.pairs), labels)

    def write(self, path, predictions):
        """Writes a line of JSON for each example: its text or texts, its label if known, and a dict of predictions."""
        columns = {"text": self.texts, "text_pair": self.pairs, "label": self.labels}
        columns = {name: column for name, column in columns.items() if column is not None}
        rows = (dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True))
        write_json_lines(path, (row | found for row, found in zip(rows, predictions, strict=True)))

    def class_ids(self, class_names):
        """The labels as indices into `class_names`. Raises ValueError that names a label that is not among them."""
        places = {name: place for place, name in enumerate(class_names)}
        return np.array([places[one_of("label", label, places)] for label in self.labels], "int32")


class Split(typing.NamedTuple):
    """One file of a task.

    `columns` maps our column names to the file's, or to column numbers if the file has no header. `elsewhere` is the
    file's path in another distribution, relative to the task's directory.
    """

    file: str
    columns: dict
    optional: tuple = ()
    elsewhere: str | None = None

    def path(self, directory):
        """The path of the file; that of `elsewhere` if the file exists only there."""
        path = pathlib.Path(directory) / self.file
        if self.elsewhere is not None and not path.is_file():
            other = pathlib.Path(directory) / self.elsewhere
            return other if other.is_file() else path
        return path


def read_split(directory, splits, split, bad_rows):
    """The LabelledTexts of a split, with the labels as in the file. Raises: ValueError as `read_table` does."""
    one = splits[split]
    return read_labelled(one.path(directory), one.columns, bad_rows, one.optional)


def read_labelled(path, columns, bad_rows, optional=()):
    """The LabelledTexts of one table; a row without a text, or without a label where others have one, is malformed.

    Args, Raises: those of `read_table`.
    """
    return examples_of(_filled_rows(read_table(path, columns, bad_rows, optional), bad_rows))


def _filled_rows(rows, bad_rows):
    """The pairs (place, row) that have a text and, if there is one in their table, a label; others are malformed."""
    for place, row in rows:
        blank = [name for name in ("text", "label") if name in row and not str(row[name]).strip()]
        if "text" in blank and row.get("text_pair", "").strip():
            blank.remove("text")  # one text of the pair is there, as in some rows of QQP
        if blank:
            problem = " and ".join(f"the {name} is empty" for name in blank)
            bad_rows.add(place, problem, " | ".join(map(str, row.values())))
        else:
            yield place, row


def in_order(labels):
    """The distinct labels, sorted: whole numbers by value (0, 1, 2, 10), others as text."""
    names = set(labels)
    if all(WHOLE_NUMBER.fullmatch(name) for name in names):
        return sorted(names, key=lambda name: (int(name), name))
    return sorted(names)


def examples_of(rows):
    """LabelledTexts of pairs (place, {"text": ..., "text_pair": ..., "label": ...}). "text_pair" and "label" are either
    in all rows or in none."""
    rows = [row for _, row in rows]
    pairs = [row["text_pair"] for row in rows] if "text_pair" in rows[0] else None
    labels = [str(row["label"]) for row in rows] if "label" in rows[0] else None
    return LabelledTexts([row["text"] for row in rows], pairs, labels)


def write_submission(path, predictions):
    """Writes GLUE's format: a header, then a line `index<TAB>prediction` for each test row in order."""
    lines = ["index\tprediction", *(f"{index}\t{prediction}" for index, prediction in enumerate(predictions))]
    with written_whole(path) as file:
        file.write("\n".join(lines) + "\n")
