"""Scores of labelled words: by entities if the labels mark where an entity begins, otherwise by single words."""

import warnings

import numpy as np
import seqeval.metrics
import sklearn.metrics

from keras_bert_impl.preprocessing.entities import are_entities, as_iobes

AVERAGES = ("micro avg", "macro avg", "weighted avg")  # beside the types in seqeval's report


def entity_scores(labels, predicted):
    """Precision, recall, F1 and number of entities, over all entities and by type; seqeval's, which equal conlleval's.

    Args:
        labels: a list of labels for each sentence, IOB1, IOB2, IOBES or BILOU.
        predicted: the predicted labels, likewise.

    Without any entity, labelled or predicted, the figures are 0. Raises: ValueError for labels without prefixes, of
    which seqeval would only read the first letter.
    """
    found = {label for sentence in [*labels, *predicted] for label in sentence}
    if not are_entities(found):
        raise ValueError(f"The label {min(found - {'O'})!r} has no prefix like B- or I-: use word_scores.")
    labels, predicted = ([[as_iobes(label) for label in row] for row in rows] for rows in (labels, predicted))
    report = {"micro avg": dict.fromkeys(["precision", "recall", "f1-score", "support"], 0)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the figures show it if a type is never labelled
        if found - {"O"}:
            report = seqeval.metrics.classification_report(labels, predicted, output_dict=True, zero_division=0)
    figures = {
        name: {
            **{"precision": float(row["precision"]), "recall": float(row["recall"]), "f1": float(row["f1-score"])},
            "entities": int(row["support"]),
        }
        for name, row in report.items()
    }
    by_type = {name: row for name, row in figures.items() if name not in AVERAGES}
    return {**figures["micro avg"], "sentences": len(labels), "by_type": by_type}


def word_scores(labels, predicted):
    """The share of the words with the right label, and the mean F1 of the labels that occur.

    Args:
        labels: a list of labels for each sentence; any strings.
        predicted: the predicted labels, likewise.

    Returns: dict of `accuracy`, `macro_f1`, `words`, `sentences`, and `by_type`: precision, recall, F1 and number of
        words of each label in `labels`.
    """
    wanted, found = ([label for sentence in rows for label in sentence] for rows in (labels, predicted))
    names = sorted(set(wanted))
    columns = sklearn.metrics.precision_recall_fscore_support(wanted, found, labels=names, zero_division=0)
    by_type = {
        name: {"precision": float(precision), "recall": float(recall), "f1": float(f1), "words": int(count)}
        for name, precision, recall, f1, count in zip(names, *columns, strict=True)
    }
    return {
        "accuracy": float(np.mean([one == other for one, other in zip(wanted, found, strict=True)])),
        "macro_f1": float(np.mean(columns[2])),
        "words": len(wanted),
        "sentences": len(labels),
        "by_type": by_type,
    }
