import numpy as np
import pytest
from conftest import without
from families import CONFIGS
from reference_models import open_in_transformers, outputs_of, random_model

import keras_bert_impl as kbi


@pytest.fixture
def config():
    return CONFIGS["Electra"]


@pytest.fixture
def rows(small_batch):
    return without(small_batch, "mask_positions")


def test_replaced_tokens_are_scored_as_by_transformers(config, rows, tmp_path):
    theirs = random_model("ElectraForPreTraining", config, tmp_path / "theirs")
    model = kbi.ReplacedTokenDetector.from_pretrained(tmp_path / "theirs")
    found = model.predict_on_batch(rows)
    np.testing.assert_allclose(found, outputs_of(theirs, rows)["logits"], atol=1e-5)
    model.save_pretrained(tmp_path / "ours")
    again = outputs_of(open_in_transformers("ElectraForPreTraining", tmp_path / "ours"), rows)["logits"]
    np.testing.assert_allclose(found, again, atol=1e-5)


def test_shared_embeddings_are_one_weight(config):
    discriminator = kbi.ElectraEncoder(config)
    generator = kbi.ElectraEncoder(config.generator(1 / 3), embeddings_of=discriminator)
    assert (generator.config.hidden_size, generator.config.num_heads, generator.config.intermediate_size) == (5, 1, 7)
    ours, theirs = ({id(weight): weight.path for weight in model.weights} for model in (generator, discriminator))
    in_both = {ours[key] for key in ours.keys() & theirs.keys()}
    assert in_both == {
        *(f"{name}_embedding/embeddings" for name in ("token", "position", "segment")),
        *("embeddings_norm/gamma", "embeddings_norm/beta"),
    }


def test_embeddings_of_other_sizes_cannot_be_shared(config):
    other = kbi.ElectraConfig(**{**config.to_dict(), "embedding_size": 7})
    with pytest.raises(ValueError, match="need the same embedding_size, not 9 and 7"):
        kbi.ElectraEncoder(other, embeddings_of=kbi.ElectraEncoder(config))


def test_a_head_that_transformers_does_not_have_is_refused(config, tmp_path):
    with pytest.raises(ValueError, match="cannot store next_sentence_head/kernel"):
        kbi.NextSentencePredictor(kbi.ElectraEncoder(config)).save_pretrained(tmp_path / "target")
    with pytest.raises(ValueError, match="cannot store next_sentence_head/kernel"):
        kbi.Pretrainer(kbi.ElectraEncoder(config)).save_pretrained(tmp_path / "target")
    assert not (tmp_path / "target").exists()
