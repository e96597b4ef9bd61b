"""A text in words, and in parts with the labels that a model gave its words."""

import numpy as np

from keras_bert_impl.preprocessing.entities import are_entities, runs_of
from keras_bert_impl.text.tokenizers.words import word_spans


def words_of(text):
    """The words of a text: list of (word, number of its first character, of the one after its last)."""
    return [(text[first:last], first, last) for first, last in word_spans(text)]


def marked_parts(text, words, labels, probabilities, class_names=None):
    """The text in parts that together are the whole text.

    Args:
        text: any text.
        words: as `words_of` returns them.
        labels: of the words; "" for a word that the model did not read.
        probabilities: of these labels.
        class_names: all labels that the model has; None if they are not known.

    Returns: list of dicts with `text`, and for an entity (or, if labels mark words instead, for a word) also `label`
        and `probability`, the mean over its words.
    """
    read = [label or "O" for label in labels]
    known = set(class_names or ()) | set(read)
    # A part-of-speech tagger labels every word. Without its classes, "O" stands for words that were not read.
    marks_words = not class_names and "" in labels and not are_entities(known - {"O"})
    names = known - {"O"} if marks_words else known
    parts, place = [], 0
    for label, first, last in runs_of(read, names):
        if not labels[first]:
            continue
        begin, end = words[first][1], words[last][2]
        if begin > place:
            parts.append({"text": text[place:begin]})
        share = float(np.mean(probabilities[first : last + 1]))
        parts.append({"text": text[begin:end], "label": label, "probability": share})
        place = end
    return [*parts, {"text": text[place:]}] if place < len(text) else parts
