"""Rows of words with a label each, and of texts with marked entities."""

import numpy as np

from keras_bert_impl.batching import Rows
from keras_bert_impl.losses import NO_LABEL
from keras_bert_impl.preprocessing.entities import labels_of_spans
from keras_bert_impl.preprocessing.labels import (
    LabelRule,
    Positions,
    checked_word_labels,
    sizes_of_texts,
)
from keras_bert_impl.preprocessing.row_maker import RowMaker
from keras_bert_impl.preprocessing.texts import is_texts, is_word_lists, to_strings, to_word_lists
from keras_bert_impl.preprocessing.word_rows import rows_of_pieces, split_texts, split_words


class WordRows(RowMaker):
    """Rows of texts, strings or lists of words, of which each token may have a label."""

    def is_natural(self, x):
        return super().is_natural(x) or is_word_lists(x)

    def received(self, x, labels=None):
        x = super().received(x, labels)
        return list(x) if are_sentences(x, labels) else x

    def unlabelled(self, texts):
        if not is_word_lists(texts):
            return super().unlabelled(texts)
        split = split_words(self.tokenizer, to_word_lists(texts))
        return rows_of_split(split, self.tokenizer.template, self.sequence_length)

    def labelled(self, texts, labels, weights):
        """Labels of words, or marked characters, become labels of first pieces."""
        if is_word_lists(texts) and labels is not None:
            words = to_word_lists(texts)
            words, labels, weights = (of_words(values, words) for values in (words, labels, weights))
            split, counts = split_words(self.tokenizer, words), list(map(len, words))
        elif is_texts(texts) and are_spans(labels):
            texts = to_strings(texts)
            split = split_texts(self.tokenizer, texts)
            labels = self._labels_of_spans(texts, split, labels)
            counts = [len(of_text.spans) for of_text in split]
        else:
            return super().labelled(texts, labels, weights)
        rows = rows_of_split(split, self.tokenizer.template, self.sequence_length)
        labels, weights = of_first_pieces(rows, counts, labels, weights, self.class_names)
        sizes = sizes_of_texts(rows, self.tokenizer.template, self.sequence_length)
        rows.labels, rows.weights = self.checked(sizes, labels.view(Positions), weights)
        rows.per_token = True
        return rows

    def _labels_of_spans(self, texts, split, spans):
        """A label for each word of each text from marked characters."""
        return [
            labels_of_spans(row, text, of_text.spans, spans_of(of_row), self.class_names)
            for row, (text, of_text, of_row) in enumerate(zip(texts, split, spans, strict=True))
        ]


def rows_of_split(split, template, sequence_length):
    """The Rows of SplitTexts, whose `source` is their Pieces."""
    pieces = rows_of_pieces(split, template, sequence_length)
    return Rows(pieces.ids, source=pieces, num_cut=pieces.num_cut)


def of_first_pieces(rows, counts, labels, weights, class_names):
    """Labels and weights of words as those of the words' first pieces, (texts, sequence_length); weights of texts stay.

    `counts` are the words of each text; without `class_names` labels are numbers.
    """
    words = np.stack(rows.source.words)  # (texts, sequence_length)

    def of_pieces(values, name, otherwise, rule=None):
        values = checked_word_labels(values, name, counts, rule)
        values = np.pad(values, ((0, 0), (0, 1)), constant_values=otherwise)  # what IGNORED, -1, takes
        return np.take_along_axis(values, words, axis=1)

    if labels is not None:
        rule = rule_of_classes(class_names) if class_names else None
        labels = of_pieces(labels, "labels", NO_LABEL[0], rule)
    if weights is not None and np.ndim(weights[0]):
        weights = of_pieces(weights, "sample_weight", 0)
    return labels, weights


def rule_of_classes(class_names):
    """The LabelRule of a class for each word or token, of any number of them."""
    meaning = "the number or the name of the class of its token, or -1 for none"
    return LabelRule((), len(class_names), meaning, per_token=True, names=tuple(class_names))


def are_sentences(x, labels=None):
    """Whether a tuple holds sentences in words, as `zip` gives them. Of two that are equally long, which could be
    columns of texts, they are if there is a label for each word."""
    if not isinstance(x, tuple) or not is_word_lists(list(x)):
        return False
    lengths = list(map(len, x))
    if len(x) != 2 or lengths[0] != lengths[1]:
        return True
    return labels is not None and [len(row) if hasattr(row, "__len__") else 0 for row in labels] == lengths


def of_words(values, sentences):
    """For each sentence its labels, weights or words without those of empty words, which `padded_batch` fills up with;
    anything else as it is."""
    if values is None or not any("" in words for words in sentences) or len(values) != len(sentences):
        return values
    return [
        [value for value, word in zip(row, words, strict=True) if word] if np.shape(row)[:1] == (len(words),) else row
        for row, words in zip(values, sentences, strict=True)
    ]


def spans_of(row):
    """The marked characters of a text, which spaCy has in a dict."""
    return row.get("entities", row) if isinstance(row, dict) else row


def are_spans(labels):
    """Whether labels are lists of marked characters: (start, end, label), or dicts of them; or, as spaCy's, dicts with
    such a list as `entities`."""
    if not isinstance(labels, list | tuple):
        return False
    labels = map(spans_of, labels)
    rows = [row for row in labels if not isinstance(row, list | tuple) or len(row)]
    return all(isinstance(row, list | tuple) and isinstance(row[0], tuple | list | dict) for row in rows)
