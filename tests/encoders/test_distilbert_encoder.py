import json

import keras
import numpy as np
import pytest
from conftest import QUICK_STEPS, without
from reference_models import open_in_transformers, outputs_of, random_model

import keras_bert_impl as kbi
from keras_bert_impl.encoders.trainable import enable_lora, freeze_layers


@pytest.fixture
def config():
    return kbi.DistilBertConfig(
        vocabulary_size=53, hidden_size=15, num_layers=2, num_heads=3, intermediate_size=21, max_length=11
    )


@pytest.fixture
def rows(small_batch):
    return without(small_batch, "mask_positions")


def test_every_hidden_state_and_attention_is_that_of_transformers(config, rows, tmp_path):
    theirs = outputs_of(
        random_model("DistilBertModel", config, tmp_path, output_hidden_states=True, output_attentions=True), rows
    )
    encoder = kbi.DistilBertEncoder.from_pretrained(tmp_path, return_hidden_states=True, return_attention=True)
    ours = encoder.predict_on_batch(rows)
    np.testing.assert_allclose(ours["sequence_output"], theirs["last_hidden_state"], atol=1e-5)
    np.testing.assert_allclose(ours["hidden_states"], np.stack(theirs["hidden_states"], axis=1), atol=1e-5)
    np.testing.assert_allclose(ours["attention_probabilities"], np.stack(theirs["attentions"], axis=1), atol=1e-5)
    assert "pooled_output" not in ours


def test_what_is_saved_opens_in_transformers(config, rows, tmp_path):
    encoder = kbi.DistilBertEncoder(config)
    encoder.save_pretrained(tmp_path)
    theirs = outputs_of(open_in_transformers("DistilBertModel", tmp_path), rows)
    np.testing.assert_allclose(
        encoder.predict_on_batch(rows)["sequence_output"], theirs["last_hidden_state"], atol=1e-5
    )


def test_masked_words_are_guessed_as_by_transformers(config, small_batch, tmp_path):
    theirs = random_model("DistilBertForMaskedLM", config, tmp_path / "theirs")
    model = kbi.MaskedLM.from_pretrained(tmp_path / "theirs")
    expected = np.take_along_axis(
        outputs_of(theirs, small_batch)["logits"], small_batch["mask_positions"][..., None], axis=1
    )
    np.testing.assert_allclose(model.predict_on_batch(small_batch), expected, atol=1e-5)
    model.save_pretrained(tmp_path / "ours")
    again = outputs_of(open_in_transformers("DistilBertForMaskedLM", tmp_path / "ours"), small_batch)["logits"]
    np.testing.assert_allclose(
        model.predict_on_batch(small_batch),
        np.take_along_axis(again, small_batch["mask_positions"][..., None], axis=1),
        atol=1e-5,
    )


def test_segments_have_no_influence(config, rows):
    encoder = kbi.DistilBertEncoder(config)
    other = {**rows, "segment_ids": 1 - rows["segment_ids"]}
    first, second = (encoder.predict_on_batch(inputs)["sequence_output"] for inputs in (rows, other))
    np.testing.assert_array_equal(first, second)


def test_a_packed_row_gives_what_its_sequences_give_alone(config, rows):
    encoder = kbi.DistilBertEncoder(config)
    packed = kbi.DistilBertEncoder(config, packed=True)
    packed.set_weights(encoder.get_weights())
    ids = rows["token_ids"][:1]
    inputs = {
        "token_ids": ids,
        "segment_ids": np.zeros_like(ids),
        "padding_mask": np.ones_like(ids),
        "position_ids": np.array([[0, 1, 2, 0, 1, 2, 3]], "int32"),
        "sequence_ids": np.array([[1, 1, 1, 2, 2, 2, 2]], "int32"),
    }
    found = packed.predict_on_batch(inputs)["sequence_output"]
    for part in (slice(0, 3), slice(3, 7)):
        alone = {name: inputs[name][:, part] for name in ("token_ids", "segment_ids", "padding_mask")}
        np.testing.assert_allclose(found[:, part], encoder.predict_on_batch(alone)["sequence_output"], atol=1e-5)


def test_a_keras_file_holds_encoder_and_head(config, rows, tmp_path):
    model = kbi.TextClassifier(kbi.DistilBertEncoder(config), 3)
    model.save(tmp_path / "model.keras")
    reloaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(reloaded.predict_on_batch(rows), model.predict_on_batch(rows), atol=1e-6)
    assert isinstance(reloaded.encoder, kbi.DistilBertEncoder) and reloaded.encoder.config == config


def test_a_classifier_learns_texts(small_tokenizer):
    config = kbi.DistilBertConfig(
        vocabulary_size=small_tokenizer.vocabulary_size, hidden_size=16, num_layers=1, num_heads=2, max_length=8
    )
    model = kbi.TextClassifier(kbi.DistilBertEncoder(config), 2, tokenizer=small_tokenizer)
    model.compile(kbi.optimization.BertAdamW(1e-2), model.loss, metrics=["accuracy"], **QUICK_STEPS)
    texts, labels = ["the cat is good", "the dog is bad"] * 8, np.array([1, 0] * 8)
    model.fit(texts, labels, epochs=8, batch_size=8, verbose=0)
    assert model.evaluate(texts, labels, verbose=0)[1] == 1.0


def test_pretraining_objectives_train_it(config, small_batch):
    model = kbi.Pretrainer(kbi.DistilBertEncoder(config))
    model.compile(optimizer=keras.optimizers.SGD(1.0), **QUICK_STEPS)
    before = [keras.ops.convert_to_numpy(weight).copy() for weight in model.trainable_weights]
    labels = {
        "mask_ids": np.array([[5, 7, 9], [6, 8, 0]]),
        "mask_weights": np.array([[1, 1, 1], [1, 1, 0]], "float32"),
        "next_sentence_labels": np.array([0, 1]),
    }
    model.train_on_batch(small_batch, labels)
    for weight, old in zip(model.trainable_weights, before, strict=True):
        assert not np.array_equal(keras.ops.convert_to_numpy(weight), old), weight.path


def test_an_encoder_of_any_family_opens_by_its_config(config, small_config, tmp_path):
    kbi.DistilBertEncoder(config).save_pretrained(tmp_path / "distilbert")
    kbi.BertEncoder(small_config).save_pretrained(tmp_path / "bert")
    assert isinstance(kbi.encoder_from_pretrained(tmp_path / "distilbert"), kbi.DistilBertEncoder)
    assert isinstance(kbi.encoder_from_pretrained(tmp_path / "bert"), kbi.BertEncoder)
    with pytest.raises(ValueError, match="is a DistilBERT, not a BERT: read it with a DistilBertEncoder"):
        kbi.BertEncoder.from_pretrained(tmp_path / "distilbert")


def test_the_published_size_has_the_published_parameters():
    assert kbi.DistilBertConfig.from_name("distilbert_base").count_parameters() == 66_362_880


def test_a_built_encoder_has_the_parameters_that_its_configuration_counts(config):
    assert kbi.DistilBertEncoder(config).count_params() == config.count_parameters()


def test_sinusoidal_positions_are_refused(config, tmp_path):
    theirs = {**config.to_huggingface(), "sinusoidal_pos_embds": True}
    (tmp_path / "config.json").write_text(json.dumps(theirs))
    with pytest.raises(ValueError, match="sinusoidal_pos_embds True is not supported; expected False"):
        kbi.DistilBertConfig.from_huggingface(tmp_path / "config.json")


@pytest.mark.parametrize("form", ["google", "keras_hub"])
def test_formats_without_the_family_refuse_it(form, config, tmp_path):
    pytest.importorskip("tensorflow" if form == "google" else "h5py")
    module = __import__(f"keras_bert_impl.checkpoints.{form}", fromlist=["save"])
    with pytest.raises(ValueError, match="has no DistilBERT: save it with save_pretrained"):
        module.save(kbi.DistilBertEncoder(config), tmp_path / "target")


def test_a_head_that_transformers_does_not_have_is_refused(config, tmp_path):
    model = kbi.NextSentencePredictor(kbi.DistilBertEncoder(config))
    with pytest.raises(ValueError, match="has no DistilBertForNextSentencePrediction"):
        model.save_pretrained(tmp_path / "target")
    assert not (tmp_path / "target").exists()


def test_dropout_of_classifiers_is_the_checkpoint_s(config, tmp_path):
    random_model("DistilBertForSequenceClassification", config, tmp_path, num_labels=3, seq_classif_dropout=0.37)
    assert kbi.TextClassifier.from_pretrained(tmp_path).dropout_rate == 0.37


def test_layers_are_frozen_and_get_low_rank_updates(config):
    frozen, updated = (kbi.TextClassifier(kbi.DistilBertEncoder(config), 3) for _ in range(2))
    freeze_layers(frozen, 1)
    assert {weight.path.split("/")[0] for weight in frozen.trainable_weights} == {"block_1", "pooler", "classifier"}
    enable_lora(updated, 2)
    trained = {weight.path for weight in updated.trainable_weights if not weight.path.startswith("block_")}
    assert trained == {"pooler/kernel", "pooler/bias", "classifier/kernel", "classifier/bias"}
    assert all("lora" in weight.path for weight in updated.trainable_weights if weight.path.startswith("block_"))
