"""Packed rows through the model, on every backend."""

import keras
import numpy as np
import pytest
from conftest import QUICK_STEPS, without

import keras_bert_impl as kbi
from keras_bert_impl import features

# Pairs [CLS] a [SEP] b [SEP], three in the first row, two in the second; the first row's second has no prediction.
LENGTHS = [[5, 7, 3], [9, 4]]
FIRST = [[3, 4, 2], [6, 2]]
MASKED = [[1, 3, 13], [2, 7, 10]]


@pytest.fixture
def batch():
    """Two packed rows of 17 tokens, laid out by hand, and their labels."""
    inputs = {name: np.zeros((2, 17), "int32") for name in features.PACKED_PRETRAINING_INPUTS[:3]}
    inputs |= {name: np.zeros((2, 17), "int32") for name in features.PACKED_INPUTS}
    inputs["cls_positions"] = np.zeros((2, 4), "int32")
    weights = np.zeros((2, 4), "float32")
    random = np.random.default_rng(3)
    for row, lengths in enumerate(LENGTHS):
        start = 0
        for number, (length, first) in enumerate(zip(lengths, FIRST[row], strict=True)):
            here = slice(start, start + length)
            inputs["token_ids"][row, here] = random.integers(5, 53, length)
            inputs["segment_ids"][row, start + first : start + length] = 1
            inputs["padding_mask"][row, here] = 1
            inputs["position_ids"][row, here] = np.arange(length)
            inputs["sequence_ids"][row, here] = number + 1
            inputs["cls_positions"][row, number], weights[row, number] = start, 1
            start += length
    inputs["mask_positions"] = np.array(MASKED, "int32")
    labels = {
        "mask_ids": random.integers(5, 53, (2, 3)),
        "mask_weights": np.ones((2, 3), "float32"),
        "next_sentence_labels": np.array([[1, 0, 1, 0], [0, 1, 0, 0]], "int32"),
        "next_sentence_weights": weights,
    }
    return inputs, labels


def make(config, packed):
    model = kbi.Pretrainer(kbi.BertEncoder(config, packed=packed))
    random = np.random.default_rng(1)
    for weight in model.weights:
        weight.assign(random.normal(size=weight.shape, scale=0.3))
    return model


@pytest.fixture
def config():
    return kbi.BertConfig(53, hidden_size=15, num_layers=2, num_heads=3, intermediate_size=21, max_length=17)


def test_a_packed_row_gives_what_its_pairs_give_alone(config, batch):
    inputs, _ = batch
    packed, alone = make(config, packed=True), make(config, packed=False)
    assert [weight.path for weight in packed.weights] == [weight.path for weight in alone.weights]
    found = packed.predict_on_batch(inputs)
    for row, lengths in enumerate(LENGTHS):
        for number in range(len(lengths)):
            where = np.flatnonzero(inputs["sequence_ids"][row] == number + 1)
            chosen = np.isin(inputs["mask_positions"][row], where)
            # Position 0 if there is nothing to predict, since an axis of length 0 is not a valid batch.
            positions = inputs["mask_positions"][row, chosen] - where[0] if chosen.any() else np.zeros(1, "int32")
            pair = {name: inputs[name][row, where][None] for name in ("token_ids", "segment_ids", "padding_mask")}
            expected = alone.predict_on_batch({**pair, "mask_positions": positions[None]})
            if chosen.any():
                logits = found["masked_lm_logits"][row, chosen]
                np.testing.assert_allclose(logits, expected["masked_lm_logits"][0], atol=1e-5)
            logits = found["next_sentence_logits"][row, number]
            np.testing.assert_allclose(logits, expected["next_sentence_logits"][0], atol=1e-5)


def test_without_next_sentences_the_places_of_cls_change_nothing(config, batch):
    inputs, _ = batch
    model = kbi.Pretrainer(kbi.BertEncoder(config, packed=True), next_sentence=False)
    expected = model.predict_on_batch(without(inputs, "cls_positions"))["masked_lm_logits"]
    np.testing.assert_array_equal(model.predict_on_batch(inputs)["masked_lm_logits"], expected)


def test_padding_of_labels_does_not_count(config, batch):
    inputs, labels = batch
    model = make(config, packed=True)
    model.compile(optimizer=kbi.optimization.BertAdamW(1e-3), **QUICK_STEPS)
    before = model.test_on_batch(inputs, labels, return_dict=True)
    other = np.where(labels["next_sentence_weights"] > 0, labels["next_sentence_labels"], 1)
    after = model.test_on_batch(inputs, {**labels, "next_sentence_labels": other}, return_dict=True)
    assert before == after
    right = 5 * float(before["next_sentence_accuracy"])  # of five pairs
    assert abs(right - round(right)) < 1e-5
    model.train_on_batch(inputs, labels)
    assert all(np.isfinite(keras.ops.convert_to_numpy(weight)).all() for weight in model.weights)
