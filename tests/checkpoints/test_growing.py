import numpy as np
import pytest
from conftest import WORDS

import keras_bert_impl as kbi
from keras_bert_impl.checkpoints import grow, open_checkpoint


@pytest.fixture
def model(small_tokenizer):
    """A masked language model whose embedding has more rows than there are words, as in published models."""
    sizes = {"hidden_size": 15, "num_layers": 3, "num_heads": 3, "intermediate_size": 21, "max_length": 11}
    config = kbi.BertConfig(vocabulary_size=len(WORDS) + 3, **sizes)
    model = kbi.MaskedLM(kbi.BertEncoder(config), tokenizer=small_tokenizer)
    random = np.random.default_rng(0)
    model.set_weights([random.normal(size=weight.shape) for weight in model.weights])
    return model


@pytest.fixture
def checkpoint(model, tmp_path):
    model.save_pretrained(tmp_path)
    return open_checkpoint(tmp_path)


def table(model, name):
    return model.encoder.get_layer(name).get_weights()[0]


def test_more_positions_repeat_the_first_and_change_nothing_before_them(model, checkpoint):
    grown = kbi.MaskedLM.from_pretrained(grow(checkpoint, max_length=25), sequence_length=25)
    old, new = table(model, "position_embedding"), table(grown, "position_embedding")
    np.testing.assert_array_equal(new, np.concatenate([old, old, old[:3]]))
    rows = model.rows(["the [MASK] sat"])
    np.testing.assert_array_equal(grown.predict_on_batch(rows), model.predict_on_batch(rows))


def test_new_words_are_tokens_that_start_as_the_mean(model, checkpoint):
    grown = kbi.MaskedLM.from_pretrained(grow(checkpoint, new_words=["covid", "gpu"]))
    assert grown.tokenizer.encode("the covid gpu").tokens == ["[CLS]", "the", "covid", "gpu", "[SEP]"]
    old, new = table(model, "token_embedding"), table(grown, "token_embedding")
    np.testing.assert_array_equal(new[: len(old)], old)
    np.testing.assert_allclose(new[grown.tokenizer.token_to_id("gpu")], old.mean(axis=0), rtol=1e-5)
    bias = model.get_layer("masked_lm_head").output_bias
    np.testing.assert_allclose(np.array(grown.get_layer("masked_lm_head").output_bias)[-1], np.mean(bias), rtol=1e-4)
    assert grown.fill_mask("the [MASK]", top_k=1)


def test_what_grew_is_saved_and_read_again(checkpoint, tmp_path):
    grown = kbi.MaskedLM.from_pretrained(grow(checkpoint, max_length=13, new_words=["covid"]))
    grown.save_pretrained(tmp_path / "grown")
    again = kbi.MaskedLM.from_pretrained(tmp_path / "grown")
    assert again.tokenizer == grown.tokenizer
    rows = grown.rows(["covid [MASK] the cat"])
    np.testing.assert_array_equal(again.predict_on_batch(rows), grown.predict_on_batch(rows))


def test_impossible_changes_are_refused(checkpoint):
    with pytest.raises(ValueError, match="would never be found"):
        grow(checkpoint, new_words=["Covid-19"])
