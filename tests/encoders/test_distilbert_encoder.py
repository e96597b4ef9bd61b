import json

import numpy as np
import pytest
from conftest import without

import keras_bert_impl as kbi
from keras_bert_impl.encoders import count_parameters


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


def test_the_published_size_has_the_published_parameters():
    assert count_parameters(kbi.DistilBertConfig.from_name("distilbert_base")) == 66_362_880


def test_sinusoidal_positions_are_refused(config, tmp_path):
    theirs = {**config.to_huggingface(), "sinusoidal_pos_embds": True}
    (tmp_path / "config.json").write_text(json.dumps(theirs))
    with pytest.raises(ValueError, match="sinusoidal_pos_embds True is not supported; expected False"):
        kbi.DistilBertConfig.from_huggingface(tmp_path / "config.json")
