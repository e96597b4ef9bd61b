import keras
import numpy as np
import pytest
from conftest import without
from tiers import on

import keras_bert_impl as kbi
from keras_bert_impl.export.attention_graph import with_attention

pytestmark = on("tensorflow")

ENCODERS = {
    "plain": {},
    "returning it already": {"return_attention": True},
    "rematerialized": {"rematerialize": True},
    "with hidden states": {"return_hidden_states": True},
}


@pytest.mark.parametrize("arguments", ENCODERS.values(), ids=ENCODERS)
def test_attention_is_that_of_the_encoder(small_config, small_batch, arguments):
    encoder, returning = (
        kbi.BertEncoder(small_config, **arguments),
        kbi.BertEncoder(small_config, return_attention=True),
    )
    returning.set_weights(encoder.get_weights())
    batch = without(small_batch, "mask_positions")
    found = keras.ops.convert_to_numpy(with_attention(encoder)(batch, training=False))
    expected = keras.ops.convert_to_numpy(returning(batch, training=False)["attention_probabilities"])
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_attention_has_the_weights_of_the_encoder_and_no_others(small_config):
    encoder = kbi.BertEncoder(small_config)
    assert {id(weight) for weight in with_attention(encoder).weights} <= {id(weight) for weight in encoder.weights}


def test_the_encoder_is_saved_afterwards_as_before(small_config, small_batch, tmp_path):
    encoder, batch = kbi.BertEncoder(small_config), without(small_batch, "mask_positions")
    with_attention(encoder)
    encoder.save(tmp_path / "encoder.keras")
    loaded = keras.saving.load_model(tmp_path / "encoder.keras")
    outputs = [keras.ops.convert_to_numpy(one(batch)["pooled_output"]) for one in (encoder, loaded)]
    np.testing.assert_allclose(*outputs, atol=1e-6)


def test_distilbert_has_attention(small_batch):
    config = kbi.DistilBertConfig(53, hidden_size=15, num_layers=2, num_heads=3, intermediate_size=21, max_length=11)
    batch = without(small_batch, "mask_positions")
    found = with_attention(kbi.DistilBertEncoder(config))(batch, training=False)
    np.testing.assert_allclose(keras.ops.convert_to_numpy(found).sum(-1), 1, atol=1e-5)
