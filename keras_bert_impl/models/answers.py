"""What models answer when they are asked in words."""

import typing

import numpy as np
from keras import ops


class Label(typing.NamedTuple):
    """A class of a text or a word, as `TextClassifier.classify` and `TokenClassifier.tag` return it.

    Fields:
        label (str): name of the class.
        probability (float): its probability.
    """

    label: str
    probability: float


class Choice(typing.NamedTuple):
    """The choice that `MultipleChoice.choose` made.

    Fields:
        number (int): number of the most probable choice, from 0.
        probabilities (list of float): probabilities of all choices.
    """

    number: int
    probabilities: list[float]


class Match(typing.NamedTuple):
    """A text that `TextEmbedder.search` or `Reranker.rank` found.

    Fields:
        number (int): number of the text in the corpus, from 0.
        text (str): the text; None if the corpus was given as vectors.
        score (float): its similarity or relevance to the query.
    """

    number: int
    text: str | None
    score: float


def finite(outputs):
    """A model's outputs, float64. Raises ValueError if they hold NaN or infinity, of which no answer would tell."""
    outputs = np.asarray(outputs, "float64")
    if not np.isfinite(outputs).all():
        raise ValueError("The model's outputs hold NaN or infinity: its training diverged, or its weights are damaged.")
    return outputs


def softmax(logits):
    """Softmax along the last axis, float64. Raises ValueError as `finite` does."""
    logits = finite(logits)
    exponentials = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def sigmoid(logits):
    """1 / (1 + exp(-logits)), float64. Raises ValueError as `finite` does."""
    return 0.5 * (1 + np.tanh(finite(logits) / 2))  # exp would overflow


def named_classes(logits, multi_label=False):
    """`logits`, and `probabilities` over the last axis, or with multi_label the sigmoid of each logit, as tensors of
    their type."""
    return {"logits": logits, "probabilities": ops.sigmoid(logits) if multi_label else ops.softmax(logits)}


def of_length_one(vectors):
    """Vectors (..., width), divided by their length."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)


def matches(scores, texts, top_k):
    """The `top_k` texts of the largest of their scores, (texts,), or all, as a list of `Match`."""
    return [Match(int(place), texts[place], float(scores[place])) for place in best(scores[None], top_k)[0]]


def best(scores, count):
    """The places of the `count` largest scores, or of all, of each row, the largest first; of equal scores the first:
    int array (rows, count), or as many as there are."""
    if count is not None and count < 1:
        raise ValueError(f"top_k is {count}: give at least 1.")
    return np.argsort(-scores, axis=-1, kind="stable")[:, :count]
