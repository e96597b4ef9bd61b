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
from keras_bert_impl.preprocessing.word_rows import IGNORED, rows_of_pieces, split_texts, split_words


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
        return self._rows_of_split(split_words(self.tokenizer, to_word_lists(texts)))

    def _rows_of_split(self, split):
        pieces = rows_of_pieces(split, self.tokenizer.template, self.sequence_length)
        return Rows(pieces.ids, source=pieces, num_cut=pieces.num_cut)

    def labelled(self, texts, labels, weights):
        """Labels of words, or marked characters, become labels of first pieces."""
        if is_word_lists(texts):
            words = to_word_lists(texts)
            labels, weights = (_of_words(values, words) for values in (labels, weights))
            words = _of_words(words, words)
            split, counts = split_words(self.tokenizer, words), list(map(len, words))
        elif is_texts(texts) and are_spans(labels):
            texts = to_strings(texts)
            split = split_texts(self.tokenizer, texts)
            labels = self._labels_of_spans(texts, split, labels)
            counts = [len(of_text.spans) for of_text in split]
        else:
            return super().labelled(texts, labels, weights)
        rows = self._rows_of_split(split)
        rule = rule_of_classes(self.class_names)
        numbers = checked_word_labels(labels, "labels", counts, rule)
        if weights is not None and np.ndim(weights[0]):
            weights = checked_word_labels(weights, "sample_weight", counts)
        self.warn_of_cut(rows)
        return self._label_first_pieces(rows, numbers, weights)

    def are_in_words(self, texts, labels):
        return is_word_lists(texts) or are_spans(labels)

    def _labels_of_spans(self, texts, split, spans):
        """A label for each word of each text from marked characters."""
        return [
            labels_of_spans(row, text, of_text.spans, spans_of(of_row), self.class_names)
            for row, (text, of_text, of_row) in enumerate(zip(texts, split, spans, strict=True))
        ]

    def _label_first_pieces(self, rows, numbers, weights):
        """Labels and weights of words, (texts, words), become those of the pieces in `rows`."""
        words = np.stack(rows.source.words)  # (texts, length)
        is_first = words != IGNORED

        def of_pieces(values, otherwise):
            return np.where(is_first, np.take_along_axis(values, np.maximum(words, 0), axis=1), otherwise)

        if weights is not None and np.ndim(weights) > 1:
            weights = of_pieces(weights, 0)
        sizes = sizes_of_texts(rows, self.tokenizer.template, self.sequence_length)
        positions = of_pieces(numbers, NO_LABEL[0]).view(Positions)
        rows.labels, rows.weights = self.checked(sizes, positions, weights)
        rows.per_token = True
        return rows


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


def _of_words(values, sentences):
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
