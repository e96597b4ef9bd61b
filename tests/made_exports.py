"""Models for the tests of exports."""

import numpy as np
from conftest import WORDS, revealing_config
from every_model import MODELS

import keras_bert_impl as kbi


def make(kind, **arguments):
    """A model of odd sizes whose every weight influences the outputs."""
    tokenizer = kbi.WordPieceTokenizer(WORDS)
    encoder = kbi.BertEncoder(revealing_config(tokenizer, max_length=13))
    if kind != "BertEncoder":
        arguments |= {"tokenizer": tokenizer, "sequence_length": 11}
    return with_large_weights(MODELS[kind](encoder, **arguments))


def with_large_weights(model):
    random = np.random.default_rng(5)
    for weight in model.weights:
        weight.assign(random.normal(size=weight.shape, scale=0.4))
    return model
