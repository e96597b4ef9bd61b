"""Builds models with the values of a checkpoint."""

from keras_bert_impl.checkpoints.tensor_tables import load
from keras_bert_impl.configurations.initialization import filling


def build_filled(build, checkpoint, except_for=(), report=False):
    """Builds a model with `build()` and fills it from a checkpoint; see `tensor_tables.load`.

    It is built with zeros, since drawing a hundred million random numbers takes longer than reading them. Only the
    token embedding is read while the model is built: if it were in memory twice beside the other weights, memory would
    peak at 1.7 times their size.
    """
    filled = set()
    with filling(checkpoint, filled):
        model = build()
    load(model, checkpoint, except_for, report, filled)
    return model
