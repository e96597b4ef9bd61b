import json

import numpy as np
import pytest
from conftest import without
from reference_models import open_in_transformers, outputs_of, random_model

import keras_bert_impl as kbi
from keras_bert_impl.checkpoints.hub import PUBLISHED
from keras_bert_impl.encoders import count_parameters


@pytest.fixture
def config():
    return kbi.ElectraConfig(
        vocabulary_size=53,
        hidden_size=15,
        num_layers=2,
        num_heads=3,
        intermediate_size=21,
        embedding_size=9,
        max_length=11,
    )


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
    with pytest.raises(ValueError, match="embedding_size is 9 and 7"):
        kbi.ElectraEncoder(other, embeddings_of=kbi.ElectraEncoder(config))


@pytest.mark.parametrize(
    ("name", "parameters", "hidden", "embedding", "heads"),
    [
        ("electra_small", 13_483_008, 256, 128, 4),
        ("electra_base", 108_891_648, 768, 768, 12),
        ("electra_large", 334_092_288, 1024, 1024, 16),
        ("electra_base_generator", 33_511_168, 256, 768, 4),
    ],
)
def test_a_published_size_is_that_of_the_checkpoint(name, parameters, hidden, embedding, heads):
    config = kbi.ElectraConfig.from_name(name)
    assert (config.hidden_size, config.embedding_size, config.num_heads) == (hidden, embedding, heads)
    assert config.intermediate_size == 4 * hidden
    assert count_parameters(config) == parameters
    role = "-generator" if name.endswith("generator") else "-discriminator"
    published = name.removesuffix("_generator").replace("_", "-") + role
    assert [one.num_parameters for one in PUBLISHED if one.name == published] == [parameters]


def test_the_paper_s_generators_come_from_their_shares():
    shapes = {
        size: kbi.ElectraConfig.from_name(f"electra_{size}").generator(share)
        for size, share in (("small", 1 / 4), ("base", 1 / 3), ("large", 1 / 4))
    }
    found = {size: (one.hidden_size, one.num_heads, one.intermediate_size) for size, one in shapes.items()}
    assert found == {"small": (64, 1, 256), "base": (256, 4, 1024), "large": (256, 4, 1024)}


def test_a_missing_projection_is_reported(config, tmp_path):
    encoder = kbi.ElectraEncoder(kbi.ElectraConfig(**{**config.to_dict(), "embedding_size": 15}))
    encoder.save_pretrained(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(config.to_huggingface()))
    with pytest.raises(ValueError, match=r"word_embeddings.weight has shape \(53, 15\).*asks for \(53, 9\)"):
        kbi.ElectraEncoder.from_pretrained(tmp_path)


def test_a_head_that_transformers_does_not_have_is_refused(config, tmp_path):
    with pytest.raises(ValueError, match="has no ElectraForNextSentencePrediction"):
        kbi.NextSentencePredictor(kbi.ElectraEncoder(config)).save_pretrained(tmp_path / "target")
    with pytest.raises(ValueError, match="has no place for next_sentence_head/kernel"):
        kbi.Pretrainer(kbi.ElectraEncoder(config)).save_pretrained(tmp_path / "target")
    assert not (tmp_path / "target").exists()
