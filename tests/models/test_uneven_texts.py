"""Texts of very different lengths in one epoch, with the long ones in late batches."""

import numpy as np
import pytest
from conftest import QUICK_STEPS, WORDS

import keras_bert_impl as kbi

TEXTS = ["the cat sat"] * 6 + ["the dog ran on a mat in rain " * 9] * 2 + ["red rain is good " * 13]
LABELS = np.array([0, 1, 0, 1, 0, 1, 0, 1, 0])


@pytest.fixture
def encoder():
    return kbi.BertEncoder(
        kbi.BertConfig(len(WORDS), hidden_size=6, num_layers=1, num_heads=2, intermediate_size=7, max_length=96)
    )


def quick(model):
    """The model, compiled again so that its steps take milliseconds."""
    model.compile(optimizer="sgd", loss=model.loss, **QUICK_STEPS)
    return model


@pytest.mark.parametrize("kind", ["list", "dataset"])
def test_masked_lm_fits_texts_of_uneven_length(kind, encoder, small_tokenizer):
    model = quick(kbi.MaskedLM(encoder, tokenizer=small_tokenizer))
    if kind == "dataset":
        texts, size = pytest.importorskip("tensorflow").data.Dataset.from_tensor_slices(TEXTS).batch(2), None
    else:
        texts, size = TEXTS, 2
    history = model.fit(texts, batch_size=size, epochs=2, verbose=0).history
    assert np.isfinite(history["loss"]).all() and len(history["loss"]) == 2
    assert int(model.optimizer.iterations) == 2 * 5


def test_classifier_fits_a_dataset_of_uneven_length(encoder, small_tokenizer):
    tf = pytest.importorskip("tensorflow")
    model = quick(kbi.TextClassifier(encoder, 2, tokenizer=small_tokenizer))
    dataset = tf.data.Dataset.from_tensor_slices((TEXTS, LABELS)).batch(2)
    assert np.isfinite(model.fit(dataset, verbose=0).history["loss"]).all()
    expected = model.predict(TEXTS, verbose=0)
    found = model.predict(tf.data.Dataset.from_tensor_slices(TEXTS).batch(2), verbose=0)
    np.testing.assert_allclose(found, expected, atol=1e-5)
