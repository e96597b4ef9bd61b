"""Pre-training with SpanBERT's second objective."""

import keras
import numpy as np
import pytest
from conftest import QUICK_STEPS
from every_model import LABELS, as_arrays
from reference_models import outputs_of

import keras_bert_impl as kbi
from keras_bert_impl.losses import masked_lm_loss


@pytest.fixture
def batch(small_batch):
    """Spans 2-3 and 5, and 1-2."""
    return {**small_batch, "mask_positions": np.array([[2, 3, 5], [1, 2, 0]], "int32")}


def build(config):
    keras.utils.set_random_seed(3)
    rates = {"hidden_dropout_rate": 0.0, "attention_dropout_rate": 0.0, "initializer_range": 0.2}
    encoder = kbi.BertEncoder(kbi.BertConfig(**{**config.to_dict(), **rates}))
    model = kbi.Pretrainer(encoder, next_sentence=False, span_boundary=True)
    model.compile(optimizer=keras.optimizers.SGD(0.5), **QUICK_STEPS)
    return model


def test_the_loss_is_the_sum_of_both_objectives_over_the_same_words(small_config, batch):
    model = build(small_config)
    found, outputs = model.test_on_batch(batch, LABELS, return_dict=True), model.predict_on_batch(batch)
    parts = [
        float(masked_lm_loss(LABELS["mask_ids"], LABELS["mask_weights"], outputs[name]))
        for name in ("masked_lm_logits", "span_boundary_logits")
    ]
    np.testing.assert_allclose(found["loss"], sum(parts), rtol=1e-5)
    np.testing.assert_allclose([found["masked_lm_loss"], found["span_boundary_loss"]], parts, rtol=1e-5)


def test_words_behind_the_longest_span_are_left_out_of_its_loss(small_config, batch):
    model = build(small_config)
    object.__setattr__(model.get_layer("span_boundary_head"), "longest_span", 1)
    inputs = {name: keras.ops.convert_to_tensor(array) for name, array in batch.items()}
    outputs = {name: keras.ops.convert_to_numpy(value) for name, value in model(inputs).items()}
    np.testing.assert_array_equal(outputs["is_within_span"], [[1, 0, 1], [1, 0, 0]])
    expected = masked_lm_loss(LABELS["mask_ids"], outputs["is_within_span"], outputs["span_boundary_logits"])
    found = model.test_on_batch(batch, LABELS, return_dict=True)
    np.testing.assert_allclose(found["span_boundary_loss"], float(expected), rtol=1e-5)


def test_a_step_changes_every_weight_and_learns(small_config, batch):
    model = build(small_config)
    before = as_arrays(model.trainable_weights)
    first = model.train_on_batch(batch, LABELS, return_dict=True)
    for weight, old in zip(model.trainable_weights, before, strict=True):
        assert (keras.ops.convert_to_numpy(weight) != old).any(), weight.path
    for _ in range(25):
        last = model.train_on_batch(batch, LABELS, return_dict=True)
    assert last["span_boundary_loss"] < 0.8 * first["span_boundary_loss"]


def test_the_checkpoint_opens_here_whole_and_in_transformers_without_the_head(small_config, batch, tmp_path):
    transformers = pytest.importorskip("transformers")
    model = build(small_config)
    model.save_pretrained(tmp_path)
    theirs, found = transformers.BertForMaskedLM.from_pretrained(tmp_path, output_loading_info=True)
    assert not found["missing_keys"] and {name.split(".")[0] for name in found["unexpected_keys"]} == {
        "span_boundary_head"
    }
    logits = outputs_of(theirs.eval(), batch)["logits"]
    expected = np.take_along_axis(logits, batch["mask_positions"][..., None], axis=1)
    ours = model.predict_on_batch(batch)
    np.testing.assert_allclose(ours["masked_lm_logits"], expected, atol=1e-5)
    again = kbi.Pretrainer.from_pretrained(tmp_path, next_sentence=False, span_boundary=True)
    for name, array in again.predict_on_batch(batch).items():
        np.testing.assert_allclose(array, ours[name], atol=1e-6, err_msg=name)
