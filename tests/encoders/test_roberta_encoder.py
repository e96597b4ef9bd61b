import json

import numpy as np
import pytest
import safetensors.numpy
from families import CONFIGS, rows_for
from reference_models import outputs_of, random_model

import keras_bert_impl as kbi
from keras_bert_impl import checkpoints


@pytest.fixture
def config():
    return CONFIGS["Roberta"]


@pytest.fixture
def rows(config, small_batch):
    return rows_for(config, small_batch)


def test_positions_are_those_of_transformers_wherever_the_padding_stands(config, rows, tmp_path):
    theirs = random_model("RobertaModel", config, tmp_path)
    rows = {**rows, "padding_mask": np.array([[0, 0, 1, 1, 1, 1, 1], [1, 1, 0, 1, 1, 1, 0]], "int32")}
    rows["token_ids"] = np.where(rows["padding_mask"] == 1, 5 + rows["token_ids"] % 48, config.pad_id).astype("int32")
    found = kbi.RobertaEncoder.from_pretrained(tmp_path).predict_on_batch(rows)["sequence_output"]
    np.testing.assert_allclose(found, outputs_of(theirs, rows)["last_hidden_state"], atol=1e-5)


def test_the_classifier_s_own_layer_is_read_before_a_pooler_that_it_does_not_use(config, rows, tmp_path):
    theirs = random_model("RobertaForSequenceClassification", config, tmp_path, num_labels=3)
    path = tmp_path / "model.safetensors"
    tensors = safetensors.numpy.load_file(path)
    # Older versions of transformers saved an untrained pooler, too.
    other = {"weight": np.ones((15, 15), "float32"), "bias": np.ones(15, "float32")}
    for order in (0, 1):
        both = [tensors, {f"roberta.pooler.dense.{name}": array for name, array in other.items()}]
        safetensors.numpy.save_file({**both[order], **both[1 - order]}, path, metadata={"format": "pt"})
        found = kbi.TextClassifier.from_pretrained(tmp_path).predict_on_batch(rows)
        np.testing.assert_allclose(found, outputs_of(theirs, rows)["logits"], atol=1e-5)


def test_more_positions_repeat_the_trained_ones_and_not_those_of_padding(config, tmp_path):
    encoder = kbi.RobertaEncoder(config)
    encoder.save_pretrained(tmp_path)
    longer = checkpoints.grow(checkpoints.open_checkpoint(tmp_path), max_length=14)
    table = longer.read("position_embedding/embeddings")
    old = checkpoints.open_checkpoint(tmp_path).read("position_embedding/embeddings")
    np.testing.assert_array_equal(table[:13], old)
    np.testing.assert_array_equal(table[13:], old[2:5])
    assert kbi.RobertaEncoder.from_pretrained(longer).config.max_length == 14


def test_pretraining_without_pairs_is_saved_as_a_masked_language_model(config, small_batch, rows, tmp_path):
    model = kbi.Pretrainer(kbi.RobertaEncoder(config), next_sentence=False)
    model.save_pretrained(tmp_path)
    assert json.loads((tmp_path / "config.json").read_text())["architectures"] == ["RobertaForMaskedLM"]
    found = kbi.MaskedLM.from_pretrained(tmp_path)
    inputs = {**rows, "mask_positions": small_batch["mask_positions"]}
    np.testing.assert_allclose(
        found.predict_on_batch(inputs), model.predict_on_batch(inputs)["masked_lm_logits"], atol=1e-5
    )


def test_a_tokenizer_with_another_padding_token_is_refused(small_tokenizer):
    """transformers counts positions from where the padding token's id stands, this library from the mask."""
    with pytest.raises(ValueError, match="pad_id is 0, but the configuration's is 1: build the encoder with pad_id=0"):
        kbi.TextClassifier(kbi.RobertaEncoder(CONFIGS["Roberta"]), 3, tokenizer=small_tokenizer)
