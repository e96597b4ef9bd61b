import dataclasses
import json

import keras
import numpy as np
import pytest
from conftest import QUICK_STEPS
from families import CONFIGS, SIZES, rows_for
from reference_models import outputs_of, random_model

import keras_bert_impl as kbi
from keras_bert_impl import encoders as families
from keras_bert_impl.optimization import BertAdamW
from keras_bert_training.commands.export import choose_task

LABELS = {
    "mask_ids": np.array([[17, 5, 10], [9, 13, 0]], "int32"),
    "mask_weights": np.array([[1, 1, 1], [1, 1, 0]], "float32"),
    "next_sentence_labels": np.array([0, 1], "int32"),
}


@pytest.fixture
def config():
    return CONFIGS["Albert"]


@pytest.fixture
def groups():
    return CONFIGS["Albert, two groups of two"]


def test_layers_of_a_group_follow_each_other(groups):
    # Three layers in two groups of two blocks each: 0 to 1.4 are group 0, then group 1.
    assert groups.schedule == [0, 1, 0, 1, 2, 3]
    assert families.family_of(groups).block_numbers(groups) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    encoder = kbi.AlbertEncoder(groups, return_hidden_states=True)
    blocks = {weight.path.split("/")[0] for weight in encoder.weights if weight.path.startswith("block_")}
    assert blocks == {"block_0", "block_1", "block_2", "block_3"}
    assert encoder.output["hidden_states"].shape[1] == 1 + 6


def test_the_loss_of_pretraining_is_that_of_transformers(config, small_batch, tmp_path):
    rows, positions = rows_for(config, small_batch), small_batch["mask_positions"]
    theirs = random_model("AlbertForPreTraining", config, tmp_path)
    labels = np.full(rows["token_ids"].shape, -100)
    for row, column in zip(*np.nonzero(LABELS["mask_weights"]), strict=True):
        labels[row, positions[row, column]] = LABELS["mask_ids"][row, column]
    expected = outputs_of(theirs, rows, labels=labels, sentence_order_label=LABELS["next_sentence_labels"])["loss"]
    model = kbi.Pretrainer.from_pretrained(tmp_path)
    model.compile(optimizer=BertAdamW(1e-3), **QUICK_STEPS)
    found = model.test_on_batch({**rows, "mask_positions": positions}, LABELS, return_dict=True)["loss"]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_a_shared_weight_gets_the_sum_of_the_gradients_of_its_layers(config, small_batch):
    """Two layers of one block, against two blocks of equal weights, each of which gets its own layer's gradient."""
    config = dataclasses.replace(config, attention_dropout_rate=0.0, hidden_dropout_rate=0.0)
    apart = dataclasses.replace(config, num_groups=2)
    inputs = {**rows_for(config, small_batch), "mask_positions": small_batch["mask_positions"]}
    shared, own = (kbi.Pretrainer(kbi.AlbertEncoder(one)) for one in (config, apart))
    values = {weight.path: keras.ops.convert_to_numpy(weight) for weight in shared.weights}
    for weight in own.weights:
        weight.assign(values[weight.path.replace("block_1/", "block_0/")])
    changes = []
    for model in (shared, own):
        before = {weight.path: keras.ops.convert_to_numpy(weight).copy() for weight in model.trainable_weights}
        model.compile(optimizer=keras.optimizers.SGD(1.0), **QUICK_STEPS)
        model.train_on_batch(inputs, LABELS)
        changes.append(
            {
                w.path: keras.ops.convert_to_numpy(w) - before[w.path]
                for w in model.trainable_weights
                if "block" in w.path
            }
        )
    for path, change in changes[0].items():
        both = changes[1][path] + changes[1][path.replace("block_0/", "block_1/")]
        np.testing.assert_allclose(change, both, atol=1e-5, err_msg=path)


def test_the_last_four_layers_are_pooled_though_they_are_one_block(small_batch):
    config = kbi.AlbertConfig(**{**SIZES, "num_layers": 5}, embedding_size=9)
    rows, encoder = rows_for(config, small_batch), kbi.AlbertEncoder(config, return_hidden_states=True)
    states = encoder.predict_on_batch(rows)["hidden_states"]  # (batch, 6, 7, 15)
    found = kbi.TextEmbedder(encoder, pooling="last_four").predict_on_batch(rows)
    expected = np.concatenate([states[:, layer, 0] for layer in (2, 3, 4, 5)], axis=-1)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_checkpoint_of_other_groups_is_refused(config, groups, tmp_path):
    kbi.AlbertEncoder(config).save_pretrained(tmp_path)
    fields = {**config.to_huggingface(), "num_hidden_groups": 2}
    (tmp_path / "config.json").write_text(json.dumps(fields))
    with pytest.raises(ValueError, match=r"has 1 layers, but config\.json asks for 2"):
        kbi.AlbertEncoder.from_pretrained(tmp_path)
    with pytest.raises(ValueError, match="num_groups 3 is above num_layers 2"):
        dataclasses.replace(config, num_groups=3)


def test_sentence_order_is_not_taken_for_next_sentences(config, tmp_path):
    kbi.Pretrainer(kbi.AlbertEncoder(config)).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="is a ALBERT, whose head for pairs was trained on sentence_order"):
        kbi.NextSentencePredictor.from_pretrained(tmp_path)
    assert choose_task(tmp_path) == "fill_mask"
    with pytest.raises(ValueError, match="is for fill_mask or embed, not for next_sentence"):
        choose_task(tmp_path, "next_sentence")
