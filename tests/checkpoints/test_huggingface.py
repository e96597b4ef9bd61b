import json
import warnings

import numpy as np
import pytest
import safetensors.numpy
from conftest import without
from reference_models import random_model

from keras_bert_impl import BertEncoder, BertMaskedLM, BertPretrainer, checkpoints
from keras_bert_impl.checkpoints import huggingface


@pytest.fixture
def encoder(small_config):
    return BertEncoder(small_config)


@pytest.fixture
def checkpoint(encoder, tmp_path):
    """The directory of an encoder's checkpoint."""
    encoder.save_pretrained(tmp_path)
    return tmp_path


def rewrite(directory, change):
    """Stores the tensors of a checkpoint anew, as `change` returns them."""
    path = directory / "model.safetensors"
    path.write_bytes(safetensors.numpy.save(change(safetensors.numpy.load(path.read_bytes()))))


def assert_equal_encoders(ours, other):
    for weight, expected in zip(ours.get_weights(), other.get_weights(), strict=True):
        np.testing.assert_array_equal(weight, expected)


def test_an_encoder_comes_back_weight_for_weight(encoder, checkpoint):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        assert_equal_encoders(BertEncoder.from_pretrained(checkpoint), encoder)


def test_tensors_have_the_shapes_of_transformers(small_config, encoder, tmp_path):
    encoder.save_pretrained(tmp_path / "ours")
    random_model("BertModel", small_config, tmp_path / "theirs")
    assert huggingface.open_source(tmp_path / "ours").shapes == huggingface.open_source(tmp_path / "theirs").shapes


def test_query_key_and_value_are_split_from_one_kernel(encoder, checkpoint):
    kernel = encoder.get_layer("block_1").attention.query_key_value.get_weights()[0]  # (15, 45)
    stored = safetensors.numpy.load((checkpoint / "model.safetensors").read_bytes())
    np.testing.assert_array_equal(stored["encoder.layer.1.attention.self.key.weight"], kernel[:, 15:30].T)


def test_the_old_names_of_norms_are_understood(encoder, checkpoint):
    old_names = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}

    def rename(tensors):
        renamed = {}
        for name, tensor in tensors.items():
            for new, old in old_names.items():
                name = name.replace(new, old)
            renamed[name] = tensor
        assert sum("gamma" in name for name in renamed) == 5
        return renamed

    rewrite(checkpoint, rename)
    assert_equal_encoders(BertEncoder.from_pretrained(checkpoint), encoder)


def test_the_tensors_of_a_larger_model_carry_a_prefix(encoder, tmp_path):
    BertPretrainer(encoder).save_pretrained(tmp_path)
    stored = safetensors.numpy.load((tmp_path / "model.safetensors").read_bytes())
    assert {name.split(".")[0] for name in stored} == {"bert", "cls"}
    assert_equal_encoders(BertEncoder.from_pretrained(tmp_path), encoder)


def test_a_bare_encoder_lends_its_weights_and_the_heads_are_named_as_new(encoder, checkpoint):
    with pytest.warns(UserWarning) as caught:
        pretrainer = BertPretrainer.from_pretrained(checkpoint)
    assert_equal_encoders(pretrainer.encoder, encoder)
    assert len(caught) == 1
    message = str(caught[0].message)
    assert "masked_lm_head/output_bias" in message and "next_sentence_head/kernel" in message
    assert "block_0" not in message


def test_missing_tensors_are_named_in_one_warning(checkpoint):
    rewrite(checkpoint, lambda tensors: without(tensors, "pooler.dense.bias", "encoder.layer.1.output.dense.weight"))
    with pytest.warns(UserWarning) as caught:
        BertEncoder.from_pretrained(checkpoint)
    assert len(caught) == 1
    assert "no values for block_1/output/kernel, pooler/bias: newly initialised" in str(caught[0].message)


def test_a_missing_part_of_a_fused_kernel_makes_all_of_it_new(encoder, checkpoint):
    rewrite(checkpoint, lambda tensors: without(tensors, "encoder.layer.0.attention.self.key.weight"))
    with pytest.warns(UserWarning, match="block_0/attention/query_key_value/kernel: newly"):
        BertEncoder.from_pretrained(checkpoint)


def test_a_wrong_shape_is_named_with_both_shapes(checkpoint):
    config = json.loads((checkpoint / "config.json").read_text())
    (checkpoint / "config.json").write_text(json.dumps({**config, "vocab_size": 59}))
    with pytest.raises(ValueError, match=r"word_embeddings.weight has shape \(53, 15\), config.json asks for \(59, 15"):
        BertEncoder.from_pretrained(checkpoint)


def test_a_truncated_file_is_named(checkpoint):
    path = checkpoint / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ValueError, match=r"model.safetensors is damaged"):
        BertEncoder.from_pretrained(checkpoint)


@pytest.mark.parametrize("name", ["model.safetensors", "config.json"])
def test_a_missing_file_is_named_with_what_belongs_there(name, checkpoint):
    (checkpoint / name).unlink()
    with pytest.raises(ValueError, match=rf"{name} not found: a checkpoint directory holds config.json and model"):
        BertEncoder.from_pretrained(checkpoint)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_read_exactly(dtype, small_config, tmp_path):
    torch = pytest.importorskip("torch")
    model = random_model("BertModel", small_config, tmp_path).to(getattr(torch, dtype))
    model.save_pretrained(tmp_path)
    table = BertEncoder.from_pretrained(tmp_path).token_embedding.get_weights()[0]
    np.testing.assert_array_equal(table, model.embeddings.word_embeddings.weight.detach().float().numpy())


def test_the_masked_lm_bias_of_transformers_is_found(small_config, tmp_path):
    # It is tied to cls.predictions.decoder.bias; transformers stores one of the two.
    model = random_model("BertForMaskedLM", small_config, tmp_path)
    head = BertMaskedLM(BertEncoder(small_config))
    checkpoints.load(head, checkpoints.open_checkpoint(tmp_path))
    bias = head.get_layer("masked_lm_head").output_bias
    np.testing.assert_array_equal(np.array(bias), model.cls.predictions.bias.detach().numpy())


def test_saving_leaves_no_half_written_file(encoder, checkpoint):
    encoder.save_pretrained(checkpoint)
    assert sorted(path.name for path in checkpoint.iterdir()) == ["config.json", "model.safetensors"]
