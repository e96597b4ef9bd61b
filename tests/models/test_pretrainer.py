import dataclasses
import os
import subprocess
import sys

import keras
import numpy as np
import pytest
from conftest import QUICK_STEPS
from every_model import LABELS, WITHOUT_DROPOUT
from reference_models import outputs_of, random_model
from tiers import every_backend, on

from keras_bert_impl import BertEncoder, Pretrainer
from keras_bert_impl.optimization import BertAdamW


def without_dropout(config):
    return dataclasses.replace(config, **WITHOUT_DROPOUT)


def one_layer(config):
    """A configuration of one layer, which compiles in half the time, for tests that train."""
    return dataclasses.replace(config, num_layers=1)


def compiled(config, learning_rate=1e-2):
    pretrainer = Pretrainer(BertEncoder(config))
    pretrainer.compile(optimizer=BertAdamW(learning_rate), **QUICK_STEPS)
    return pretrainer


def train(pretrainer, batch, steps):
    for _ in range(steps):
        pretrainer.train_on_batch(batch, LABELS)


def assert_equal_weights(first, second, atol):
    for weight, other in zip(first.weights, second.weights, strict=True):
        np.testing.assert_allclose(
            keras.ops.convert_to_numpy(weight), keras.ops.convert_to_numpy(other), atol=atol, err_msg=weight.path
        )


def labels_of_every_token(batch):
    """Hugging Face's labels: the id at predicted positions, -100 elsewhere."""
    labels = np.full(batch["token_ids"].shape, -100)
    for row, column in zip(*np.nonzero(LABELS["mask_weights"]), strict=True):
        labels[row, batch["mask_positions"][row, column]] = LABELS["mask_ids"][row, column]
    return labels


@every_backend
def test_logits_and_loss_equal_those_of_transformers(small_config, small_batch, tmp_path):
    model = random_model("BertForPreTraining", one_layer(small_config), tmp_path)
    labels = {"labels": labels_of_every_token(small_batch), "next_sentence_label": LABELS["next_sentence_labels"]}
    theirs = outputs_of(model, small_batch, **labels)
    pretrainer, expected = Pretrainer.from_pretrained(tmp_path), theirs["loss"]
    ours = pretrainer.predict_on_batch(small_batch)
    logits = np.take_along_axis(theirs["prediction_logits"], small_batch["mask_positions"][:, :, None], 1)
    np.testing.assert_allclose(ours["masked_lm_logits"], logits, atol=1e-5)
    np.testing.assert_allclose(ours["next_sentence_logits"], theirs["seq_relationship_logits"], atol=1e-5)
    pretrainer.compile(**QUICK_STEPS)
    losses = pretrainer.test_on_batch(small_batch, LABELS, return_dict=True)
    # Google's 1e-5 in the denominator, of 5 predictions: 2e-6 of the loss.
    np.testing.assert_allclose(losses["loss"], expected, atol=2e-5)
    np.testing.assert_allclose(losses["masked_lm_loss"] + losses["next_sentence_loss"], expected, atol=2e-5)


def test_the_masked_lm_loss_is_a_mean_over_predicted_tokens(small_config, small_batch):
    pretrainer = Pretrainer(BertEncoder(small_config))
    pretrainer.set_weights([np.zeros(weight.shape) for weight in pretrainer.weights])
    # With every kernel 0 the logits are this bias: token 17 has probability 1/2, the 52 others 1/104 each.
    pretrainer.get_layer("masked_lm_head").output_bias.assign(np.log(np.where(np.arange(53) == 17, 1 / 2, 1 / 104)))
    pretrainer.compile(**QUICK_STEPS)
    labels = {
        "mask_ids": np.array([[17, 17, 17], [9, 0, 0]], "int32"),
        "mask_weights": np.array([[1, 1, 1], [1, 0, 0]], "float32"),
        "next_sentence_labels": np.array([1, 0], "int32"),
    }
    losses = pretrainer.test_on_batch(small_batch, labels, return_dict=True)
    np.testing.assert_allclose(losses["masked_lm_loss"], (3 * np.log(2) + np.log(104)) / 4, rtol=1e-5)
    np.testing.assert_allclose(losses["next_sentence_loss"], np.log(2), rtol=1e-5)
    np.testing.assert_allclose(losses["masked_lm_accuracy"], 3 / 4, rtol=1e-5)


def test_the_loss_of_an_epoch_weighs_batches_by_their_predictions(small_config, small_batch):
    pretrainer = Pretrainer(BertEncoder(one_layer(small_config)))
    pretrainer.compile(**QUICK_STEPS)
    halves = [pretrainer.evaluate(*rows(small_batch, row), verbose=0, return_dict=True) for row in (0, 1)]
    both = pretrainer.evaluate(small_batch, LABELS, batch_size=1, verbose=0, return_dict=True)
    expected = (3 * halves[0]["masked_lm_loss"] + 2 * halves[1]["masked_lm_loss"]) / 5
    np.testing.assert_allclose(both["masked_lm_loss"], expected, rtol=1e-5)


def rows(batch, row):
    return tuple({name: array[row : row + 1] for name, array in part.items()} for part in (batch, LABELS))


def test_gradients_reach_every_weight(small_config, small_batch):
    pretrainer = Pretrainer(BertEncoder(without_dropout(small_config)))
    pretrainer.compile(optimizer=keras.optimizers.SGD(1.0), **QUICK_STEPS)
    before = pretrainer.get_weights()
    train(pretrainer, small_batch, 1)
    for weight, old in zip(pretrainer.weights, before, strict=True):
        assert np.abs(keras.ops.convert_to_numpy(weight) - old).max() > 0, f"{weight.path} got no gradient"


@every_backend
def test_one_repeated_batch_is_learnt_by_heart(small_config, small_batch):
    pretrainer = Pretrainer(BertEncoder(without_dropout(one_layer(small_config))))
    pretrainer.compile(optimizer=BertAdamW(3e-2))
    train(pretrainer, small_batch, 60)
    assert pretrainer.test_on_batch(small_batch, LABELS, return_dict=True)["loss"] < 0.05


def test_training_goes_on_from_a_keras_file_as_if_uninterrupted(small_config, small_batch, tmp_path):
    # Keras does not save the seeds of dropout: with dropout, the resumed run would draw other numbers.
    config = without_dropout(one_layer(small_config))
    whole, half = compiled(config), compiled(config)
    half.set_weights(whole.get_weights())
    train(whole, small_batch, 4)
    train(half, small_batch, 2)
    half.save(tmp_path / "half.keras")
    resumed = keras.saving.load_model(tmp_path / "half.keras")
    train(resumed, small_batch, 2)
    assert_equal_weights(resumed, whole, atol=1e-6)


@on("tensorflow")  # the TensorFlow run covers all three
@pytest.mark.full
@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_a_keras_file_gives_equal_outputs_on_another_backend(backend, small_config, small_batch, tmp_path):
    pytest.importorskip(backend)
    pretrainer = compiled(one_layer(small_config))
    train(pretrainer, small_batch, 1)
    pretrainer.save(tmp_path / "model.keras")
    np.savez(tmp_path / "batch.npz", **small_batch)
    program = (
        "import keras, keras_bert_impl, numpy, sys; model = keras.saving.load_model(sys.argv[1]);"
        "outputs = model.predict_on_batch(dict(numpy.load(sys.argv[2]))); numpy.savez(sys.argv[3], **outputs)"
    )
    paths = [str(tmp_path / name) for name in ("model.keras", "batch.npz", "outputs.npz")]
    environment = {**os.environ, "KERAS_BACKEND": backend}
    subprocess.run([sys.executable, "-c", program, *paths], env=environment, check=True)
    found = np.load(tmp_path / "outputs.npz")
    for name, expected in pretrainer.predict_on_batch(small_batch).items():
        np.testing.assert_allclose(found[name], expected, atol=1e-5)
