"""Rows of several texts, each of which gets a vector of its own."""

import keras
import numpy as np

from keras_bert_impl.batching import Rows
from keras_bert_impl.preprocessing.labels import RowSizes
from keras_bert_impl.preprocessing.preprocessors import TextPreprocessor
from keras_bert_impl.preprocessing.texts import columns_of, has_columns, is_text_dataset, is_text_input


class ColumnsPreprocessor(TextPreprocessor):
    """Rows of two or more texts, whose labels are similarities, or the numbers of the texts; and single texts."""

    def takes(self, x):
        return is_text_input(x) or has_columns(x)

    def makes_labels(self, x):
        return columns_of(x) is not None

    def unlabelled(self, x):
        columns = columns_of(x)
        if columns is None:
            return super().unlabelled(x)
        flat = [text for row in zip(*columns, strict=True) for text in row]
        return Rows.from_texts(self.tokenizer, flat, None, self.sequence_length, choices=len(columns))

    def sizes(self, rows):
        if rows.choices is None:
            return super().sizes(rows)
        return sizes_of_columns(text_numbers(rows.first).reshape(-1, rows.choices))


def sizes_of_columns(numbers):
    """The RowSizes of rows of several texts, from the numbers of these, (examples, columns)."""
    return RowSizes(np.ones(len(numbers), "int32"), 1, texts=numbers)


def as_columns(x):
    """A table of texts as a tuple of its columns; anything else stays."""
    return tuple(columns_of(x)) if has_columns(x) else x


def columns_in(x):
    """The number of texts in each row of what Keras' methods are given; None if it is not known."""
    if is_text_dataset(x):
        spec = x.element_spec[0] if isinstance(x.element_spec, tuple) else x.element_spec
        spec = spec if isinstance(spec, tuple) else x.element_spec
        return sum(part.dtype.name == "string" for part in keras.tree.flatten(spec))
    if isinstance(x, dict) and "token_ids" in x:
        shape = np.shape(x["token_ids"])
        return shape[1] if len(shape) == 3 else 1
    if is_text_input(x) or has_columns(x):
        return len(columns_of(x) or [x])
    return None


def text_numbers(rows):
    """A number for each list of ids, int32, the same for equal lists."""
    numbers = {}
    return np.array([numbers.setdefault(tuple(ids), len(numbers)) for ids in rows], "int32")
