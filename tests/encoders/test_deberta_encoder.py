"""What only DeBERTa does: relative positions in buckets, whose products are shifted instead of gathered."""

import contextlib
import dataclasses
import json

import keras
import numpy as np
import pytest
from families import CONFIGS, encoder_of, of_tokens
from made_exports import check_rows_of_export
from reference_models import outputs_of, random_model
from safetensors.numpy import load_file, save_file
from tiers import every_backend, full_but, on, once

import keras_bert_impl as kbi
from keras_bert_impl.encoders.deberta import DebertaV2Config, RelativeEmbeddings, at_distances

CONFIG = CONFIGS["DebertaV2"]
WITH_CONVOLUTION = CONFIGS["DebertaV2, with a convolution"]
VERSIONS = {"v1": CONFIGS["Deberta"], "v2": WITH_CONVOLUTION, "v3": CONFIG}
every_version = pytest.mark.parametrize("config", VERSIONS.values(), ids=VERSIONS)
# JAX and TensorFlow compile several models for each version; tests/encoders/test_every_family.py has all versions.
quick_versions = full_but(VERSIONS.values(), WITH_CONVOLUTION, on=("tensorflow", "jax"))


def rows_of(length, lengths, seed=0):
    token_ids = np.random.default_rng(seed).integers(5, 53, (len(lengths), length)).astype("int32")
    padding_mask = (np.arange(length) < np.array(lengths)[:, None]).astype("int32")
    return {
        "token_ids": np.where(padding_mask == 1, token_ids, 0).astype("int32"),
        "segment_ids": np.zeros_like(token_ids),
        "padding_mask": padding_mask,
    }


@pytest.mark.parametrize(("num_buckets", "max_distance"), [(256, 512), (8, 11)])
def test_every_distance_is_in_the_bucket_of_transformers(num_buckets, max_distance):
    torch = pytest.importorskip("torch")
    deberta = pytest.importorskip("transformers.models.deberta_v2.modeling_deberta_v2")
    length = 3000
    distances = torch.arange(length - 1, -length, -1)
    expected = deberta.make_log_bucket_position(distances, num_buckets, max_distance).long() + num_buckets
    expected = expected.clamp(0, 2 * num_buckets - 1).numpy()
    layer = RelativeEmbeddings(num_buckets, max_distance)
    layer.norm = keras.layers.Identity()
    layer.build((None, None, 1))

    layer.table.assign(np.arange(2 * num_buckets, dtype="float32")[:, None])
    found = keras.ops.convert_to_numpy(layer(np.zeros((1, length, 1), "float32")))[0, :, 0]
    np.testing.assert_array_equal(found, expected)


def test_products_are_put_where_a_gather_would_find_them():
    products = np.random.default_rng(0).normal(size=(2, 3, 5, 9)).astype("float32")
    found = keras.ops.convert_to_numpy(at_distances(keras.ops.convert_to_tensor(products)))
    for query in range(5):
        for key in range(5):
            np.testing.assert_array_equal(found[..., query, key], products[..., query, 4 - (query - key)])
    assert keras.ops.convert_to_numpy(at_distances(keras.ops.convert_to_tensor(products[:, :, :1, :1]))).size == 6


@every_backend
@pytest.mark.parametrize("config", quick_versions, ids=VERSIONS)
@pytest.mark.parametrize("length", full_but([1, 9, 60], 60, on=("tensorflow", "jax")))
def test_rows_of_any_length_are_computed_as_by_transformers(length, config, tmp_path):
    rows = rows_of(length, [length, max(1, length - 3)])
    theirs = outputs_of(random_model(f"{config.class_prefix()}Model", config, tmp_path), rows)["last_hidden_state"]
    ours = encoder_of(config).from_pretrained(tmp_path).predict_on_batch(rows)["sequence_output"]
    np.testing.assert_allclose(of_tokens(rows, ours), of_tokens(rows, theirs), atol=1e-5)


@pytest.mark.parametrize(
    "config",
    [
        dataclasses.replace(CONFIGS["Deberta"], max_distance=64, max_length=300),
        dataclasses.replace(CONFIG, num_buckets=32, max_distance=64, max_length=300, convolution=5),
    ],
    ids=["v1", "v2"],
)
def test_a_row_beyond_the_largest_distance_and_padding_on_the_left(config, tmp_path):
    rows = rows_of(290, [290, 170])
    rows = {name: np.concatenate([array, array[:, ::-1]]) for name, array in rows.items()}
    theirs = outputs_of(random_model(f"{config.class_prefix()}Model", config, tmp_path), rows)["last_hidden_state"]
    ours = encoder_of(config).from_pretrained(tmp_path).predict_on_batch(rows)["sequence_output"]
    np.testing.assert_allclose(of_tokens(rows, ours), of_tokens(rows, theirs), atol=1e-5)


def test_units_of_distances_are_dropped_while_training_alone():
    config = DebertaV2Config(**{**CONFIG.to_dict(), "attention_dropout_rate": 0.0, "hidden_dropout_rate": 0.5})
    block = kbi.DebertaV2Encoder(config).get_layer("block_0")
    hidden = np.random.default_rng(0).normal(size=(1, 6, 15)).astype("float32")
    distances = np.random.default_rng(1).normal(size=(1, 11, 15)).astype("float32") * 30
    expected, again, trained = (
        keras.ops.convert_to_numpy(block.attention(hidden, positions=distances, training=training))
        for training in (False, False, True)
    )
    np.testing.assert_array_equal(again, expected)
    assert np.abs(trained - expected).max() > 0 and len(block.attention.dropouts) == 2


@once
def test_both_ways_of_writing_settings_are_read(tmp_path):
    kbi.DebertaV2Encoder(CONFIG).save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "pos_att_type": "p2c|c2p", "max_relative_positions": -1}))
    assert kbi.DebertaV2Encoder.from_pretrained(tmp_path).config == CONFIG


@pytest.mark.parametrize("config", [CONFIG, CONFIGS["Deberta"]], ids=["v3", "v1"])
def test_masked_words_are_predicted_by_the_head_of_microsoft(config, tmp_path):
    """Its checkpoints have `lm_predictions.lm_head`, and transformers writes this if it is not `legacy`; they also hold
    the head that finds replaced tokens, which is left out."""
    theirs = random_model(f"{config.class_prefix()}ForMaskedLM", config, tmp_path, legacy=False)
    path = tmp_path / "model.safetensors"
    save_file(
        {**load_file(path), "mask_predictions.dense.weight": np.ones((15, 15), "float32")}, path, {"format": "pt"}
    )
    rows = {**rows_of(8, [8, 5]), "mask_positions": np.array([[1, 3], [2, 4]], "int32")}
    logits = outputs_of(theirs, rows)["logits"]
    ours = kbi.MaskedLM.from_pretrained(tmp_path).predict_on_batch(rows)
    np.testing.assert_allclose(ours, np.take_along_axis(logits, rows["mask_positions"][..., None], axis=1), atol=1e-5)


POSITIONS = "deberta.embeddings.position_embeddings.weight"


@contextlib.contextmanager
def of_queries(attention, queries):
    """The options with which a layer takes its queries from there. That of version 1 has an option that fails."""
    if not hasattr(attention.self, "in_proj"):
        yield {"query_states": queries}
        return
    project, finish, heads = attention.self.in_proj, attention.output.forward, attention.self.num_attention_heads

    def projected(hidden):
        theirs, ours = (project(states).unflatten(-1, (heads, 3, -1)) for states in (hidden, queries))
        theirs[..., 0, :] = ours[..., 0, :]
        return theirs.flatten(-3)

    with pytest.MonkeyPatch.context() as patch:
        patch.delattr(attention.self, "in_proj")
        patch.setattr(attention.self, "in_proj", projected, raising=False)
        patch.setattr(attention.output, "forward", lambda mixed, _: finish(mixed, queries))
        yield {}


def decoded_by_transformers(model, rows, table):
    """The logits of Microsoft's `EnhancedMaskDecoder`, by the layers of transformers, which has none."""
    import torch

    with torch.no_grad():
        mask = torch.tensor(rows["padding_mask"])
        found = model.deberta(torch.tensor(rows["token_ids"]), attention_mask=mask, output_hidden_states=True)
        hidden, encoder = found.hidden_states[-2], model.deberta.encoder
        queries, layer = hidden + torch.tensor(table[: hidden.shape[1]]), encoder.layer[-1]
        for _ in range(2):
            with of_queries(layer.attention, queries) as options:
                queries, _ = layer(
                    hidden,
                    encoder.get_attention_mask(mask),
                    relative_pos=encoder.get_rel_pos(hidden),
                    rel_embeddings=encoder.get_rel_embedding(),
                    **options,
                )
        return model.lm_predictions(queries, model.deberta.embeddings.word_embeddings).numpy()


@every_version
def test_the_enhanced_mask_decoder_is_that_of_microsoft(config, tmp_path):
    theirs = random_model(f"{config.class_prefix()}ForMaskedLM", config, tmp_path, legacy=False)
    table = np.random.default_rng(3).normal(size=(config.max_length, config.hidden_size)).astype("float32")
    path = tmp_path / "model.safetensors"
    save_file({**load_file(path), POSITIONS: table}, path, {"format": "pt"})
    rows = {**rows_of(8, [8, 5]), "mask_positions": np.array([[1, 3], [2, 4]], "int32")}
    model = kbi.MaskedLM.from_pretrained(tmp_path)
    assert model.enhanced_decoder
    logits = decoded_by_transformers(theirs, rows, table)
    expected = np.take_along_axis(logits, rows["mask_positions"][..., None], axis=1)
    found = model.predict_on_batch(rows)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    model.save_pretrained(tmp_path / "ours")
    assert POSITIONS in load_file(tmp_path / "ours" / "model.safetensors")
    again = kbi.MaskedLM.from_pretrained(tmp_path / "ours")
    np.testing.assert_allclose(again.predict_on_batch(rows), expected, atol=1e-5)
    plain = kbi.MaskedLM.from_pretrained(tmp_path, enhanced_decoder=False)
    assert np.abs(plain.predict_on_batch(rows) - found).max() > 1e-2
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(loaded.predict_on_batch(rows), expected, atol=1e-5)


@every_version
def test_sequences_of_a_packed_row_are_decoded_as_rows_of_their_own(config):
    encoders = [encoder_of(config)(config, packed=packed, rematerialize=packed) for packed in (False, True)]
    alone, packed = (kbi.Pretrainer(encoder, next_sentence=False, enhanced_decoder=True) for encoder in encoders)
    random = np.random.default_rng(0)
    packed.set_weights([random.normal(size=weight.shape, scale=0.3) for weight in packed.weights])
    alone.set_weights(packed.get_weights())
    first, second = rows_of(4, [4], seed=1), rows_of(5, [5], seed=2)
    row = {name: np.concatenate([first[name], second[name]], axis=1) for name in first}
    row["position_ids"] = np.array([[0, 1, 2, 3, 0, 1, 2, 3, 4]], "int32")
    row["sequence_ids"] = np.array([[1] * 4 + [2] * 5], "int32")
    row["mask_positions"] = np.array([[2, 5, 8]], "int32")
    found = packed.predict_on_batch(row)["masked_lm_logits"]
    for rows, places, seen in ((first, [2], slice(0, 1)), (second, [1, 4], slice(1, 3))):
        rows["mask_positions"] = np.array([places], "int32")
        expected = alone.predict_on_batch(rows)["masked_lm_logits"]
        np.testing.assert_allclose(found[:, seen], expected, atol=1e-5)


def test_the_decoder_s_positions_grow_and_its_teacher_predicts_with_it(tmp_path, small_tokenizer):
    from types import SimpleNamespace

    from keras_bert_impl.checkpoints import open_checkpoint
    from keras_bert_impl.checkpoints.growing import grow
    from keras_bert_training.distillation import build_distiller
    from keras_bert_training.options.distill import DistillConfig
    from keras_bert_training.pretraining_model import schedule_of

    fields = {"vocabulary_size": small_tokenizer.vocabulary_size, "max_length": 16}
    encoder = kbi.DebertaV2Encoder(dataclasses.replace(CONFIG, **fields))
    model = kbi.MaskedLM(encoder, small_tokenizer, enhanced_decoder=True)
    random = np.random.default_rng(0)
    model.set_weights([random.normal(size=weight.shape, scale=0.3) for weight in model.weights])
    model.save_pretrained(tmp_path)
    rows = {**rows_of(8, [8, 5]), "mask_positions": np.array([[1, 3], [2, 4]], "int32")}
    rows["token_ids"] %= small_tokenizer.vocabulary_size
    expected = model.predict_on_batch(rows)
    checkpoint = open_checkpoint(tmp_path)
    for max_length in (32, 8):
        grown = kbi.MaskedLM.from_pretrained(grow(checkpoint, max_length=max_length), sequence_length=8)
        np.testing.assert_allclose(grown.predict_on_batch(rows), expected, atol=1e-5)
    config = DistillConfig("data", "out", teacher=str(tmp_path), num_layers=1, steps=4, from_scratch=True)
    data = SimpleNamespace(packed=False)
    distiller = build_distiller(config, data, False, schedule_of(config, 4), checkpoint)
    assert distiller.teacher.enhanced_decoder and not distiller.student.enhanced_decoder
    np.testing.assert_allclose(distiller.teacher.predict_on_batch(rows), expected, atol=1e-5)


def embedder(tokenizer):
    """A model over weights so large that texts differ in their vectors."""
    fields = {"vocabulary_size": tokenizer.vocabulary_size, "max_length": 24, "pad_id": tokenizer.pad_id}
    encoder = kbi.DebertaV2Encoder(dataclasses.replace(WITH_CONVOLUTION, **fields, num_layers=1))
    random = np.random.default_rng(0)
    for weight in encoder.weights:
        weight.assign(random.normal(size=weight.shape, scale=0.3))
    return kbi.TextEmbedder(encoder, tokenizer=tokenizer)


TEXTS = ["the cat sat on a mat in the rain", "a dog", ""]


@pytest.mark.full
@pytest.mark.parametrize("format_name", ["onnx", "openvino", "litert"])
def test_exports_compute_what_the_model_does(format_name, tmp_path, small_tokenizer):
    check_rows_of_export(format_name, embedder(small_tokenizer), TEXTS, tmp_path)


@on("tensorflow")
def test_a_saved_model_gives_the_vectors_of_its_texts(small_tokenizer, tmp_path):
    import tensorflow as tf

    from keras_bert_impl.export import export_saved_model

    model = embedder(small_tokenizer)
    export_saved_model(model, tmp_path / "exported")
    served = tf.saved_model.load(str(tmp_path / "exported")).signatures["serving_default"]
    (found,) = served(text=tf.constant(TEXTS)).values()
    np.testing.assert_allclose(found, model.predict(TEXTS, verbose=0), atol=1e-5)
