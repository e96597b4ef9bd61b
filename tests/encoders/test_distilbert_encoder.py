import json

import keras
import numpy as np
import pytest
from conftest import QUICK_STEPS, without

import keras_bert_impl as kbi
from keras_bert_impl.families import count_parameters


@pytest.fixture
def config():
    return kbi.DistilBertConfig(
        vocabulary_size=53, hidden_size=15, num_layers=2, num_heads=3, intermediate_size=21, max_length=11
    )


@pytest.fixture
def rows(small_batch):
    return without(small_batch, "mask_positions")


def test_segments_have_no_influence(config, rows):
    encoder = kbi.DistilBertEncoder(config)
    other = {**rows, "segment_ids": 1 - rows["segment_ids"]}
    first, second = (encoder.predict_on_batch(inputs)["sequence_output"] for inputs in (rows, other))
    np.testing.assert_array_equal(first, second)


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


def test_the_published_size_has_the_published_parameters():
    assert count_parameters(kbi.DistilBertConfig.from_name("distilbert_base")) == 66_362_880


def test_sinusoidal_positions_are_refused(config, tmp_path):
    theirs = {**config.to_huggingface(), "sinusoidal_pos_embds": True}
    (tmp_path / "config.json").write_text(json.dumps(theirs))
    with pytest.raises(ValueError, match="sinusoidal_pos_embds True is not supported; expected False"):
        kbi.DistilBertConfig.from_huggingface(tmp_path / "config.json")
