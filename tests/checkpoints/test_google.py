import dataclasses
import json

import numpy as np
import pytest
from conftest import REAL_DATA, WORDS

import keras_bert_impl as kbi
from keras_bert_impl.text.tokenizers.vocabulary import SPECIAL_TOKENS, write_vocabulary

tf = pytest.importorskip("tensorflow")
google = pytest.importorskip("keras_bert_impl.checkpoints.google")

REAL = REAL_DATA / "google_checkpoint"
needs_data = pytest.mark.skipif(not REAL.is_dir(), reason="needs a checkpoint that Google's code wrote")


@pytest.fixture
def config():
    sizes = {"hidden_size": 15, "num_layers": 2, "num_heads": 3, "intermediate_size": 21, "max_length": 11}
    return kbi.BertConfig(len(WORDS), activation="gelu_tanh", **sizes)


@pytest.fixture
def pretrainer(config):
    model = kbi.Pretrainer(kbi.BertEncoder(config))
    random = np.random.default_rng(0)
    model.set_weights([random.normal(size=weight.shape) for weight in model.weights])
    return model


def assert_equal_weights(one, other):
    for weight, expected in zip(one.weights, other.weights, strict=True):
        np.testing.assert_array_equal(np.array(weight), np.array(expected), err_msg=weight.path)


@needs_data
def test_a_checkpoint_of_googles_code_is_read_whole(capsys):
    model = kbi.Pretrainer.from_pretrained(REAL, report=True)
    assert "0 left over" in capsys.readouterr().out
    reader = tf.train.load_checkpoint(str(REAL / "bert_model.ckpt"))
    block = model.encoder.get_layer("block_1")
    kernel, bias = block.attention.query_key_value.get_weights()
    for place, name in enumerate(("query", "key", "value")):
        theirs = f"bert/encoder/layer_1/attention/self/{name}"
        np.testing.assert_array_equal(kernel[:, 4 * place : 4 * place + 4], reader.get_tensor(f"{theirs}/kernel"))
        np.testing.assert_array_equal(bias[4 * place : 4 * place + 4], reader.get_tensor(f"{theirs}/bias"))
    head = model.get_layer("next_sentence_head").get_weights()[0]
    np.testing.assert_array_equal(head, reader.get_tensor("cls/seq_relationship/output_weights").T)
    assert model.encoder.config.activation == "gelu_tanh"


def test_weights_come_back_from_googles_format(pretrainer, tmp_path):
    google.save(pretrainer, tmp_path)
    data = "bert_model.ckpt.data-00000-of-00001"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bert_config.json", data, "bert_model.ckpt.index"]
    assert_equal_weights(kbi.Pretrainer.from_pretrained(tmp_path), pretrainer)


def test_variables_have_googles_names_and_shapes(pretrainer, tmp_path):
    google.save(pretrainer, tmp_path)
    shapes = tf.train.load_checkpoint(str(tmp_path / "bert_model.ckpt")).get_variable_to_shape_map()
    assert shapes["bert/encoder/layer_1/attention/self/value/kernel"] == [15, 15]
    assert shapes["bert/encoder/layer_0/intermediate/dense/kernel"] == [15, 21]
    assert shapes["cls/seq_relationship/output_weights"] == [2, 15]
    assert len(shapes) == 5 + 2 * 16 + 2 + 5 + 2
    if REAL.is_dir():
        theirs = tf.train.load_checkpoint(str(REAL / "bert_model.ckpt")).get_variable_to_shape_map()
        assert set(shapes) == {name for name in theirs if "adam" not in name and name != "global_step"}


def test_exact_gelu_is_refused_before_anything_is_written(small_config, tmp_path):
    with pytest.raises(ValueError, match=r"Set activation='gelu_tanh' to accept"):
        google.save(kbi.BertEncoder(small_config), tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_table_that_scores_words_and_is_not_the_embedding_is_refused(config, tmp_path):
    encoder = kbi.BertEncoder(dataclasses.replace(config, tie_word_embeddings=False))
    for model in (kbi.MaskedLM(encoder), kbi.Pretrainer(encoder)):
        with pytest.raises(ValueError, match="cannot store masked_lm_head/decoder/embeddings"):
            google.save(model, tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("cased_words", [[], ["The", "##Net"]])
def test_the_vocabulary_says_whether_it_is_lower_cased(cased_words, pretrainer, tmp_path):
    """Google's directories say it in their names alone, which do not survive a renaming."""
    google.save(pretrainer, tmp_path)
    words = [*SPECIAL_TOKENS, *cased_words]
    words += [f"word{number}" for number in range(len(words), pretrainer.encoder.config.vocabulary_size)]
    write_vocabulary(tmp_path / "vocab.txt", words)
    assert google.open_checkpoint(tmp_path).tokenizer.lowercase is not bool(cased_words)


def test_a_cased_vocabulary_stays_cased_whatever_the_directory_is_called(pretrainer, tmp_path):
    google.save(pretrainer, tmp_path, kbi.tokenizers.WordPieceTokenizer(WORDS, lowercase=False))
    assert not kbi.checkpoints.open_checkpoint(tmp_path).tokenizer.lowercase


def test_a_wrong_shape_names_variable_and_both_shapes(pretrainer, tmp_path):
    google.save(pretrainer, tmp_path)
    path = tmp_path / "bert_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "vocab_size": 99}))
    with pytest.raises(ValueError, match="word_embeddings has shape"):
        kbi.BertEncoder.from_pretrained(tmp_path)


def test_a_missing_or_truncated_checkpoint_is_named(pretrainer, tmp_path):
    google.save(pretrainer, tmp_path)
    data = next(tmp_path.glob("*.data*"))
    data.write_bytes(data.read_bytes()[:100])
    with pytest.raises(ValueError, match=r"bert_model.ckpt"):
        kbi.BertEncoder.from_pretrained(tmp_path)
    for path in tmp_path.glob("bert_model*"):
        path.unlink()
    with pytest.raises(ValueError, match="found none"):
        kbi.BertEncoder.from_pretrained(tmp_path)
