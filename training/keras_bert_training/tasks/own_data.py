"""The user's own tables as tasks: CSV, TSV or JSON Lines with named columns."""

import pathlib

from keras_bert_training.tasks.labelled_texts import Split
from keras_bert_training.tasks.text_classification import TextClassification
from keras_bert_training.tasks.text_regression import TextRegression

SUFFIXES = (".jsonl", ".csv", ".tsv")
# The first of these files that exists is used.
FILE_NAMES = {"train": ("train",), "dev": ("validation", "dev", "valid"), "test": ("test",)}
KINDS = {"text_classification": TextClassification, "text_regression": TextRegression}


def own_task(kind, directory, text="text", pair="text_pair", label="label"):
    """The task of the tables in a directory: train, validation (or dev, valid) and test, .jsonl, .csv or .tsv.

    Args:
        kind: "text_classification" or "text_regression".
        directory: directory with the tables; test may be missing, or have no labels.
        text: name of the text's column.
        pair: name of the column of a second text. A file need not have one called "text_pair"; any other must be there.
        label: name of the label's column.

    A missing table is reported when it is read, not here.
    """
    columns = {"text": text, "text_pair": pair, "label": label}
    splits = {}
    for split in FILE_NAMES:
        # A name that the user gave and that no file has is misspelt: training on the first text alone would hide it.
        optional = (("text_pair",) if pair == "text_pair" else ()) + (("label",) if split == "test" else ())
        candidates = [stem + suffix for stem in FILE_NAMES[split] for suffix in SUFFIXES]
        found = [name for name in candidates if pathlib.Path(directory, name).is_file()]
        splits[split] = Split((found or candidates)[0], columns, optional)
    return KINDS[kind](kind, splits)
