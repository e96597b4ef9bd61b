import numpy as np
import pytest
from conftest import WORDS

import keras_bert_impl as kbi
from keras_bert_impl.checkpoints import keras_hub

SHAPE = {"vocabulary_size": len(WORDS), "num_layers": 2, "num_heads": 3}


@pytest.fixture
def rows(small_tokenizer):
    classifier = kbi.TextClassifier(encoder(), 2, tokenizer=small_tokenizer)
    return classifier.rows(["the cat sat on a mat", "rain"])


def encoder(activation="gelu_tanh"):
    config = kbi.BertConfig(**SHAPE, hidden_size=15, intermediate_size=21, max_length=11, activation=activation)
    model = kbi.BertEncoder(config)
    random = np.random.default_rng(0)
    model.set_weights([random.normal(0, 0.3, weight.shape) for weight in model.weights])
    return model


def test_an_encoder_comes_back_weight_for_weight_with_its_tokenizer(small_tokenizer, tmp_path):
    model = encoder()
    keras_hub.save(model, tmp_path, small_tokenizer)
    loaded = kbi.BertEncoder.from_pretrained(tmp_path)
    assert loaded.config == model.config
    for weight, expected in zip(loaded.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_array_equal(weight, expected)
    assert kbi.TextClassifier.from_pretrained(tmp_path, num_classes=3).tokenizer == small_tokenizer


def test_their_preset_gives_their_outputs(rows, tmp_path):
    theirs = pytest.importorskip("keras_hub").models.BertBackbone(
        **SHAPE, hidden_dim=15, intermediate_dim=21, max_sequence_length=11
    )
    theirs.save_to_preset(str(tmp_path))
    ours = kbi.BertEncoder.from_pretrained(tmp_path).predict_on_batch(rows)
    expected = theirs.predict_on_batch(rows)
    np.testing.assert_allclose(ours["pooled_output"], expected["pooled_output"], atol=1e-5)
    tokens = rows["padding_mask"] == 1
    np.testing.assert_allclose(ours["sequence_output"][tokens], expected["sequence_output"][tokens], atol=1e-5)


def test_our_preset_and_hugging_face_directory_open_there_with_our_outputs(rows, small_tokenizer, tmp_path):
    models = pytest.importorskip("keras_hub").models
    model = encoder()
    keras_hub.save(model, tmp_path / "preset", small_tokenizer)
    kbi.TextClassifier(model, 2, tokenizer=small_tokenizer).save_pretrained(tmp_path / "huggingface")
    ours = model.predict_on_batch(rows)
    for name in ("preset", "huggingface"):
        theirs = models.BertBackbone.from_preset(str(tmp_path / name)).predict_on_batch(rows)
        np.testing.assert_allclose(ours["pooled_output"], theirs["pooled_output"], atol=1e-5)


@pytest.mark.parametrize("lowercase", [True, False])
def test_our_preset_gives_there_the_ids_of_our_tokenizer(lowercase, tmp_path):
    models = pytest.importorskip("keras_hub").models
    tokenizer = kbi.WordPieceTokenizer([*WORDS, "cafe", "café", "Café", "naive"], lowercase=lowercase)
    sizes = {"hidden_size": 15, "num_layers": 1, "num_heads": 3, "intermediate_size": 21}
    config = kbi.BertConfig(tokenizer.vocabulary_size, activation="gelu_tanh", **sizes)
    keras_hub.save(kbi.BertEncoder(config), tmp_path, tokenizer)
    theirs = models.BertTokenizer.from_preset(str(tmp_path))
    assert theirs.get_vocabulary() == tokenizer.vocabulary
    for text in ("the Café", "naïve dogs , café"):
        expected = tokenizer.encode(text, add_special_tokens=False).ids
        assert np.asarray(theirs(text))[: len(expected)].tolist() == expected


def test_exact_gelu_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(ValueError, match="gelu_tanh"):
        keras_hub.save(encoder("gelu"), tmp_path / "new")
    assert not (tmp_path / "new").exists()
