"""One small model of each kind, and arrays that it takes."""

import numpy as np

import keras_bert_impl as kbi

# What makes each kind over an encoder.
MODELS = {
    "BertEncoder": lambda encoder, **arguments: encoder,
    "BertTextClassifier": lambda encoder, **arguments: kbi.BertTextClassifier(encoder, 3, **arguments),
    "BertTextRegressor": kbi.BertTextRegressor,
    "BertTokenClassifier": lambda encoder, **arguments: kbi.BertTokenClassifier(encoder, 3, **arguments),
    "BertQuestionAnswerer": kbi.BertQuestionAnswerer,
    "BertNextSentencePredictor": kbi.BertNextSentencePredictor,
    "BertMultipleChoice": kbi.BertMultipleChoice,
    "BertMaskedLM": kbi.BertMaskedLM,
    "BertPretrainer": kbi.BertPretrainer,
    "BertTextEmbedder": kbi.BertTextEmbedder,
    "BertFeatureTagger": lambda encoder, **arguments: kbi.BertFeatureTagger(
        encoder, 3, features="last", units=5, **arguments
    ),
}
KINDS = tuple(MODELS)


def inputs_of(kind, batch):
    """Of a batch of rows with masked positions what a model of this kind takes; rows are two choices of a text."""
    if kind in ("BertMaskedLM", "BertPretrainer"):
        return batch
    rows = {name: array for name, array in batch.items() if name != "mask_positions"}
    if kind != "BertMultipleChoice":
        return rows
    return {name: np.stack([array, array[::-1]], axis=1) for name, array in rows.items()}
