"""What a `.keras` file keeps of a model besides its weights, and of a user-defined class."""

import keras
import numpy as np
import pytest
from conftest import QUICK_STEPS, without
from every_model import KINDS, MODELS, inputs_of

import keras_bert_impl as kbi
from keras_bert_impl.model_methods.trainable import enable_lora, freeze_layers
from keras_bert_impl.optimization import BertAdamW

LABELS = np.array([0, 2], "int32")


def trainable_paths(model):
    return [weight.path for weight in model.trainable_weights]


def trained(model, batch):
    model.compile(optimizer=BertAdamW(1e-3), loss=model.loss, **QUICK_STEPS)
    model.train_on_batch(without(batch, "mask_positions"), LABELS)
    return model


@pytest.mark.parametrize("kind", KINDS)
def test_frozen_layers_come_back_frozen(kind, small_config, tmp_path):
    model = MODELS[kind](kbi.BertEncoder(small_config))
    freeze_layers(model, 1)
    model.save(tmp_path / "model.keras")
    reloaded = keras.saving.load_model(tmp_path / "model.keras")
    assert trainable_paths(reloaded) == trainable_paths(model)
    assert not any(path.startswith(("token_embedding", "block_0")) for path in trainable_paths(reloaded))


def test_training_goes_on_with_the_optimizer_s_state_after_freezing(small_config, small_batch, tmp_path):
    model = kbi.TextClassifier(kbi.BertEncoder(small_config), 3)
    freeze_layers(model, 1)
    trained(model, small_batch).save(tmp_path / "model.keras")
    reloaded = keras.saving.load_model(tmp_path / "model.keras")
    assert int(reloaded.optimizer.iterations) == 1
    for found, expected in zip(reloaded.optimizer.variables, model.optimizer.variables, strict=True):
        np.testing.assert_array_equal(keras.ops.convert_to_numpy(found), keras.ops.convert_to_numpy(expected))


def test_single_frozen_layers_and_weights_come_back_so(small_config, tmp_path):
    model = kbi.TokenClassifier(kbi.BertEncoder(small_config), 3)
    model.encoder.get_layer("block_1").attention.trainable = False
    model.encoder.get_layer("pooler").trainable = False  # not a weight of this model, but of its encoder
    model.get_layer("classifier").bias.trainable = False
    model.save(tmp_path / "model.keras")
    reloaded = keras.saving.load_model(tmp_path / "model.keras")
    assert trainable_paths(reloaded) == trainable_paths(model)
    assert not reloaded.encoder.get_layer("pooler").trainable
    assert reloaded.encoder.get_layer("block_1").trainable
    assert not reloaded.encoder.get_layer("block_1").attention.trainable


def test_a_frozen_encoder_comes_back_frozen(small_config, tmp_path):
    model = kbi.TextClassifier(kbi.BertEncoder(small_config), 3)
    model.encoder.trainable = False
    model.save(tmp_path / "model.keras")
    reloaded = keras.saving.load_model(tmp_path / "model.keras")
    assert reloaded.trainable and not reloaded.encoder.trainable
    assert trainable_paths(reloaded) == ["classifier/kernel", "classifier/bias"]


def test_a_frozen_model_comes_back_frozen(small_config, tmp_path):
    model = kbi.TextClassifier(kbi.BertEncoder(small_config), 3)
    model.trainable = False
    model.save(tmp_path / "model.keras")
    reloaded = keras.saving.load_model(tmp_path / "model.keras")
    assert not reloaded.trainable and trainable_paths(reloaded) == []


def test_a_model_with_lora_comes_back_merged(small_config, small_batch, tmp_path):
    # Keras saves the kernel with the update of LoRA merged; from then on the whole kernel is trained.
    model = kbi.TextClassifier(kbi.BertEncoder(small_config), 3)
    enable_lora(model, 2)
    trained(model, small_batch).save(tmp_path / "model.keras")
    reloaded = keras.saving.load_model(tmp_path / "model.keras", compile=False)
    rows = without(small_batch, "mask_positions")
    np.testing.assert_allclose(reloaded.predict_on_batch(rows), model.predict_on_batch(rows), atol=1e-6)
    assert not any("embedding" in path or path.startswith("block_0/output_norm") for path in trainable_paths(reloaded))
    assert "block_0/output/kernel" in trainable_paths(reloaded)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("BertEncoder", "FeatureTagger")])
def test_a_class_of_the_user_s_own_is_saved_as_the_one_it_inherits_from(kind, small_config, small_batch, tmp_path):
    own = type("Mine", (getattr(kbi, kind),), {})
    model = own(kbi.BertEncoder(small_config), *([3] if kind.endswith("Classifier") else []))
    inputs = inputs_of(kind, small_batch)
    expected = keras.tree.flatten(model.predict_on_batch(inputs))
    model.save_pretrained(tmp_path)
    model.save(tmp_path / "model.keras")
    parent = getattr(kbi, kind).from_pretrained(tmp_path)
    reloaded = keras.saving.load_model(tmp_path / "model.keras", custom_objects={"Mine": own})
    for again in (own.from_pretrained(tmp_path), parent, reloaded):
        for found, wanted in zip(keras.tree.flatten(again.predict_on_batch(inputs)), expected, strict=True):
            np.testing.assert_allclose(found, wanted, atol=1e-6)
    assert isinstance(reloaded, own)


def test_an_encoder_of_the_user_s_own_is_saved(small_config, tmp_path):
    own = type("Mine", (kbi.BertEncoder,), {})
    encoder = own(small_config)
    encoder.save_pretrained(tmp_path)
    for found, expected in zip(own.from_pretrained(tmp_path).weights, encoder.weights, strict=True):
        np.testing.assert_array_equal(keras.ops.convert_to_numpy(found), keras.ops.convert_to_numpy(expected))
