"""Rows of words with a label each, and of texts with marked entities."""

import keras
import numpy as np

from keras_bert_impl.batching import Rows
from keras_bert_impl.losses import NO_LABEL
from keras_bert_impl.preprocessing.entities import labels_of_spans
from keras_bert_impl.preprocessing.labels import LabelRule, Positions, checked_word_labels
from keras_bert_impl.preprocessing.preprocessors import Preprocessor
from keras_bert_impl.preprocessing.texts import is_text_input, is_texts, is_word_lists, to_strings, to_word_lists
from keras_bert_impl.preprocessing.word_rows import rows_of_pieces, split_texts, split_words


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class WordsPreprocessor(Preprocessor):
    """Texts that are split into words, with a label for each word, to the inputs and labels of a TokenClassifier.

    Words are lists of strings, or a RaggedTensor; in a dense one, empty words at the end are padding. The first piece
    of a word has its label, all other tokens have -1. A word that does not fit is lost with all after it.

    Returns: y and sample_weight, if it is of words, are (batch, sequence_length).
    """

    columns, is_split = ("words",), True

    def _are_inputs(self, parts):
        return False

    def takes(self, x):
        return is_text_input(x) or is_word_lists(x)

    def sentences(self, x, y=None):
        return list(x) if are_sentences(x, y) else x

    def rows(self, x, y=None, sample_weight=None, check=None):
        """As of every preprocessor; of texts in memory, too, with marked characters or a label for each token."""
        if not isinstance(x, tuple) and any(isinstance(words, list | np.ndarray) for words in x):
            words = to_word_lists(x)
            words, y, sample_weight = (of_words(values, words) for values in (words, y, sample_weight))
            split, counts = split_words(self.tokenizer, words), list(map(len, words))
        elif is_texts(x) and are_spans(y):
            texts = to_strings(x)
            split = split_texts(self.tokenizer, texts)
            y = [
                labels_of_spans(row, text, of_text.spans, spans_of(of_row), self.class_names)
                for row, (text, of_text, of_row) in enumerate(zip(texts, split, y, strict=True))
            ]
            counts = [len(of_text.spans) for of_text in split]
        else:
            split, rows = None, self.unlabelled(x)
        if split is not None:
            pieces = rows_of_pieces(split, self.tokenizer.template, self.sequence_length)
            rows = Rows(pieces.ids, source=pieces, num_cut=pieces.num_cut)
            y, sample_weight = of_first_pieces(pieces, counts, y, sample_weight, self.class_names)
            y = None if y is None else y.view(Positions)
        rows.labels, rows.weights = (check or self.named)(self.sizes(rows), y, sample_weight)
        rows.per_token = True
        return rows

    def _in_graph(self, x, y, sample_weight):
        return self._graph.rows_of_words(x, y, sample_weight, self.sequence_length)


def of_first_pieces(pieces, counts, labels, weights=None, class_names=None):
    """Labels and weights of words as those of the words' first pieces, (texts, sequence_length); weights of texts stay.

    `pieces` are those of the rows, `counts` the words of each text; without `class_names` labels are numbers.
    """
    words = np.stack(pieces.words)  # (texts, sequence_length)

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
