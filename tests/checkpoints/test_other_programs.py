"""Checkpoints that other programs have trained or changed open as transformers opens them, or the error tells how."""

import json

import keras
import numpy as np
import pytest
import safetensors.numpy
from conftest import WORDS
from families import CONFIGS
from reference_models import outputs_of, random_model

import keras_bert_impl as kbi
from keras_bert_impl.text.tokenizers import write_vocabulary

SIZES = {"hidden_size": 15, "num_layers": 1, "num_heads": 3, "intermediate_size": 21, "max_length": 16}
ROWS = {
    "token_ids": np.array([[2, 5, 6, 7, 3], [2, 8, 3, 0, 0]], "int32"),
    "segment_ids": np.zeros((2, 5), "int32"),
    "padding_mask": np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], "int32"),
}


@pytest.mark.parametrize("activation", ["silu", "mish", "quick_gelu", "relu2", "relu6", "linear"])
def test_an_encoder_of_another_activation_computes_as_in_transformers(activation, tmp_path):
    config = kbi.BertConfig(len(WORDS), activation=activation, **SIZES)
    theirs = random_model("BertForMaskedLM", config, tmp_path)
    ours = kbi.MaskedLM.from_pretrained(tmp_path)
    masked = {**ROWS, "mask_positions": np.array([[1, 2], [1, 0]], "int32")}
    expected = np.take_along_axis(outputs_of(theirs, ROWS)["logits"], masked["mask_positions"][..., None], axis=1)
    np.testing.assert_allclose(ours.predict_on_batch(masked), expected, atol=1e-5)


@pytest.mark.parametrize(
    ("family", "wrapper"),
    [("Bert", "_orig_mod."), ("Bert", "0.auto_model."), ("ModernBert", "module._orig_mod.model.")],
)
def test_names_before_those_of_tensors_are_passed_over(family, wrapper, tmp_path):
    theirs = random_model(f"{family}ForSequenceClassification", CONFIGS[family], tmp_path)
    path = tmp_path / "model.safetensors"
    tensors = safetensors.numpy.load(path.read_bytes())
    safetensors.numpy.save_file({wrapper + name: array for name, array in tensors.items()}, path)
    ours = kbi.TextClassifier.from_pretrained(tmp_path)
    rows = {name: ROWS[name] for name in ours.encoder.input}
    np.testing.assert_allclose(ours.predict_on_batch(rows), outputs_of(theirs, rows)["logits"], atol=1e-5)


def test_a_model_with_added_tokens_behind_its_vocabulary_answers_as_in_transformers(tmp_path):
    transformers = pytest.importorskip("transformers")
    write_vocabulary(tmp_path / "vocab.txt", WORDS)
    tokenizer = transformers.BertTokenizer.from_pretrained(tmp_path)
    tokenizer.add_tokens(["<user>", "[E1]"])
    theirs = random_model("BertForSequenceClassification", kbi.BertConfig(len(tokenizer), **SIZES), tmp_path)
    tokenizer.save_pretrained(tmp_path)
    text = "the cat<user>sat [E1] on"
    expected = theirs(**tokenizer(text, return_tensors="pt")).logits.detach().numpy()
    np.testing.assert_allclose(kbi.TextClassifier.from_pretrained(tmp_path).predict([text]), expected, atol=1e-5)


def test_two_classes_of_one_name_are_found_in_the_configuration(tmp_path):
    kbi.TextClassifier(kbi.BertEncoder(kbi.BertConfig(len(WORDS), **SIZES)), 2).save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "id2label": {"0": "good", "1": "good"}}))
    with pytest.raises(ValueError, match="id2label"):
        kbi.TextClassifier.from_pretrained(tmp_path)
    assert kbi.TextClassifier.from_pretrained(tmp_path, class_names=["bad", "fine"]).class_names == ["bad", "fine"]


def test_a_block_takes_keras_activations():
    inputs = keras.ops.convert_to_tensor(np.random.default_rng(5).normal(size=(2, 3, 6)).astype("float32"))
    by_name = kbi.layers.TransformerEncoderBlock(2, 5, "softplus")
    expected = by_name(inputs)
    by_function = kbi.layers.TransformerEncoderBlock.from_config(
        kbi.layers.TransformerEncoderBlock(2, 5, keras.activations.softplus).get_config()
    )
    by_function.build(inputs.shape)
    by_function.set_weights(by_name.get_weights())
    np.testing.assert_allclose(*map(keras.ops.convert_to_numpy, (by_function(inputs), expected)), atol=1e-6)


@pytest.mark.parametrize(("content", "limit"), [({"model_max_length": 12.0}, 12),
    ({"model_max_length": 9, "max_len": 12}, 9), ({"model_max_length": 1e30}, 16)])  # fmt: skip
def test_texts_are_cut_where_transformers_cuts_them(content, limit, tmp_path):
    transformers = pytest.importorskip("transformers")
    kbi.BertEncoder(kbi.BertConfig(len(WORDS), **SIZES)).save_pretrained(tmp_path)
    write_vocabulary(tmp_path / "vocab.txt", WORDS)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "BertTokenizer", **content}))
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path).model_max_length
    assert min(theirs, 16) == limit
    assert kbi.TextEmbedder.from_pretrained(tmp_path).sequence_length == limit
