"""What a `.keras` file keeps of a model besides its weights, and of a user-defined class."""

import copy
import dataclasses
import pickle
import subprocess
import sys
import warnings

import keras
import numpy as np
import pytest
from conftest import QUICK_STEPS, without
from every_model import KINDS, MODELS, inputs_of
from tiers import every_backend, full_but

import keras_bert_impl as kbi
from keras_bert_impl.encoders.trainable import enable_lora, freeze_layers
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


def in_a_file(model, path):
    model.save(path / "model.keras")
    return keras.saving.load_model(path / "model.keras")


COPIES = {
    "file": in_a_file,
    "pickle": lambda model, path: pickle.loads(pickle.dumps(model)),
    "deepcopy": lambda model, path: copy.deepcopy(model),
}
LORA = {
    "the blocks": lambda model: enable_lora(model, 2),
    "half of the blocks": lambda model: (freeze_layers(model, 1), enable_lora(model, 2)),
    "the head": lambda model: model.get_layer("classifier").enable_lora(2, lora_alpha=3),
    "the embedding": lambda model: model.encoder.token_embedding.enable_lora(2),
}


def without_dropout(small_config):
    config = dataclasses.replace(small_config, hidden_dropout_rate=0.0, attention_dropout_rate=0.0)
    return kbi.TextClassifier(kbi.BertEncoder(config), 3, dropout_rate=0.0)


def assert_trains_on_alike(found, model, batch):
    """Holds the next steps of two models equal: what they train, from which weights, with which optimizer."""
    assert trainable_paths(found) == trainable_paths(model)
    for one in (found, model):
        for _ in range(2):
            one.train_on_batch(without(batch, "mask_positions"), LABELS)
    for one, other in zip(
        (*found.weights, *found.optimizer.variables), (*model.weights, *model.optimizer.variables), strict=True
    ):
        np.testing.assert_allclose(*map(keras.ops.convert_to_numpy, (one, other)), atol=1e-6, err_msg=other.path)


@every_backend
@pytest.mark.parametrize("where", full_but(LORA, "half of the blocks", "the embedding"))
def test_a_model_with_lora_trains_on_from_its_file(where, small_config, small_batch, tmp_path):
    model = without_dropout(small_config)
    LORA[where](model)
    trained(model, small_batch)
    assert_trains_on_alike(in_a_file(model, tmp_path), model, small_batch)


@pytest.mark.parametrize("how", COPIES)
def test_a_copy_of_a_model_with_lora_trains_on_alike(how, small_config, small_batch, tmp_path):
    model = without_dropout(small_config)
    enable_lora(model, 2)
    trained(model, small_batch)
    assert_trains_on_alike(COPIES[how](model, tmp_path), model, small_batch)


def test_lora_over_an_int8_model_trains_on_from_its_file(small_config, small_batch, tmp_path):
    model = without_dropout(small_config)
    model.quantize("int8")
    enable_lora(model, 2)
    trained(model, small_batch)
    assert_trains_on_alike(in_a_file(model, tmp_path), model, small_batch)


def test_weights_of_lora_are_kept_in_a_file_of_weights(small_config, small_batch, tmp_path):
    model, again, plain = (without_dropout(small_config) for _ in range(3))
    plain.save_weights(tmp_path / "plain.weights.h5")
    for one in (model, again):
        enable_lora(one, 2)
        trained(one, small_batch)
    model.save_weights(tmp_path / "model.weights.h5")
    again.load_weights(tmp_path / "model.weights.h5")
    assert_trains_on_alike(again, model, small_batch)
    again.load_weights(tmp_path / "plain.weights.h5")  # of which LoRA begins anew
    rows = without(small_batch, "mask_positions")
    np.testing.assert_allclose(again.predict_on_batch(rows), plain.predict_on_batch(rows), atol=1e-6)
    assert all(np.any(weight) for weight in again.trainable_weights if "lora_kernel_a" in weight.path)


@pytest.mark.parametrize("how", COPIES)
def test_an_untrained_model_is_copied_without_a_warning(how, small_config, small_batch, tmp_path):
    model = without_dropout(small_config)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        again = COPIES[how](model, tmp_path)
    assert_trains_on_alike(again, model, small_batch)


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


@every_backend
@pytest.mark.parametrize("first", full_but(["keras_bert_impl", "keras"], "keras_bert_impl"))
def test_a_program_that_only_imports_the_package_finds_its_classes(first, small_config, small_batch, tmp_path):
    """Keras finds a class of ours by its registered name, not by its module."""
    trained(kbi.TextClassifier(kbi.BertEncoder(small_config), 3), small_batch).save(tmp_path / "model.keras")
    parts = [kbi.embedding_losses.TripletLoss(), kbi.layers.PositionEmbedding(5), BertAdamW(1e-3)]
    configs = [keras.saving.serialize_keras_object(part) for part in parts]
    code = (
        f"import {first}\n"
        "import keras, keras_bert_impl\n"
        f"parts = [keras.saving.deserialize_keras_object(config) for config in {configs!r}]\n"
        f"parts.append(keras.saving.load_model({str(tmp_path / 'model.keras')!r}))\n"
        "print(*(type(part).__name__ for part in parts), int(parts[-1].optimizer.iterations))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "TripletLoss PositionEmbedding BertAdamW TextClassifier 1\n", done.stderr


@pytest.mark.parametrize("kind", ["BertEncoder", "TextClassifier", "TextEmbedder"])
def test_clone_model_is_refused_with_what_makes_a_copy(kind, small_config):
    model = MODELS[kind](kbi.BertEncoder(small_config))
    with pytest.raises(ValueError, match=rf"makes it a {kind}: type\(model\).from_config\(model.get_config\(\)\)"):
        keras.models.clone_model(model)
    assert type(type(model).from_config(model.get_config())) is type(model)
