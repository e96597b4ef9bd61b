"""What only ModernBERT does: windows, rotary positions with two bases, and older and newer keys of its config.json."""

import json

import keras
import numpy as np
import pytest
from families import CONFIGS, MODERN
from made_exports import check_rows_of_export
from reference_models import outputs_of, random_model
from tiers import every_backend, full_but, on

import keras_bert_impl as kbi
from keras_bert_impl.checkpoints import open_checkpoint
from keras_bert_training.commands.convert import model_of

pytestmark = on("torch")


def rows_of(lengths, length):
    random = np.random.default_rng(0)
    mask = (np.arange(length) < np.array(lengths)[:, None]).astype("int32")
    ids = np.where(mask == 1, random.integers(5, 53, mask.shape), 1).astype("int32")
    return {"token_ids": ids, "segment_ids": np.zeros_like(ids), "padding_mask": mask}


@every_backend
@pytest.mark.parametrize("length", full_but([1, 5, 16, 41], 16, on=("tensorflow", "jax")))
def test_windows_are_those_of_transformers_at_every_length(length, tmp_path):
    """With 4 tokens to each side; of 16 and more the attention is computed by blocks."""
    config = kbi.ModernBertConfig(**{**MODERN, "max_length": 64, "num_layers": 4, "local_attention": 8})
    rows = rows_of([length, max(1, length - 7)], length)
    theirs = outputs_of(random_model("ModernBertModel", config, tmp_path), rows)["last_hidden_state"]
    ours = kbi.ModernBertEncoder.from_pretrained(tmp_path).predict_on_batch(rows)["sequence_output"]
    seen = rows["padding_mask"] == 1
    np.testing.assert_allclose(ours[seen], theirs[seen], atol=1e-5)


def test_newer_keys_of_config_json_mean_the_same(tmp_path):
    transformers = pytest.importorskip("transformers")
    config = kbi.ModernBertConfig(
        **{**MODERN, "num_layers": 5, "global_every": 3}, global_theta=7000.0, local_theta=500.0
    )
    theirs = transformers.ModernBertConfig(**config.to_huggingface())
    theirs.save_pretrained(tmp_path)
    written = json.loads((tmp_path / "config.json").read_text())
    assert "layer_types" in written and "rope_parameters" in written
    older = ("global_attn_every_n_layers", "global_rope_theta", "local_rope_theta")
    written = {name: value for name, value in written.items() if name not in older}
    (tmp_path / "config.json").write_text(json.dumps(written))
    assert kbi.ModernBertConfig.from_huggingface(tmp_path / "config.json") == config


def test_layers_of_one_kind_are_read(tmp_path):
    changes = {"layer_types": ["full_attention", "full_attention"]}
    (tmp_path / "config.json").write_text(json.dumps({**CONFIGS["ModernBert"].to_huggingface(), **changes}))
    assert kbi.ModernBertConfig.from_huggingface(tmp_path / "config.json").windows == [None, None]


def test_last_kernels_start_with_smaller_values():
    config = kbi.ModernBertConfig(**{**MODERN, "hidden_size": 120, "num_layers": 8})
    encoder = kbi.ModernBertEncoder(config)
    deviations = {weight.path: float(np.std(weight)) for weight in encoder.weights if weight.path.endswith("kernel")}
    first, last = deviations["block_3/attention/query_key_value/kernel"], deviations["block_3/attention/output/kernel"]
    assert last == pytest.approx(first / 4, rel=0.1)  # sqrt(2 * 8)
    assert deviations["block_3/output/kernel"] == pytest.approx(deviations["block_3/intermediate/kernel"] / 4, rel=0.1)


def test_a_head_is_not_opened_as_another_of_the_same_name(small_tokenizer, tmp_path):
    """transformers calls the scores of classes and those of a question's answers `classifier`, both of two columns."""
    classifier = kbi.TextClassifier(kbi.ModernBertEncoder(CONFIGS["ModernBert"]), 2, tokenizer=small_tokenizer)
    classifier.save_pretrained(tmp_path / "classifier")
    with pytest.warns(UserWarning, match="has no values for span_head"):
        kbi.QuestionAnswerer.from_pretrained(tmp_path / "classifier")
    assert isinstance(model_of(open_checkpoint(tmp_path / "classifier"), False), kbi.TextClassifier)
    answerer = kbi.QuestionAnswerer(kbi.ModernBertEncoder(CONFIGS["ModernBert"]), small_tokenizer, sequence_length=9)
    answerer.save_pretrained(tmp_path / "answerer")
    with pytest.warns(UserWarning, match="has no values for classifier"):
        kbi.TextClassifier.from_pretrained(tmp_path / "answerer", num_classes=2)
    assert isinstance(model_of(open_checkpoint(tmp_path / "answerer"), False), kbi.QuestionAnswerer)


def test_the_dense_layer_before_a_head_is_that_of_the_masked_lm(small_tokenizer, tmp_path):
    masked_lm = kbi.MaskedLM(kbi.ModernBertEncoder(CONFIGS["ModernBert"]), tokenizer=small_tokenizer)
    masked_lm.save_pretrained(tmp_path)
    classifier = kbi.TextClassifier.from_pretrained(tmp_path, num_classes=3)
    ours, theirs = (
        {weight.path.split("/", 1)[1]: keras.ops.convert_to_numpy(weight) for weight in model.get_layer(name).weights}
        for model, name in ((classifier, "pooler"), (masked_lm, "masked_lm_head"))
    )
    assert ours.keys() == {"transform/kernel", "norm/gamma"}
    for path, array in ours.items():
        np.testing.assert_array_equal(array, theirs[path])


# One of four windows and more, so that blocks are computed, and one below.
TEXTS = ["the cat sat on a mat and " * 5, "red rain", ""]


@pytest.fixture
def embedder(small_tokenizer):
    config = kbi.ModernBertConfig(**{**MODERN, "max_length": 64, "num_layers": 3})
    return kbi.TextEmbedder(kbi.ModernBertEncoder(config), tokenizer=small_tokenizer, sequence_length=48)


@pytest.mark.full
@on("torch", "tensorflow")
@pytest.mark.parametrize("format_name", ["onnx", "openvino", "litert"])
def test_an_export_of_rows_gives_the_vectors(format_name, embedder, tmp_path):
    check_rows_of_export(format_name, embedder, TEXTS, tmp_path)
