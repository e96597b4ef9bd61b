"""In every format, a save keeps every weight and setting, or refuses and names what it cannot keep."""

import dataclasses
import importlib

import keras
import numpy as np
import pytest
from conftest import without

import keras_bert_impl as kbi
from keras_bert_impl.checkpoints import completeness, keras_hub, open_checkpoint
from keras_bert_impl.encoders.trainable import enable_lora, merge_lora

FORMATS = ("huggingface", "google", "keras_hub")
# Each field of BertConfig with a value that is not the default.
OTHER_VALUES = {
    "vocabulary_size": 59,
    "hidden_size": 9,
    "num_layers": 2,
    "num_heads": 5,
    "intermediate_size": 13,
    "activation": "relu",
    "hidden_dropout_rate": 0.3,
    "attention_dropout_rate": 0.2,
    "max_length": 13,
    "num_segments": 3,
    "initializer_range": 0.03,
    "layer_norm_epsilon": 1e-3,
    "pad_id": 7,
    "direction": "left_to_right",
    "tie_word_embeddings": False,
}


@pytest.fixture
def config(small_config):
    """The small configuration with one layer, and with the activation that every format supports."""
    return dataclasses.replace(small_config, num_layers=1, activation="gelu_tanh")


@pytest.fixture
def batch(small_batch):
    return without(small_batch, "mask_positions")


def format_named(name):
    if name == "google":
        pytest.importorskip("tensorflow")
    return importlib.import_module(f"keras_bert_impl.checkpoints.{name}")


def with_random_weights(model):
    random = np.random.default_rng(0)
    for weight in model.weights:
        weight.assign(random.normal(0, 0.4, weight.shape))
    return model


def outputs(model, batch):
    return [np.asarray(array) for array in keras.tree.flatten(model.predict_on_batch(batch))]


def assert_equal_outputs(one, other, batch):
    for ours, expected in zip(outputs(one, batch), outputs(other, batch), strict=True):
        np.testing.assert_allclose(ours, expected, atol=1e-6)


@pytest.mark.parametrize("form", FORMATS)
def test_every_field_of_a_configuration_comes_back_or_is_refused_by_name(form, config, tmp_path):
    module = format_named(form)
    assert set(OTHER_VALUES) == {field.name for field in dataclasses.fields(kbi.BertConfig)}
    for name, value in OTHER_VALUES.items():
        encoder = kbi.BertEncoder(dataclasses.replace(config, **{name: value}))
        try:
            module.save(encoder, tmp_path / name)
        except ValueError as refusal:
            message = str(refusal)
            # KerasHub has one dropout rate for both: either of ours would be read back as another.
            assert name in message or (form == "keras_hub" and "dropout_rate" in message)
            assert form != "huggingface" and not (tmp_path / name).exists()
        else:
            found = open_checkpoint(tmp_path / name).config
            if name not in completeness.WITHOUT_INFLUENCE or form == "huggingface":
                assert getattr(found, name) == value


@pytest.mark.parametrize(
    "kind, arguments",
    [
        (kbi.TextClassifier, {"num_classes": 3, "class_names": ["a", "b", "c"], "dropout_rate": 0.3}),
        (kbi.TextClassifier, {"num_classes": 1, "multi_label": True}),
        (kbi.TextRegressor, {"dropout_rate": 0.2}),
        (kbi.TokenClassifier, {"num_classes": 1}),
        (kbi.QuestionAnswerer, {}),
        (kbi.NextSentencePredictor, {}),
        (kbi.TextEmbedder, {"pooling": ["mean", "cls"]}),
    ],
)
def test_every_head_comes_back_from_save_pretrained(kind, arguments, config, batch, small_tokenizer, tmp_path):
    model = with_random_weights(
        kind(kbi.BertEncoder(config), tokenizer=small_tokenizer, sequence_length=7, **arguments)
    )
    model.save_pretrained(tmp_path)
    again = kind.from_pretrained(tmp_path)
    assert_equal_outputs(again, model, batch)
    assert without(again.get_config(), "encoder", "name") == without(model.get_config(), "encoder", "name")


def test_an_answerers_head_has_the_names_of_run_squad(config, tmp_path):
    google = format_named("google")
    model = with_random_weights(kbi.QuestionAnswerer(kbi.BertEncoder(config)))
    google.save(model, tmp_path)
    source = google.open_source(tmp_path)
    assert source.shapes["cls/squad/output_weights"] == (2, 15)
    kernel, bias = model.get_layer("span_head").get_weights()
    np.testing.assert_array_equal(source.read("cls/squad/output_weights"), kernel.T)
    np.testing.assert_array_equal(source.read("cls/squad/output_bias"), bias)


@pytest.mark.parametrize(
    "kind, arguments, message",
    [
        (kbi.TokenClassifier, {"num_classes": 3}, "head of a TokenClassifier"),
        (kbi.TextRegressor, {}, "class_names is None"),
        (kbi.TextEmbedder, {"pooling": "max"}, "pooling is 'max'"),
        (kbi.TextClassifier, {"num_classes": 2, "dropout_rate": 0.4}, "dropout_rate is 0.4"),
    ],
)
def test_heads_that_googles_code_lacks_are_refused(kind, arguments, message, config, tmp_path):
    google = format_named("google")
    with pytest.raises(ValueError, match=message):
        google.save(kind(kbi.BertEncoder(config), **arguments), tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_keras_hub_refuses_a_head_and_says_how_to_leave_it_out(config, tmp_path):
    model = kbi.TextClassifier(kbi.BertEncoder(config), 3)
    with pytest.raises(ValueError, match=r"save model\.encoder"):
        keras_hub.save(model, tmp_path / "new")
    keras_hub.save(model.encoder, tmp_path / "new")


LORA = {
    "the encoder": lambda model: enable_lora(model, 2),
    "the head": lambda model: model.get_layer("classifier").enable_lora(2),
    "the embedding": lambda model: model.encoder.token_embedding.enable_lora(2),
}


@pytest.mark.parametrize("where", LORA)
def test_trained_updates_of_lora_are_refused_until_they_are_merged(where, config, batch, tmp_path):
    model = kbi.TextClassifier(kbi.BertEncoder(config), 3)
    LORA[where](model)
    with_random_weights(model)
    expected = outputs(model, batch)
    with pytest.raises(ValueError, match="merge_lora"):
        model.save_pretrained(tmp_path / "new")
    assert not (tmp_path / "new").exists()
    merge_lora(model)
    model.save_pretrained(tmp_path / "new")
    found = outputs(kbi.TextClassifier.from_pretrained(tmp_path / "new"), batch)
    np.testing.assert_allclose(found[0], expected[0], atol=1e-5)


@pytest.mark.parametrize("form", FORMATS)
def test_weights_without_a_place_are_named(form, config):
    module = format_named(form)
    encoder = kbi.BertEncoder(config)
    encoder.get_layer("pooler").enable_lora(2)
    rows = module.table(config)
    completeness.check_weights(encoder, rows, "It")  # while the update is zero
    with_random_weights(encoder)
    with pytest.raises(ValueError, match=r"It cannot store pooler/lora_kernel_a, pooler/lora_kernel_b of this Ber"):
        completeness.check_weights(encoder, rows, "It")


def test_an_argument_of_a_head_that_no_file_has_is_refused(config, tmp_path, monkeypatch):
    model = kbi.TextClassifier(kbi.BertEncoder(config), 3)
    model.save_pretrained(tmp_path)
    monkeypatch.setattr(kbi.TextClassifier, "head_arguments", ("num_classes", "temperature"))
    model.temperature = 2.5
    before = sorted((path.name, path.stat().st_mtime_ns) for path in tmp_path.iterdir())
    with pytest.raises(ValueError, match=r"temperature is 2.5 and would be read as None"):
        model.save_pretrained(tmp_path)
    assert sorted((path.name, path.stat().st_mtime_ns) for path in tmp_path.iterdir()) == before
