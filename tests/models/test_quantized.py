"""Models after Keras' `quantize`: what they compute, and what their files hold."""

import gc

import keras
import numpy as np
import pytest
from every_model import KINDS, MODELS, inputs_of
from tiers import full_but

import keras_bert_impl as kbi
from keras_bert_impl.checkpoints import huggingface

pytestmark = pytest.mark.filterwarnings("ignore:Layer .* does not have a `quantize")
# As in Keras' default: activations are also in eight bits, with a scale for each token.
ALL_ROUNDED = keras.quantizers.Int8QuantizationConfig(activation_quantizer=keras.quantizers.AbsMaxQuantizer(axis=-1))
every_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(autouse=True)
def little_garbage():
    """Keras collects garbage for each layer that it quantizes, which takes seconds with as many imports as here."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def batch():
    random = np.random.default_rng(3)
    return {
        "token_ids": random.integers(5, 53, (32, 7)).astype("int32"),
        "segment_ids": np.tile(np.array([0, 0, 0, 0, 1, 1, 1], "int32"), (32, 1)),
        "padding_mask": np.ones((32, 7), "int32"),
        "mask_positions": np.tile(np.array([1, 3, 6], "int32"), (32, 1)),
    }


@pytest.fixture
def make():
    """A model that is wide enough for rounding errors to average out, with outputs that differ from row to row."""

    def make(kind):
        config = kbi.BertConfig(
            vocabulary_size=53, hidden_size=32, num_layers=1, num_heads=2, intermediate_size=48, max_length=11
        )
        model = MODELS[kind](kbi.BertEncoder(config))
        random = np.random.default_rng(5)
        for weight in model.weights:
            scale = 0.5 if weight.path.endswith("embeddings") else 0.1
            if weight.path.endswith(("kernel", "embeddings")):
                weight.assign(random.normal(size=weight.shape, scale=scale))
        return model

    return make


def outputs_of(model, inputs):
    return [np.asarray(array) for array in keras.tree.flatten(model.predict_on_batch(inputs))]


@every_kind
def test_int8_stays_within_two_percent_of_the_range_of_the_outputs(kind, make, batch):
    model, inputs = make(kind), inputs_of(kind, batch)
    exact = outputs_of(model, inputs)
    model.quantize("int8")
    for rounded, expected in zip(outputs_of(model, inputs), exact, strict=True):
        difference = np.abs(rounded - expected).max()
        assert 0 < difference < 0.02 * np.ptp(expected)


@pytest.mark.parametrize("kind", ["MaskedLM", "TextClassifier"])
def test_activations_are_rounded_when_a_configuration_says_so(kind, make, batch):
    inputs, errors = inputs_of(kind, batch), []
    for arguments in ({"mode": "int8"}, {"config": ALL_ROUNDED}):
        model = make(kind)
        exact = model.predict_on_batch(inputs)
        model.quantize(**arguments)
        errors.append(np.abs(model.predict_on_batch(inputs) - exact).max() / np.ptp(exact))
    assert 0 < errors[0] < errors[1] < 0.02


@pytest.mark.parametrize("kind", full_but(KINDS, "TextClassifier", "MaskedLM", "FeatureTagger", "TextEmbedder"))
@pytest.mark.parametrize("how", full_but([{"mode": "int8"}, {"mode": "int4"}], {"mode": "int4"}), ids=str)
def test_a_quantized_model_survives_its_keras_file(how, kind, make, batch, tmp_path):
    model, inputs = make(kind), inputs_of(kind, batch)
    model.quantize(**how)
    model.save(tmp_path / "model.keras")
    reloaded = keras.saving.load_model(tmp_path / "model.keras")
    for found, expected in zip(outputs_of(reloaded, inputs), outputs_of(model, inputs), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_layers_left_as_they_were_come_back_so(make, batch, tmp_path):
    model, inputs = make("TextClassifier"), inputs_of("TextClassifier", batch)
    model.quantize("int8", filters="classifier|pooler|intermediate")
    model.save(tmp_path / "model.keras")
    reloaded = keras.saving.load_model(tmp_path / "model.keras")
    dtypes = {weight.path: weight.dtype for weight in reloaded.weights}
    assert dtypes == {weight.path: weight.dtype for weight in model.weights}
    assert (dtypes["pooler/kernel"], dtypes["token_embedding/embeddings"]) == ("int8", "float32")
    np.testing.assert_array_equal(outputs_of(reloaded, inputs), outputs_of(model, inputs))


def test_a_checkpoint_of_a_quantized_model_is_refused_with_the_reason(make, tmp_path):
    model = make("MaskedLM")
    model.quantize("int8")
    with pytest.raises(ValueError, match=r"cannot store .*scale.* model\.save\('model\.keras'\)"):
        huggingface.save(model, tmp_path / "checkpoint")
    assert not (tmp_path / "checkpoint").exists()


@pytest.mark.parametrize(("prepare", "rank"), [
    (lambda model: model.quantize("float8"), 2), (lambda model: model.enable_lora(2), 2), (lambda model: None, 0),
])  # fmt: skip
def test_lora_that_is_not_possible_is_refused_before_anything_is_frozen_or_thawed(prepare, rank, small_config):
    model = kbi.TextClassifier(kbi.BertEncoder(small_config), 3)
    prepare(model)
    before = [weight.path for weight in model.trainable_weights]
    with pytest.raises(ValueError, match="LoRA needs a rank of at least 1, and blocks"):
        model.enable_lora(rank)
    assert [weight.path for weight in model.trainable_weights] == before


def test_what_lora_learnt_beside_int8_kernels_is_merged_into_them(make, batch):
    model = make("TextClassifier")
    model.quantize("int8")
    model.enable_lora(2)
    [before] = outputs_of(model, inputs_of(model, batch))
    for weight in model.trainable_weights:
        if weight.name.startswith("lora_"):
            weight.assign(np.random.default_rng(7).normal(size=weight.shape, scale=0.2))
    [learnt] = outputs_of(model, inputs_of(model, batch))
    model.merge_lora()
    [merged] = outputs_of(model, inputs_of(model, batch))
    assert np.abs(merged - learnt).max() < 0.1 * np.abs(learnt - before).max()
