"""What a `.keras` file keeps of a model besides its weights, and of a user-defined class."""

import copy
import dataclasses
import gc
import pickle
import warnings

import keras
import numpy as np
import pytest
from conftest import QUICK_STEPS, without
from every_model import KINDS, MODELS, WITHOUT_DROPOUT, inputs_of
from tiers import full_but

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


def flags_of(model):
    return [(layer.name, layer.trainable) for layer in model._flatten_layers() if layer.weights]


def freeze_parts(model):
    model.encoder.get_layer("block_1").attention.trainable = False
    model.encoder.get_layer("pooler").trainable = False  # not a weight of a tagger, but of its encoder
    model.get_layer("classifier").bias.trainable = False


FROZEN = {
    "blocks": lambda model: freeze_layers(model, 1),
    "parts": freeze_parts,
    "encoder": lambda model: setattr(model.encoder, "trainable", False),
    "model": lambda model: setattr(model, "trainable", False),
}


@pytest.mark.parametrize("what", FROZEN)
def test_what_is_frozen_comes_back_frozen(what, small_config, tmp_path):
    model = kbi.TokenClassifier(kbi.BertEncoder(small_config), 3)
    every = trainable_paths(model)
    FROZEN[what](model)
    reloaded = in_a_file(model, tmp_path)
    assert trainable_paths(reloaded) == trainable_paths(model) != every
    assert flags_of(reloaded) == flags_of(model)


def in_a_file(model, path):
    model.save(path / "model.keras")
    return keras.saving.load_model(path / "model.keras")


COPIES = {
    "pickle": lambda model: pickle.loads(pickle.dumps(model)),
    "deepcopy": copy.deepcopy,
}
LORA = {
    "the blocks": lambda model: enable_lora(model, 2),
    "half of the blocks": lambda model: (freeze_layers(model, 1), enable_lora(model, 2)),
    "the head": lambda model: model.get_layer("classifier").enable_lora(2, lora_alpha=3),
    "the embedding": lambda model: model.encoder.token_embedding.enable_lora(2),
}


def without_dropout(small_config):
    config = dataclasses.replace(small_config, **WITHOUT_DROPOUT)
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


@pytest.mark.parametrize("where", full_but(LORA, "half of the blocks"))
def test_a_model_with_lora_trains_on_from_its_file(where, small_config, small_batch, tmp_path):
    model = without_dropout(small_config)
    LORA[where](model)
    trained(model, small_batch)
    assert_trains_on_alike(in_a_file(model, tmp_path), model, small_batch)


@pytest.mark.parametrize("how", full_but(COPIES, "pickle"))
def test_a_copy_of_a_model_with_lora_trains_on_alike(how, small_config, small_batch):
    model = without_dropout(small_config)
    enable_lora(model, 2)
    trained(model, small_batch)
    assert_trains_on_alike(COPIES[how](model), model, small_batch)


def test_lora_over_an_int8_model_trains_on_from_its_file(small_config, small_batch, tmp_path):
    gc.freeze()  # Keras collects garbage for each layer that it quantizes, which takes seconds with many imports
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


def test_an_untrained_model_is_saved_and_opened_without_a_warning(small_config, small_batch, tmp_path):
    model = without_dropout(small_config)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        again = in_a_file(model, tmp_path)
    assert_trains_on_alike(again, model, small_batch)


@pytest.mark.parametrize(
    "kind", full_but([kind for kind in KINDS if kind != "FeatureTagger"], "BertEncoder", "TextClassifier", "Pretrainer")
)
def test_a_class_of_the_user_s_own_is_saved_as_the_one_it_inherits_from(kind, small_config, small_batch, tmp_path):
    own = type("Mine", (getattr(kbi, kind),), {})
    config = dataclasses.replace(small_config, num_layers=1)
    over = config if kind == "BertEncoder" else kbi.BertEncoder(config)
    model = own(over, *([3] if kind.endswith("Classifier") else []))
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


@pytest.mark.parametrize("kind", ["BertEncoder", "TextClassifier"])
def test_clone_model_is_refused_with_what_makes_a_copy(kind, small_config):
    model = MODELS[kind](kbi.BertEncoder(small_config))
    with pytest.raises(
        ValueError, match=rf"instead of a {kind}. Use type\(model\).from_config\(model.get_config\(\)\)"
    ):
        keras.models.clone_model(model)
    assert type(type(model).from_config(model.get_config())) is type(model)
