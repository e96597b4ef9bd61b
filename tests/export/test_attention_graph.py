"""The graph of an encoder that also gives its attention: `attention` of an export."""

import keras
import numpy as np
import pytest
from conftest import without
from families import CONFIGS
from tiers import full_but, on

import keras_bert_impl as kbi
from keras_bert_impl.export.attention_graph import with_attention

pytestmark = on("tensorflow")

ENCODERS = {
    "plain": {},
    "returning it already": {"return_attention": True},
    "rematerialized": {"rematerialize": True},
    "with hidden states": {"return_hidden_states": True},
}


@pytest.mark.parametrize("name", full_but(ENCODERS, "plain"))
def test_attention_is_that_of_the_encoder_which_stays_as_it_was(name, small_config, small_batch, tmp_path):
    encoder = kbi.BertEncoder(small_config, **ENCODERS[name])
    returning = kbi.BertEncoder(small_config, return_attention=True)
    returning.set_weights(encoder.get_weights())
    batch, attending = without(small_batch, "mask_positions"), with_attention(encoder)
    found = keras.ops.convert_to_numpy(attending(batch, training=False))
    expected = keras.ops.convert_to_numpy(returning(batch, training=False)["attention_probabilities"])
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert {id(weight) for weight in attending.weights} <= {id(weight) for weight in encoder.weights}
    encoder.save(tmp_path / "encoder.keras")
    loaded = keras.saving.load_model(tmp_path / "encoder.keras")
    outputs = [keras.ops.convert_to_numpy(one(batch)["pooled_output"]) for one in (encoder, loaded)]
    np.testing.assert_allclose(*outputs, atol=1e-6)


def test_distilbert_has_attention(small_batch):
    batch = without(small_batch, "mask_positions")
    found = with_attention(kbi.DistilBertEncoder(CONFIGS["DistilBert"]))(batch, training=False)
    np.testing.assert_allclose(keras.ops.convert_to_numpy(found).sum(-1), 1, atol=1e-5)
