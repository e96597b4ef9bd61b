"""Rows of several texts: each with a vector of its own, a query with each of the others, or a text with each ending."""

import keras
import numpy as np

from keras_bert_impl.batching import Rows
from keras_bert_impl.preprocessing.labels import RowSizes
from keras_bert_impl.preprocessing.preprocessors import Preprocessor, TextPreprocessor, are_strings, is_of_tensorflow
from keras_bert_impl.preprocessing.texts import columns_of, has_columns, is_text_input, is_texts, to_strings


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class ChoicePreprocessor(Preprocessor):
    """Makes a `MultipleChoice` model's inputs from (texts, choices), with equally many choices for each text.

    Args:
        tokenizer (Tokenizer): tokenizer.
        sequence_length (int, optional): length that every text with a choice is truncated or padded to. Default: 512.

    Returns: inputs (batch, choices, sequence_length); labels are passed through.

    Example:
        >>> tokenizer = kbi.checkpoints.open_checkpoint("small_english").tokenizer
        >>> preprocessor = kbi.preprocessing.ChoicePreprocessor(tokenizer, 16)
        >>> texts, choices = ["She opened the door and"], [["went in.", "sang a stone."]]
        >>> inputs, labels = preprocessor((texts, choices), [0])
        >>> inputs["token_ids"].shape
        (1, 2, 16)
    """

    columns, targets = ("text", "endings"), ("label",)

    def _are_inputs(self, parts):
        endings = parts[1]
        if is_of_tensorflow(endings):
            return are_strings(endings)
        return isinstance(endings, list | tuple | np.ndarray) and (
            are_strings(endings) or any(map(are_strings, endings))
        )

    def takes(self, x):
        return isinstance(x, list | tuple) and len(x) == 2 and is_texts(x[0]) and any(map(is_texts, x[1]))

    def unlabelled(self, x):
        """The Rows of texts with each of their choices. Raises ValueError naming the first text that has another number
        of them."""
        texts, choices = x
        for index, endings in enumerate(choices):
            if len(endings) != len(choices[0]):
                raise ValueError(
                    f"text {index} has {len(endings)} choices, but text 0 has {len(choices[0])}: give every text "
                    "the same number of choices."
                )
        repeated = [text for text, endings in zip(texts, choices, strict=True) for _ in endings]
        columns = to_strings(repeated), to_strings([ending for endings in choices for ending in endings])
        return Rows.from_texts(self.tokenizer, *columns, self.sequence_length, choices=len(choices[0]))

    def _in_graph(self, x, y, sample_weight):
        return self._graph.rows_of_choices(*x, sequence_length=self.sequence_length), y, sample_weight


class ColumnsPreprocessor(TextPreprocessor):
    """Rows of two or more texts, whose labels are similarities, or the numbers of the texts; and single texts."""

    def takes(self, x):
        return is_text_input(x) or has_columns(x)

    def makes_labels(self, x):
        return columns_of(x) is not None

    def sentences(self, x, y=None):
        return tuple(columns_of(x)) if has_columns(x) else x

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


def text_numbers(rows):
    """A number for each list of ids, int32, the same for equal lists."""
    numbers = {}
    return np.array([numbers.setdefault(tuple(ids), len(numbers)) for ids in rows], "int32")


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class RelevancePreprocessor(TextPreprocessor):
    """Queries with a text each, whose labels are its relevance; or with a positive and negatives, which need none: each
    is a row with the query, of relevance 1 or 0. Weights belong to queries."""

    def takes(self, x):
        return is_text_input(x) or has_columns(x)

    def makes_labels(self, x):
        return len(columns_of(x) or ()) > 2

    def rows(self, x, y=None, sample_weight=None, check=None):
        if self.makes_labels(x):
            x, y, sample_weight = labelled_pairs(x, y, sample_weight)
        return super().rows(x, y, sample_weight, check)


def labelled_pairs(x, y=None, sample_weight=None):
    """Queries, positives and negatives as pairs with their relevance: (pairs, labels, sample weights).

    Raises: ValueError for labels beside negatives.
    """
    if y is not None:
        raise ValueError(
            "Queries, positives and negatives take no labels: leave y out, or give (queries, texts) with the relevance "
            "of each pair."
        )
    queries, *columns = columns_of(x)
    pairs = [query for query in queries for _ in columns], [text for row in zip(*columns, strict=True) for text in row]
    labels = np.tile(np.eye(1, len(columns), dtype="float32")[0], len(queries))
    return pairs, labels, None if sample_weight is None else np.repeat(np.asarray(sample_weight), len(columns))
