"""Generator and discriminator of DeBERTa's version 3, whose embeddings are shared with gradients apart."""

import keras
import numpy as np
import pytest
from conftest import QUICK_STEPS
from every_model import LABELS, WITHOUT_DROPOUT
from reference_models import open_in_transformers, outputs_of
from safetensors.numpy import load_file
from tiers import every_backend, full_on

import keras_bert_impl as kbi
from keras_bert_impl.optimization import BertAdamW, ClipsToGlobalNorm


@pytest.fixture
def config(small_tokenizer):
    sizes = {"hidden_size": 12, "num_layers": 2, "num_heads": 2, "intermediate_size": 14, "max_length": 11}
    more = {"num_buckets": 8, "max_distance": 11, "initializer_range": 0.2, **WITHOUT_DROPOUT}
    return kbi.DebertaV2Config(small_tokenizer.vocabulary_size, **sizes, **more)


@pytest.fixture
def batch(small_batch):
    """Rows whose ids are in the small vocabulary."""
    return {**small_batch, "token_ids": 5 + small_batch["token_ids"] % 19}


def build(config, tokenizer, seed=3, optimizer=None, packed=False, **arguments):
    keras.utils.set_random_seed(seed)
    model = kbi.ElectraPretrainer(kbi.DebertaV2Encoder(config, packed=packed), tokenizer, seed=1, **arguments)
    model.compile(optimizer=optimizer or BertAdamW(1e-2), **QUICK_STEPS)
    return model


class Descent(ClipsToGlobalNorm, keras.optimizers.SGD):
    """Plain gradient descent."""


def tables(model):
    """The tables of the generator and of the discriminator, as NumPy arrays."""
    encoders = model.masked_lm.encoder, model.encoder
    return [keras.ops.convert_to_numpy(encoder.token_embedding.embeddings).copy() for encoder in encoders]


def rows_of(batch):
    return {name: batch[name] for name in ("token_ids", "segment_ids", "padding_mask")}


def test_the_generator_is_half_as_deep_and_starts_with_the_words_of_the_discriminator(config, small_tokenizer, batch):
    encoder = kbi.DebertaV2Encoder(config)
    before = encoder.predict(rows_of(batch), verbose=0)["sequence_output"]
    model = kbi.ElectraPretrainer(encoder, small_tokenizer)
    generator = model.masked_lm.encoder
    assert (generator.config.num_layers, generator.config.hidden_size) == (1, 12)
    np.testing.assert_array_equal(*tables(model))
    assert np.abs(tables(model)[0]).max() > 0.1
    np.testing.assert_array_equal(encoder.predict(rows_of(batch), verbose=0)["sequence_output"], before)


@every_backend
@full_on("jax")
def test_no_gradient_of_the_discriminator_reaches_the_generator_s_embedding(config, small_tokenizer, batch):
    """With plain gradient descent: the generator's table moves by its own loss, and the discriminator's by both."""
    moved = {}
    for weight in (0.0, 50.0):
        model = build(config, small_tokenizer, optimizer=Descent(0.1), detection_weight=weight)
        before = tables(model)
        model.train_on_batch(batch, LABELS)
        moved[weight] = [new - old for new, old in zip(tables(model), before, strict=True)]
    assert np.abs(moved[0.0][0]).max() > 1e-4
    np.testing.assert_allclose(moved[0.0][1], moved[0.0][0], atol=1e-6)  # without a loss of its own, it follows
    np.testing.assert_allclose(moved[50.0][0], moved[0.0][0], atol=1e-6)
    assert np.abs(moved[50.0][1] - moved[50.0][0]).max() > 1e-3


def test_an_embedding_that_is_frozen_does_not_follow(config, small_tokenizer, batch):
    encoder = kbi.DebertaV2Encoder(config)
    encoder.token_embedding.trainable = False
    model = kbi.ElectraPretrainer(encoder, small_tokenizer)
    model.compile(optimizer=Descent(0.1), **QUICK_STEPS)
    before = tables(model)
    model.train_on_batch(batch, LABELS)
    assert np.abs(tables(model)[0] - before[0]).max() > 1e-4
    np.testing.assert_array_equal(tables(model)[1], before[1])


def test_an_optimizer_that_would_part_the_embeddings_is_refused(config, small_tokenizer):
    model = kbi.ElectraPretrainer(kbi.DebertaV2Encoder(config), small_tokenizer)
    with pytest.raises(ValueError, match=r"Adam does not keep the embeddings .* together: compile with BertAdamW"):
        model.compile(optimizer="adam")


def test_checkpoints_of_both_models_open_in_transformers_and_go_on(config, small_tokenizer, batch, tmp_path):
    model = build(config, small_tokenizer)
    for _ in range(3):
        model.train_on_batch(batch, LABELS)
    model.save_pretrained(tmp_path)
    model.encoder.save_pretrained(tmp_path / "encoder")
    rows = rows_of(batch)
    expected = model.encoder.predict_on_batch(rows)["sequence_output"]
    theirs = outputs_of(open_in_transformers("DebertaV2Model", tmp_path / "encoder"), rows)["last_hidden_state"]
    tokens = rows["padding_mask"] == 1
    np.testing.assert_allclose(theirs[tokens], expected[tokens], atol=1e-5)
    detector = kbi.ReplacedTokenDetector.from_pretrained(tmp_path)
    np.testing.assert_allclose(detector.predict_on_batch(rows), model.detector.predict_on_batch(rows), atol=1e-5)
    theirs = outputs_of(open_in_transformers("DebertaV2ForMaskedLM", tmp_path / "generator"), rows)["logits"]
    theirs = np.take_along_axis(theirs, batch["mask_positions"][..., None], axis=1)
    # transformers has no enhanced mask decoder: with it, words are predicted otherwise.
    plain = kbi.MaskedLM.from_pretrained(tmp_path / "generator", enhanced_decoder=False)
    np.testing.assert_allclose(plain.predict_on_batch(batch), theirs, atol=1e-5)
    generator = kbi.MaskedLM.from_pretrained(tmp_path / "generator")
    np.testing.assert_allclose(generator.predict_on_batch(batch), model.masked_lm.predict_on_batch(batch), atol=1e-5)
    assert np.abs(generator.predict_on_batch(batch) - theirs).max() > 1e-2

    other = build(config, small_tokenizer, seed=9)
    other.load_pretrained(tmp_path)
    for found, wanted in zip(tables(other), tables(model), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_the_head_is_that_of_microsoft_s_code(config, small_tokenizer, batch, tmp_path):
    """`LMMaskPredictionHead` in torch, on the tensors of the file."""
    torch = pytest.importorskip("torch")
    model = build(config, small_tokenizer)
    rows = rows_of(batch)
    for weight in model.detector.weights:
        weight.assign(np.random.default_rng(len(weight.path)).normal(size=weight.shape, scale=0.5))
    model.detector.save_pretrained(tmp_path)
    tensors = {name: torch.tensor(array) for name, array in load_file(tmp_path / "model.safetensors").items()}
    found = {name: tensors[f"mask_predictions.{name}"] for name in (
        "LayerNorm.weight", "LayerNorm.bias", "dense.weight", "dense.bias", "classifier.weight", "classifier.bias"
    )}  # fmt: skip
    hidden = torch.tensor(np.array(model.encoder.predict_on_batch(rows)["sequence_output"]))
    functions = torch.nn.functional
    states = functions.layer_norm(
        hidden[:, :1] + hidden, (12,), found["LayerNorm.weight"], found["LayerNorm.bias"], 1e-7
    )
    states = functions.gelu(functions.linear(states, found["dense.weight"], found["dense.bias"]))
    logits = functions.linear(states, found["classifier.weight"], found["classifier.bias"])[..., 0]
    np.testing.assert_allclose(model.detector.predict_on_batch(rows), logits, atol=2e-5)


def test_sequences_of_a_packed_row_are_judged_by_their_own_first_token(config, small_tokenizer):
    alone = kbi.ReplacedTokenDetector(kbi.DebertaV2Encoder(config), small_tokenizer)
    packed = kbi.ReplacedTokenDetector(kbi.DebertaV2Encoder(config, packed=True), small_tokenizer)
    packed.set_weights(alone.get_weights())
    ids = np.array([[2, 7, 9, 3, 2, 11, 12, 13, 3, 0]], "int32")
    row = {
        "token_ids": ids,
        "segment_ids": np.zeros_like(ids),
        "padding_mask": (ids > 0).astype("int32"),
        "position_ids": np.array([[0, 1, 2, 3, 0, 1, 2, 3, 4, 0]], "int32"),
        "sequence_ids": np.array([[1] * 4 + [2] * 5 + [0]], "int32"),
    }
    found = packed.predict_on_batch(row)
    for place in (slice(0, 4), slice(4, 9)):
        rows = {name: row[name][:, place] for name in ("token_ids", "segment_ids", "padding_mask")}
        np.testing.assert_allclose(found[:, place], alone.predict_on_batch(rows), atol=1e-5)


def test_other_families_have_no_generator(small_tokenizer):
    encoder = kbi.BertEncoder(kbi.BertConfig(small_tokenizer.vocabulary_size, hidden_size=4, num_layers=1, num_heads=1))
    with pytest.raises(ValueError, match=r"BERT has no generator, .* use ELECTRA or DeBERTa"):
        kbi.ElectraPretrainer(encoder, small_tokenizer)
