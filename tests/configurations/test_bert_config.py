import json

import keras
import numpy as np
import pytest
from tiers import once

from keras_bert_impl import BertConfig
from keras_bert_impl.configurations.encoder_config import HUGGINGFACE_ACTIVATIONS
from keras_bert_impl.kernels.gelu import activation_function

pytestmark = once


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"hidden_size": 770}, "770 is not a multiple of num_heads 12"),
        ({"num_layers": 0}, "num_layers must be a whole number from 1 to 16,777,216, not 0"),
        ({"vocabulary_size": 3.5}, "vocabulary_size must be a whole number"),
        ({"pad_id": 99, "vocabulary_size": 99}, "pad_id 99"),
    ],
)
def test_impossible_values_are_refused_with_the_reason(fields, message):
    with pytest.raises(ValueError, match=message):
        BertConfig(**fields)


def test_google_s_json_comes_back_as_it_was(tmp_path):
    theirs = {
        "attention_probs_dropout_prob": 0.1,
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1,
        "hidden_size": 768,
        "initializer_range": 0.02,
        "intermediate_size": 3072,
        "max_position_embeddings": 512,
        "num_attention_heads": 12,
        "num_hidden_layers": 12,
        "type_vocab_size": 2,
        "vocab_size": 30522,
    }
    (tmp_path / "bert_config.json").write_text(json.dumps(theirs))
    config = BertConfig.from_google(tmp_path / "bert_config.json")
    assert config.activation == "gelu_tanh"
    assert config.to_google() == theirs


def test_google_s_json_cannot_say_exact_gelu():
    with pytest.raises(ValueError, match="gelu_tanh"):
        BertConfig(activation="gelu").to_google()


@pytest.mark.parametrize("name", HUGGINGFACE_ACTIVATIONS)
def test_hugging_face_computes_by_each_name_what_ours_does(name):
    torch = pytest.importorskip("torch")
    activations = pytest.importorskip("transformers.activations")
    x = np.linspace(-4, 4, 101, dtype="float32")
    theirs = activations.ACT2FN[name](torch.tensor(x)).numpy()
    ours = activation_function(HUGGINGFACE_ACTIVATIONS[name])(keras.ops.convert_to_tensor(x))
    np.testing.assert_allclose(keras.ops.convert_to_numpy(ours), theirs, atol=1e-6)


@pytest.mark.parametrize(("name", "ours"), [("gelu_python", "gelu"), ("gelu_fast", "gelu_tanh")])
def test_a_checkpoint_whose_gelu_has_another_name_opens(tmp_path, name, ours):
    theirs = {**BertConfig.from_name("bert_mini").to_huggingface(), "hidden_act": name}
    (tmp_path / "config.json").write_text(json.dumps(theirs))
    assert BertConfig.from_huggingface(tmp_path / "config.json").activation == ours


@pytest.mark.parametrize(
    "text, message",
    [("{", "line 1: not valid JSON"), ("[]", "expected a JSON object"), ('{"hidden_size": 4}', "vocab_size")],
)
def test_a_broken_file_is_named(tmp_path, text, message):
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(ValueError, match=f"config.json.*{message}"):
        BertConfig.from_huggingface(tmp_path / "config.json")
