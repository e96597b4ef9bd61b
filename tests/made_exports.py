"""Models for the tests of exports."""

import keras
import numpy as np
import pytest
from conftest import WORDS, revealing_config
from every_model import MODELS

import keras_bert_impl as kbi
from keras_bert_impl import export
from keras_bert_impl.export.opened import open_export


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


# By the format: the backend that writes it, and the packages that write and run it.
WRITTEN_BY = {
    "onnx": ("torch", "onnxruntime", "onnxscript"),
    "openvino": ("torch", "openvino", "onnxscript"),
    "litert": ("tensorflow", "ai_edge_litert"),
}


def check_rows_of_export(format_name, model, texts, folder):
    """Asserts that a TextEmbedder's export of rows gives its vectors; skips on a backend that does not write it."""
    backend, *packages = WRITTEN_BY[format_name]
    if keras.backend.backend() != backend:
        pytest.skip(f"{backend} writes it")
    for package in packages:
        pytest.importorskip(package)
    getattr(export, f"export_{format_name}")(model, folder / "exported")
    (found,) = open_export(folder / "exported")(texts).values()
    np.testing.assert_allclose(found, model.predict(texts, verbose=0), atol=1e-5)
