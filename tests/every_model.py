"""One small model of each kind, and the arrays that it takes."""

import keras
import numpy as np

import keras_bert_impl as kbi

# Of the two rows of `small_batch`, as pre-training learns them.
LABELS = {
    "mask_ids": np.array([[17, 5, 10], [9, 13, 0]], "int32"),
    "mask_weights": np.array([[1, 1, 1], [1, 1, 0]], "float32"),
    "next_sentence_labels": np.array([0, 1], "int32"),
}

WITHOUT_DROPOUT = {"hidden_dropout_rate": 0.0, "attention_dropout_rate": 0.0}
# A function for each kind that builds it over an encoder.
MODELS = {
    "BertEncoder": lambda encoder, **arguments: encoder,
    "TextClassifier": lambda encoder, **arguments: kbi.TextClassifier(encoder, 3, **arguments),
    "TextRegressor": kbi.TextRegressor,
    "TokenClassifier": lambda encoder, **arguments: kbi.TokenClassifier(encoder, 3, **arguments),
    "QuestionAnswerer": kbi.QuestionAnswerer,
    "NextSentencePredictor": kbi.NextSentencePredictor,
    "MultipleChoice": kbi.MultipleChoice,
    "MaskedLM": kbi.MaskedLM,
    "Pretrainer": kbi.Pretrainer,
    "TextEmbedder": kbi.TextEmbedder,
    "FeatureTagger": lambda encoder, **arguments: kbi.FeatureTagger(encoder, 3, features="last", units=5, **arguments),
}
KINDS = tuple(MODELS)


def as_arrays(weights):
    """Copies of weights, of which a training step changes none."""
    return [keras.ops.convert_to_numpy(weight).copy() for weight in weights]


def inputs_of(kind, batch):
    """The arrays of a batch that a model of this kind takes; for multiple choice, rows are two choices of a text."""
    if kind in ("MaskedLM", "Pretrainer"):
        return batch
    rows = {name: array for name, array in batch.items() if name != "mask_positions"}
    if kind != "MultipleChoice":
        return rows
    return {name: np.stack([array, array[::-1]], axis=1) for name, array in rows.items()}
