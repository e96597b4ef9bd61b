"""EuroBERT, UltraBERT, NomicBERT and GTE: their gradients beside transformers', and the files of their authors."""

import dataclasses
import json
import re

import keras
import numpy as np
import pytest
import safetensors.numpy
from conftest import QUICK_STEPS
from every_model import WITHOUT_DROPOUT
from families import CONFIGS, rows_for
from made_tokenizers import SENTENCES, eurobert_tokenizer
from reference_models import open_in_transformers, outputs_of, random_model
from tiers import every_backend, full_but, once

import keras_bert_impl as kbi
from keras_bert_impl.checkpoints import huggingface

ROTARY = [name for name in CONFIGS if name.startswith(("EuroBert", "Ultrabert", "NomicBert", "Gte"))]
QUICK = ("EuroBert, one head of keys, first token, tied, positions divided", "Ultrabert", "NomicBert", "Gte")


@every_backend
@pytest.mark.parametrize("name", full_but(ROTARY, *QUICK))
def test_every_gradient_is_that_of_transformers(name, small_batch, tmp_path):
    torch = pytest.importorskip("torch")
    config = dataclasses.replace(CONFIGS[name], **WITHOUT_DROPOUT)
    positions = np.array([[1, 3, 5], [0, 0, 0]], "int32")
    rows = rows_for(config, small_batch)
    rows["padding_mask"][1, 1:] = 0  # one token, which all three words are predicted from
    labels = np.array([[7, 52, 11], [3, 8, 20]])
    theirs = random_model(f"{config.class_prefix()}ForMaskedLM", config, tmp_path)
    model = kbi.MaskedLM.from_pretrained(tmp_path)
    model.compile(optimizer=keras.optimizers.SGD(1.0), loss=model.loss, **QUICK_STEPS)
    before = [keras.ops.convert_to_numpy(weight).copy() for weight in model.trainable_weights]
    model.train_on_batch({**rows, "mask_positions": positions}, labels)
    after = [keras.ops.convert_to_numpy(weight) for weight in model.trainable_weights]

    names = {"input_ids": "token_ids", "attention_mask": "padding_mask", "token_type_ids": "segment_ids"}
    if getattr(config, "num_segments", 0) < 2:
        del names["token_type_ids"]
    inputs = {key: torch.as_tensor(rows[ours], dtype=torch.long) for key, ours in names.items()}
    logits = theirs(**inputs).logits[torch.arange(2)[:, None], torch.as_tensor(positions, dtype=torch.long)]
    torch.nn.functional.cross_entropy(logits.flatten(0, 1), torch.as_tensor(labels).flatten()).backward()
    # The gradients have the names and the form of the tensors.
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.copy_(torch.zeros_like(parameter) if parameter.grad is None else parameter.grad)
    theirs.save_pretrained(tmp_path / "gradients")
    gradients = kbi.MaskedLM.from_pretrained(tmp_path / "gradients").trainable_weights
    assert len(gradients) == len(before)
    for weight, old, new, expected in zip(model.trainable_weights, before, after, gradients, strict=True):
        expected = keras.ops.convert_to_numpy(expected)
        np.testing.assert_allclose(old - new, expected, atol=1e-5 * max(1, np.abs(expected).max()), err_msg=weight.path)


# What the authors' files say, and the configuration that it is.
PUBLISHED = {
    "NomicBert": (
        {
            **{"model_type": "nomic_bert", "activation_function": "swiglu", "n_embd": 12, "n_layer": 2, "n_head": 3},
            **{"n_inner": 21, "n_positions": 8192, "layer_norm_epsilon": 1e-12, "rotary_emb_base": 1000},
            **{"rotary_scaling_factor": 2, "max_trained_positions": 2048, "vocab_size": 53, "type_vocab_size": 2},
            **{"qkv_proj_bias": False, "prenorm": False, "rotary_emb_fraction": 1.0, "rotary_emb_scale_base": None},
        },
        {"trained_length": 2048, "rotary_factor": 2, "max_length": 8192, "rotary_theta": 1000, "activation": "silu"},
    ),
    "Gte": (
        {
            **{"model_type": "new", "hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 3},
            **{"intermediate_size": 21, "vocab_size": 53, "pack_qkv": True, "position_embedding_type": "rope"},
            **{"rope_theta": 20000, "rope_scaling": {"type": "ntk", "factor": 8.0}, "type_vocab_size": 1},
        },
        {"rotary_theta": 160_000, "rotary_factor": 8 ** (2 / 4), "trained_length": None},
    ),
    "EuroBert": (
        {
            **{"model_type": "eurobert", "hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 6},
            **{"num_key_value_heads": 3, "intermediate_size": 21, "vocab_size": 53, "rope_theta": 250_000},
            **{"rope_scaling": None, "pad_token_id": 1, "hidden_act": "silu", "head_dim": 2},
        },
        {"rotary_theta": 250_000, "num_key_value_heads": 3, "tie_word_embeddings": False, "rotary_factor": 1},
    ),
    "Ultrabert": (
        {
            **{"model_type": "ultrabert", "hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 3},
            **{
                "intermediate_size": 21,
                "vocab_size": 53,
                "attention_windows": [5, None],
                "layer_types": None,
                "rope_theta": [77.0, 99.0],
            },
        },
        {"sliding_window": 5, "windows": [5, None], "local_theta": 77, "rotary_theta": 99},
    ),
}


@once
@pytest.mark.parametrize("name", PUBLISHED)
def test_the_configuration_of_the_authors_is_read(name, tmp_path):
    content, expected = PUBLISHED[name]
    (tmp_path / "config.json").write_text(json.dumps(content))
    config = type(CONFIGS[name]).from_huggingface(tmp_path / "config.json")
    assert {field: getattr(config, field) for field in expected} == expected
    (tmp_path / "config.json").write_text(json.dumps(config.to_huggingface()))
    assert type(config).from_huggingface(tmp_path / "config.json") == config


def test_the_angles_of_gtes_authors_are_those_that_are_written_for_transformers(small_batch, tmp_path):
    """Of NTK scaling by a factor: a base that is larger by it, and all angles divided (the authors' modeling.py)."""
    content, _ = PUBLISHED["Gte"]
    (tmp_path / "config.json").write_text(json.dumps(content))
    config = kbi.GteConfig.from_huggingface(tmp_path / "config.json")
    theirs = 1 / (20000 * 8) ** (np.arange(0, 4, 2) / 4) / 8 ** (2 / 4)
    layer = kbi.layers.RotaryPositions(config.head_width, config.rotary_theta, config.rotary_factor)
    np.testing.assert_allclose(layer.frequencies, theirs, rtol=1e-6)
    random = random_model("GteModel", config, tmp_path / "theirs")
    rows = rows_for(config, small_batch)
    found = kbi.GteEncoder.from_pretrained(tmp_path / "theirs").predict_on_batch(rows)["sequence_output"]
    real = rows["padding_mask"] == 1
    np.testing.assert_allclose(found[real], outputs_of(random, rows)["last_hidden_state"][real], atol=1e-5)


@once
@pytest.mark.parametrize(("name", "prefix"), [("Gte", "new."), ("NomicBert", "bert.")])
def test_the_names_of_the_authors_tensors_are_read(name, prefix, tmp_path):
    config = CONFIGS[name]
    random_model(f"{config.class_prefix()}ForMaskedLM", config, tmp_path)
    ours = kbi.MaskedLM.from_pretrained(tmp_path).get_weights()
    path = tmp_path / "model.safetensors"
    tensors = safetensors.numpy.load_file(path)
    renamed = {re.sub(rf"\A{config.model_type}\.", prefix, key): array for key, array in tensors.items()}
    assert any(key.startswith(prefix) for key in renamed)
    safetensors.numpy.save_file(renamed, path, metadata={"format": "pt"})
    for found, expected in zip(kbi.MaskedLM.from_pretrained(tmp_path).get_weights(), ours, strict=True):
        np.testing.assert_array_equal(found, expected)


@once
@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("EuroBert", {"attention_bias": True}, "attention_bias True is not supported"),
        ("EuroBert", {"head_dim": 4}, "head_dim 4 is not supported; expected 2"),
        ("EuroBert", {"num_key_value_heads": 4}, "num_heads 6 is not a multiple of num_key_value_heads 4"),
        ("Gte", {"rope_parameters": {"rope_type": "yarn", "rope_theta": 7.0}}, "rope_type 'yarn' is not supported"),
        ("Gte", {"rope_parameters": None, "rope_scaling": {"type": "ntk", "factor": 2, "mixed_b": 1}}, "mixed_b"),
        ("NomicBert", {"qkv_proj_bias": True}, "qkv_proj_bias True is not supported"),
        ("Ultrabert", {"layer_types": ["full_attention"]}, "needs 2 layer_types, .*, not 1, "),
        (
            "Ultrabert",
            {"layer_types": None, "attention_windows": [3, 5]},
            r"attention_windows \[3, 5\] is not supported; expected \[3\]",
        ),
    ],
)
def test_what_would_be_computed_otherwise_is_refused(name, changes, message, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({**CONFIGS[name].to_huggingface(), **changes}))
    with pytest.raises(ValueError, match=message):
        type(CONFIGS[name]).from_huggingface(tmp_path / "config.json")


@once
def test_a_family_that_is_not_here_is_named_with_what_opens_instead(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "rembert"}')
    with pytest.raises(ValueError, match="Similar models are xlm-roberta-base or xlm-roberta-large"):
        huggingface.open_checkpoint(tmp_path)


@once
def test_a_camembert_is_a_roberta(tmp_path):
    config = CONFIGS["Roberta"]
    random_model("RobertaForMaskedLM", config, tmp_path)
    content = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**content, "model_type": "camembert"}))
    assert kbi.MaskedLM.from_pretrained(tmp_path).encoder.config == config
    open_in_transformers("CamembertForMaskedLM", tmp_path)


@once
def test_texts_are_classified_from_the_first_program_on(tmp_path):
    tokenizer = eurobert_tokenizer()
    sizes = {"hidden_size": 16, "num_layers": 1, "num_heads": 4, "num_key_value_heads": 2, "max_length": 64}
    config = kbi.EuroBertConfig(tokenizer.vocabulary_size, pad_id=tokenizer.pad_id, **sizes)
    model = kbi.TextClassifier(kbi.EuroBertEncoder(config), 2, tokenizer=tokenizer, class_names=["bad", "good"])
    model.fit(SENTENCES, ["good", "bad"] * 3, epochs=1, verbose=0)
    model.save_pretrained(tmp_path)
    assert kbi.TextClassifier.from_pretrained(tmp_path).classify(SENTENCES[0]) == model.classify(SENTENCES[0])
