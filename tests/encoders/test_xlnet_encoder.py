"""What only XLNet does: distances as sinusoids, segments that are compared, rows that end in <cls>."""

import dataclasses
import json

import keras
import numpy as np
import pytest
from families import CONFIGS
from reference_models import outputs_of, random_model
from tiers import every_backend, full_but

import keras_bert_impl as kbi
from keras_bert_impl.encoders.xlnet import DistanceSinusoids

CONFIG = CONFIGS["XLNet"]


def rows_of(length, lengths, side="right", seed=0):
    """Rows with three segments, of which the last token has the third, padded on one side."""
    random, place = np.random.default_rng(seed), np.arange(length)
    rows = []
    for count in lengths:
        token_ids, segment_ids = np.full(length, CONFIG.pad_id), np.full(length, 3)
        real = place < count if side == "right" else place >= length - count
        token_ids[real] = random.integers(6, 53, count)
        segment_ids[real] = [*[0] * (count // 2), *[1] * (count - count // 2 - 1), 2]
        rows.append((token_ids, segment_ids, real))
    columns = zip(*rows, strict=True)
    names = ("token_ids", "segment_ids", "padding_mask")
    return {name: np.stack(column).astype("int32") for name, column in zip(names, columns, strict=True)}


@every_backend
@pytest.mark.parametrize("length", full_but([1, 8, 60], 8, on=("tensorflow", "jax")))
def test_rows_of_any_length_are_computed_as_by_transformers_wherever_the_padding_is(length, tmp_path):
    model, lengths = random_model("XLNetModel", CONFIG, tmp_path), [length, max(1, length - 3)]
    encoder, found = kbi.XLNetEncoder.from_pretrained(tmp_path), {}
    for side in ("left", "right"):
        rows = rows_of(length, lengths, side)
        states = encoder.predict_on_batch(rows)["sequence_output"]
        np.testing.assert_allclose(states, outputs_of(model, rows)["last_hidden_state"], atol=1e-5)
        found[side] = states[rows["padding_mask"] == 1]
    np.testing.assert_allclose(found["left"], found["right"], atol=1e-5)


def test_a_row_is_classified_by_its_last_token_wherever_the_padding_is(tmp_path):
    theirs = random_model("XLNetForSequenceClassification", CONFIG, tmp_path, num_labels=3)
    model = kbi.TextClassifier.from_pretrained(tmp_path)
    expected = outputs_of(theirs, rows_of(9, [9, 5, 1], "left"))["logits"]
    for side in ("left", "right"):
        np.testing.assert_allclose(model.predict_on_batch(rows_of(9, [9, 5, 1], side)), expected, atol=1e-5)


def test_of_segments_only_their_equality_counts():
    encoder, rows = kbi.XLNetEncoder(CONFIG), rows_of(9, [9, 6])
    states = encoder.predict_on_batch(rows)["sequence_output"]
    renamed = {**rows, "segment_ids": np.array([7, 0, 4, 9], "int32")[rows["segment_ids"]]}
    np.testing.assert_array_equal(encoder.predict_on_batch(renamed)["sequence_output"], states)
    joined = {**rows, "segment_ids": np.minimum(rows["segment_ids"], 1)}
    assert np.abs(encoder.predict_on_batch(joined)["sequence_output"] - states).max() > 1e-6


def test_sinusoids_of_distances_by_hand():
    layer = DistanceSinusoids(max_distance=2)
    found = keras.ops.convert_to_numpy(layer(np.zeros((1, 4, 4), "float32")))[0]
    distances = np.array([2, 2, 1, 0, -1, -2, -2])  # 3 to -3, clipped
    expected = np.stack(
        [np.sin(distances), np.sin(distances / 100), np.cos(distances), np.cos(distances / 100)], axis=1
    )
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_a_head_that_predicts_no_words_keeps_the_start_of_queries(tmp_path):
    """transformers has it in each model; what nothing reads is not trained, and weight decay leaves it alone."""
    random_model("XLNetForSequenceClassification", CONFIG, tmp_path / "theirs", num_labels=3)
    model = kbi.TextClassifier.from_pretrained(tmp_path / "theirs")
    start = model.encoder.get_layer("query_start").weights[0]
    assert "query_start/embeddings" not in {weight.path for weight in model.trainable_weights}
    model.save_pretrained(tmp_path / "ours")
    again = kbi.MaskedLM(kbi.XLNetEncoder.from_pretrained(tmp_path / "ours"))
    np.testing.assert_array_equal(again.get_layer("query_start").weights[0], start)
    assert "query_start/embeddings" in {weight.path for weight in again.trainable_weights}


def test_two_dropout_rates_are_not_saved_as_one(tmp_path):
    config = dataclasses.replace(CONFIG, attention_dropout_rate=0.3)
    with pytest.raises(ValueError, match=r"hidden_dropout_rate is 0\.1 and would be read as 0\.3"):
        kbi.XLNetEncoder(config).save_pretrained(tmp_path)


def test_a_vector_of_the_first_token_is_refused_and_that_of_cls_is_the_last():
    encoder, rows = kbi.XLNetEncoder(CONFIG), rows_of(9, [9, 5])
    for pooling in ("cls", "last_four", ("mean", "cls")):
        with pytest.raises(ValueError, match=r"takes the first token, which is part of the text in XLNet: use 'last"):
            kbi.TextEmbedder(encoder, pooling=pooling)
    states = encoder.predict_on_batch(rows)["sequence_output"]
    model = kbi.TextEmbedder(encoder, pooling="lasttoken")
    np.testing.assert_allclose(model.predict_on_batch(rows), states[[0, 1], [8, 4]], atol=1e-6)
    left = rows_of(9, [9, 5], "left")
    np.testing.assert_allclose(model.predict_on_batch(left)[1], model.predict_on_batch(rows)[1], atol=1e-5)


def test_files_that_name_a_memory_open_without_it(tmp_path):
    """As xlnet-large's config.json does, and the `.keras` files of earlier versions."""
    encoder, rows = kbi.XLNetEncoder(CONFIG), rows_of(9, [9, 5])
    states = encoder.predict_on_batch(rows)["sequence_output"]
    encoder.save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "mem_len": 384, "reuse_len": 256}))
    again = kbi.XLNetEncoder.from_pretrained(tmp_path)
    np.testing.assert_array_equal(again.predict_on_batch(rows)["sequence_output"], states)
    fields = {**CONFIG.to_dict(), "memory_length": 384, "reused_length": None}
    assert kbi.XLNetConfig.from_dict(fields) == CONFIG


def test_longer_rows_are_a_setting_that_a_checkpoint_keeps(tmp_path):
    kbi.TextClassifier(kbi.XLNetEncoder(CONFIG), 3).save_pretrained(tmp_path / "short")
    with pytest.raises(ValueError, match="sequence_length 40 is above the encoder's max_length 11"):
        kbi.TextClassifier.from_pretrained(tmp_path / "short", sequence_length=40)
    checkpoint = kbi.checkpoints.grow(kbi.checkpoints.open_checkpoint(tmp_path / "short"), max_length=40)
    encoder = kbi.XLNetEncoder(checkpoint.config)
    encoder.save_pretrained(tmp_path / "long")
    assert kbi.XLNetEncoder.from_pretrained(tmp_path / "long").config.max_length == 40
    transformers = pytest.importorskip("transformers")
    assert transformers.AutoConfig.from_pretrained(tmp_path / "long").d_model == CONFIG.hidden_size
