import json
import re
import warnings

import numpy as np
import pytest
import safetensors.numpy
from conftest import without
from reference_models import random_model

from keras_bert_impl import BertEncoder, DistilBertConfig, DistilBertEncoder, MaskedLM, Pretrainer, checkpoints
from keras_bert_impl.checkpoints import huggingface
from keras_bert_impl.text.tokenizers import write_vocabulary
from keras_bert_impl.text.tokenizers.vocabulary import SPECIAL_TOKENS


@pytest.fixture
def encoder(small_config):
    return BertEncoder(small_config)


@pytest.fixture
def checkpoint(encoder, tmp_path):
    """The directory of an encoder's checkpoint."""
    encoder.save_pretrained(tmp_path)
    return tmp_path


def rewrite(directory, change):
    """Rewrites a checkpoint with the tensors that `change` returns."""
    path = directory / "model.safetensors"
    path.write_bytes(safetensors.numpy.save(change(safetensors.numpy.load(path.read_bytes()))))


def assert_equal_encoders(ours, other):
    for weight, expected in zip(ours.get_weights(), other.get_weights(), strict=True):
        np.testing.assert_array_equal(weight, expected)


def test_an_encoder_comes_back_weight_for_weight(encoder, checkpoint):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        assert_equal_encoders(BertEncoder.from_pretrained(checkpoint), encoder)


def test_the_old_names_of_norms_are_understood(encoder, checkpoint):
    def rename(tensors):
        old = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
        return {re.sub(r"LayerNorm\.\w+", lambda new: old[new[0]], name): array for name, array in tensors.items()}

    rewrite(checkpoint, rename)
    assert b"LayerNorm.gamma" in (checkpoint / "model.safetensors").read_bytes()
    assert_equal_encoders(BertEncoder.from_pretrained(checkpoint), encoder)


def test_the_tensors_of_a_larger_model_carry_a_prefix(encoder, tmp_path):
    Pretrainer(encoder).save_pretrained(tmp_path)
    stored = safetensors.numpy.load((tmp_path / "model.safetensors").read_bytes())
    assert {name.split(".")[0] for name in stored} == {"bert", "cls"}
    assert_equal_encoders(BertEncoder.from_pretrained(tmp_path), encoder)


def message_of(caught):
    """Of the only warning for users; NumPy has others, for the authors of Keras."""
    (found,) = [one for one in caught if issubclass(one.category, UserWarning)]
    return str(found.message)


def test_a_bare_encoder_lends_its_weights_and_the_heads_are_named_as_new(encoder, checkpoint):
    with pytest.warns(UserWarning) as caught:
        pretrainer = Pretrainer.from_pretrained(checkpoint)
    assert_equal_encoders(pretrainer.encoder, encoder)
    kernel, bias = pretrainer.get_layer("next_sentence_head").get_weights()
    assert 0.005 < kernel.std() < 0.04 and not bias.any()  # random, as BERT starts
    message = message_of(caught)
    assert "masked_lm_head/output_bias" in message and "next_sentence_head/kernel" in message
    assert "block_0" not in message


def test_a_missing_pooler_is_named_in_one_warning_and_new(checkpoint):
    rewrite(checkpoint, lambda tensors: without(tensors, "pooler.dense.weight", "pooler.dense.bias"))
    with pytest.warns(UserWarning) as caught:
        reloaded = BertEncoder.from_pretrained(checkpoint)
    assert "pooler/kernel, pooler/bias: newly initialised" in message_of(caught)
    kernel, bias = reloaded.get_layer("pooler").get_weights()
    assert 0.01 < kernel.std() < 0.03 and not bias.any()


@pytest.mark.parametrize("name", ["encoder.layer.1.output.dense.weight", "pooler.dense.bias"])  # half of a pooler
def test_a_missing_tensor_is_named(name, checkpoint):
    rewrite(checkpoint, lambda tensors: without(tensors, name))
    with pytest.raises(ValueError, match=f"no tensor bert.{name}"):
        BertEncoder.from_pretrained(checkpoint)


def test_surplus_tensors_are_listed_in_the_report(encoder, checkpoint, capsys):
    rewrite(checkpoint, lambda tensors: {**tensors, "adapter.weight": np.zeros((2, 3), "float32")})
    BertEncoder.from_pretrained(checkpoint, report=True)
    printed = capsys.readouterr().out
    assert "39 tensors used\n1 left over:\n    adapter.weight\n0 newly initialised" in printed


@pytest.mark.parametrize(
    "field, value, message",
    [
        ("vocab_size", 59, r"has shape \(53, 15\), but config.json asks for \(59"),
        ("intermediate_size", 10**7, r"has shape \(21, 15\)"),
        ("intermediate_size", 10**12, "intermediate_size"),
        ("num_hidden_layers", 10**7, "has 2 layers"),
    ],
)
def test_a_configuration_cannot_ask_for_memory_that_no_tensor_fills(field, value, message, checkpoint):
    config = json.loads((checkpoint / "config.json").read_text())
    (checkpoint / "config.json").write_text(json.dumps({**config, field: value}))
    with pytest.raises(ValueError, match=message):
        BertEncoder.from_pretrained(checkpoint)


def test_integers_where_floats_are_wanted_are_named(checkpoint):
    name = "encoder.layer.1.output.dense.bias"
    rewrite(checkpoint, lambda tensors: {**tensors, name: np.arange(15)})
    with pytest.raises(ValueError, match="is of type I64"):
        BertEncoder.from_pretrained(checkpoint)


@pytest.mark.parametrize(
    "name, content", [("config.json", '{"a": 1' + "0" * 5000 + "}"), ("tokenizer_config.json", "[" * 10**5)]
)
def test_json_that_python_cannot_read_is_named(name, content, checkpoint):
    (checkpoint / name).write_text(content)
    with pytest.raises(ValueError, match=rf"{name}: not valid JSON"):
        BertEncoder.from_pretrained(checkpoint)


def header_of(path, change):
    """Replaces the header of a safetensors file by what `change` returns for it; the numbers stay."""
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.dumps(change(json.loads(content[8 : 8 + size]))).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + content[8 + size :])


@pytest.mark.parametrize(
    "change, message",
    [
        ({"data_offsets": [0, 60_000_000_000], "shape": [10**9, 15]}, r"cannot be bytes 0 to 60000000000 of"),
        ({"shape": [54, 15]}, r"shape \[54, 15\] cannot be bytes"),
        ({"shape": [-53, -15]}, r"shape \[-53, -15\] cannot be bytes"),
        ({"dtype": ["F32"]}, r"unhashable"),
        ({"data_offsets": [0]}, r"not enough values"),
    ],
)
def test_a_header_that_lies_is_named(change, message, checkpoint):
    name = "embeddings.word_embeddings.weight"
    header_of(checkpoint / "model.safetensors", lambda header: {**header, name: {**header[name], **change}})
    with pytest.raises(ValueError, match=rf"model.safetensors is damaged.* {message}"):
        BertEncoder.from_pretrained(checkpoint)


@pytest.mark.parametrize("content", [b"", b"no", (10**15).to_bytes(8, "little") + b"{}", None])
def test_a_file_of_another_kind_or_that_is_cut_off_is_named(content, checkpoint):
    path = checkpoint / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100] if content is None else content)
    with pytest.raises(ValueError, match=r"model\.safetensors is damaged"):
        BertEncoder.from_pretrained(checkpoint)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_read_exactly(dtype, small_config, tmp_path):
    torch = pytest.importorskip("torch")
    model = random_model("BertModel", small_config, tmp_path).to(getattr(torch, dtype))
    model.save_pretrained(tmp_path)
    table = BertEncoder.from_pretrained(tmp_path).token_embedding.get_weights()[0]
    np.testing.assert_array_equal(table, model.embeddings.word_embeddings.weight.detach().float().numpy())


def test_a_vocabulary_that_is_longer_or_lost_words_is_noticed(checkpoint):
    write_vocabulary(checkpoint / "vocab.txt", SPECIAL_TOKENS)
    with pytest.warns(UserWarning, match="only 5 words"):
        checkpoints.open_checkpoint(checkpoint).read_tokenizer()
    write_vocabulary(checkpoint / "vocab.txt", [*SPECIAL_TOKENS, *(f"word{index}" for index in range(49))])
    with pytest.raises(ValueError, match="has 53 rows"):
        MaskedLM.from_pretrained(checkpoint)


def test_an_adapter_of_peft_is_not_passed_over(checkpoint):
    (checkpoint / "adapter_config.json").write_text('{"peft_type": "LORA", "base_model_name_or_path": "."}')
    for _ in range(2):  # beside a model, and as most are published, without one
        with pytest.raises(ValueError, match="peft"):
            BertEncoder.from_pretrained(checkpoint)
        (checkpoint / "config.json").unlink(missing_ok=True)


@pytest.mark.parametrize(
    "entry",
    [{"model_input_names": ["input_ids", "attention_mask"]}, {"tokenizer_class": "DistilBertTokenizer"}],
)
def test_a_tokenizer_without_segments_is_told_where_the_model_has_them(entry, small_config, small_tokenizer, tmp_path):
    transformers = pytest.importorskip("transformers")
    short = DistilBertConfig(53, hidden_size=15, num_layers=1, num_heads=3, intermediate_size=7, max_length=11)
    for name, encoder in (("bert", BertEncoder(small_config)), ("distilbert", DistilBertEncoder(short))):
        huggingface.save(encoder, tmp_path / name, small_tokenizer)
        path = tmp_path / name / "tokenizer_config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **entry}))
    assert "token_type_ids" not in transformers.AutoTokenizer.from_pretrained(tmp_path / "bert")("a cat", "a dog")
    with pytest.warns(UserWarning, match="second text of a pair has the segment 1"):
        checkpoints.open_checkpoint(tmp_path / "bert").read_tokenizer()
    with warnings.catch_warnings(record=True, action="always") as told:
        checkpoints.open_checkpoint(tmp_path / "distilbert").read_tokenizer()  # which ignores segments
    assert ["only 24 words" in str(warning.message) for warning in told] == [True]


def test_an_encoder_opens_whatever_its_vocabulary(encoder, checkpoint):
    (checkpoint / "vocab.txt").write_text("no vocabulary of a BERT")
    assert_equal_encoders(BertEncoder.from_pretrained(checkpoint), encoder)


def test_a_masked_lm_keeps_the_pooler_of_its_checkpoint(encoder, checkpoint):
    with pytest.warns(UserWarning, match="masked_lm_head"):
        model = MaskedLM.from_pretrained(checkpoint, tokenizer=None)
    assert_equal_encoders(model.encoder, encoder)
