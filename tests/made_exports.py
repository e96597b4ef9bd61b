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


def ask_graph(model, signature="serving_default", tokenizer=None, **texts):
    """What a signature of the model's SavedModel answers, from the graph that would be written: in a fraction of the
    time that writing and loading take."""
    import tensorflow as tf

    from keras_bert_impl.export import exports, text_signatures

    tokenizer, sequence_length = exports.checked_text_settings(model, tokenizer, None)
    pieces_of = text_signatures.graph_of(tokenizer, offsets=isinstance(model, kbi.QuestionAnswerer))
    function, inputs = text_signatures.signatures(model, pieces_of, sequence_length)[signature]
    return answers(tf.function(function, input_signature=inputs), **texts)


def ask_files(model, directory, signature="serving_default", tokenizer=None, **texts):
    """The same from a SavedModel that is written to `directory` and loaded."""
    import tensorflow as tf

    export.export_saved_model(model, directory, tokenizer, overwrite=True)
    return answers(tf.saved_model.load(str(directory)).signatures[signature], **texts)


def answers(function, **texts):
    """The outputs of a graph for strings, as arrays."""
    import tensorflow as tf

    outputs = function(**{name: tf.constant(values, tf.string) for name, values in texts.items()})
    return {name: array.numpy() for name, array in outputs.items()}


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
