"""XLNet's words in a random order, against the two streams of transformers."""

import keras
import numpy as np
import pytest
from conftest import QUICK_STEPS
from families import CONFIGS
from reference_models import check_sequences_of_a_packed_row, open_in_transformers, outputs_of, random_model
from tiers import every_backend, full_but, full_on

import keras_bert_impl as kbi
from keras_bert_impl.layers import QueryStream
from keras_bert_impl.optimization import BertAdamW

CONFIG = CONFIGS["XLNet"]
LENGTH, POSITIONS = 9, np.array([[1, 3, 5, 7], [0, 4, 0, 0]], "int32")  # of 0, the first is a place
IS_REAL = np.array([[1, 1, 1, 1], [1, 1, 0, 0]], bool)


def rows_of(lengths=(9, 6)):
    token_ids = np.random.default_rng(0).integers(6, CONFIG.vocabulary_size, (2, LENGTH)).astype("int32")
    padding_mask = (np.arange(LENGTH) < np.array(lengths)[:, None]).astype("int32")
    segment_ids = np.array([[0, 0, 0, 0, 1, 1, 1, 1, 2], [0, 0, 1, 1, 1, 2, 0, 0, 0]], "int32")
    token_ids = np.where(padding_mask == 1, token_ids, CONFIG.pad_id).astype("int32")
    return {
        **{"token_ids": token_ids, "segment_ids": segment_ids, "padding_mask": padding_mask},
        "mask_positions": POSITIONS,
    }


def model_of(seed=0, permuted=None, **options):
    permuted = {"seed": 3} if permuted is None else permuted
    model = kbi.Pretrainer(kbi.XLNetEncoder(CONFIG, **options), next_sentence=False, permuted=permuted)
    random = np.random.default_rng(seed)
    for weight in model.weights:
        if "seed" not in weight.path:
            weight.assign(random.normal(size=weight.shape, scale=0.3))
    return model


def drawn(model, rows):
    """What each token and, behind them, each query sees: bool (batch, length + predictions, length)."""
    names = ("mask_positions", "padding_mask", "segment_ids")
    found = model.get_layer("query_stream")(*(keras.ops.convert_to_tensor(rows[name]) for name in names))
    return keras.ops.convert_to_numpy(found["attention_mask"])[:, 0]


def of_transformers(model, rows, seen):
    """The logits of a transformers model whose queries see what ours do."""
    is_here = ((POSITIONS[..., None] == np.arange(LENGTH)) & IS_REAL[..., None]).astype("float32")
    hidden = 1 - seen[:, :LENGTH].astype("int64")  # a token also sees itself, which the mask of a query does not say
    for row, column in zip(*np.nonzero(IS_REAL), strict=True):
        hidden[row, POSITIONS[row, column]] = ~seen[row, LENGTH + column]
    return outputs_of(model, rows, perm_mask=hidden, target_mapping=is_here)["logits"]


@every_backend
@full_on("jax")
def test_logits_are_those_of_transformers_with_the_order_that_was_drawn(tmp_path):
    theirs = random_model("XLNetForMaskedLM", CONFIG, tmp_path / "theirs")
    rows = rows_of()
    model = kbi.Pretrainer(kbi.XLNetEncoder(CONFIG), next_sentence=False, permuted={"seed": 3})
    model.load_pretrained(tmp_path / "theirs")
    found, seen = model.predict_on_batch(rows)["masked_lm_logits"][IS_REAL], drawn(model, rows)
    expected = of_transformers(theirs, rows, seen)[IS_REAL]
    assert np.std(expected) > 0.1
    np.testing.assert_allclose(found, expected, atol=1e-5)
    model.save_pretrained(tmp_path / "ours")
    again = open_in_transformers("XLNetForMaskedLM", tmp_path / "ours")
    np.testing.assert_allclose(found, of_transformers(again, rows, seen)[IS_REAL], atol=1e-5)


def test_what_is_seen_by_hand():
    model, rows = model_of(), rows_of()
    seen = drawn(model, rows)
    of_queries = seen[0, LENGTH:][:, POSITIONS[0]]  # which predicted tokens
    ranks = of_queries.sum(1)
    assert sorted(ranks) == [0, 1, 2, 3] and not of_queries.diagonal().any()
    np.testing.assert_array_equal(of_queries, ranks[:, None] > ranks)
    others = np.setdiff1d(np.arange(LENGTH), POSITIONS[0])
    assert seen[0][:, others].all() and not seen[0][np.ix_(others, POSITIONS[0])].any()
    np.testing.assert_array_equal(seen[0][np.ix_(POSITIONS[0], POSITIONS[0])], ranks[:, None] >= ranks)
    assert not np.delete(seen[1][:, 6:], [6, 7, 8], axis=0).any() and seen[1, :LENGTH].diagonal().all()
    together = QueryStream(permuted=False)
    arrays = [keras.ops.convert_to_tensor(rows[name]) for name in ("mask_positions", "padding_mask", "segment_ids")]
    seen = keras.ops.convert_to_numpy(together(*arrays)["attention_mask"])[0, 0]
    assert not seen[LENGTH:, POSITIONS[0]].any() and seen[LENGTH:, others].all()
    masks = [keras.ops.convert_to_numpy(QueryStream(seed=1)(*arrays, training=True)["attention_mask"])]
    layer = QueryStream(seed=1)
    masks += [keras.ops.convert_to_numpy(layer(*arrays, training=True)["attention_mask"]) for _ in range(6)]
    np.testing.assert_array_equal(masks[0], masks[1])
    assert any((mask != masks[0]).any() for mask in masks[2:])


@every_backend
@full_on("jax")
def test_no_prediction_sees_its_token():
    model, rows = model_of(), rows_of()
    first, seen = model.predict_on_batch(rows)["masked_lm_logits"], drawn(model, rows)[0, LENGTH:]
    for column, position in enumerate(POSITIONS[0]):
        other = {**rows, "token_ids": rows["token_ids"].copy()}
        other["token_ids"][0, position] = 6 + (other["token_ids"][0, position] - 5) % 20
        changed = np.abs(model.predict_on_batch(other)["masked_lm_logits"] - first).max(-1)[0]
        np.testing.assert_array_equal(changed > 1e-6, seen[:, position])
        assert changed[column] == 0


def test_sequences_of_a_packed_row_are_rows_of_their_own():
    """With one prediction each, whose order cannot differ."""
    alone, packed = model_of(), model_of(packed=True)
    check_sequences_of_a_packed_row(alone, packed, rows_of((9, 9)))


@pytest.mark.parametrize("permuted", full_but([{"seed": 3}, None], {"seed": 3}))
def test_it_learns_and_is_saved_with_its_options(permuted, tmp_path):
    model, rows = kbi.Pretrainer(kbi.XLNetEncoder(CONFIG), next_sentence=False, permuted=permuted), rows_of()
    labels = {"mask_ids": np.take_along_axis(rows["token_ids"], POSITIONS, axis=1)}
    labels["mask_weights"] = IS_REAL.astype("float32")
    model.compile(optimizer=BertAdamW(3e-2), **QUICK_STEPS)
    before = keras.ops.convert_to_numpy(model.get_layer("query_start").weights[0]).copy()
    losses = [model.train_on_batch(rows, labels, return_dict=True)["masked_lm_loss"] for _ in range(12)]
    assert losses[-1] < losses[0] / 2
    assert np.abs(keras.ops.convert_to_numpy(model.get_layer("query_start").weights[0]) - before).max() > 1e-3
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(
        again.predict_on_batch(rows)["masked_lm_logits"], model.predict_on_batch(rows)["masked_lm_logits"], atol=1e-5
    )
    assert again.get_layer("query_start").trainable


def test_a_step_that_computes_blocks_twice_has_the_same_gradients():
    steps, rows = [], rows_of()
    labels = {"mask_ids": np.take_along_axis(rows["token_ids"], POSITIONS, axis=1)}
    labels["mask_weights"] = IS_REAL.astype("float32")
    for rematerialize in (False, True):
        config = kbi.XLNetConfig(**{**CONFIG.to_dict(), "hidden_dropout_rate": 0.0, "attention_dropout_rate": 0.0})
        keras.utils.set_random_seed(3)
        encoder = kbi.XLNetEncoder(config, rematerialize=rematerialize)
        model = kbi.Pretrainer(encoder, next_sentence=False, permuted={"seed": 3})
        model.compile(optimizer=keras.optimizers.SGD(1.0), **QUICK_STEPS)
        model.train_on_batch(rows, labels)
        steps.append([weight for weight in model.get_weights() if weight.dtype == "float32"])
    for one, other in zip(*steps, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
