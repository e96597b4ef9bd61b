"""MPNet's masked and permuted words, against the two streams of microsoft/MPNet's code."""

import keras
import numpy as np
import pytest
from conftest import QUICK_STEPS
from families import CONFIGS
from reference_models import check_sequences_of_a_packed_row

import keras_bert_impl as kbi
from keras_bert_impl.layers import PermutedRows
from keras_bert_impl.optimization import BertAdamW

CONFIG = CONFIGS["MPNet"]
MASK = 4
OPTIONS = {"mask_id": MASK, "mask_token_rate": 0.6, "random_token_rate": 0.2, "seed": 3}
LENGTH, POSITIONS = 9, np.array([[2, 3, 5, 7], [1, 4, 0, 0]], "int32")


def rows_of(lengths=(9, 6)):
    token_ids = np.random.default_rng(0).integers(5, CONFIG.vocabulary_size, (2, LENGTH)).astype("int32")
    padding_mask = (np.arange(LENGTH) < np.array(lengths)[:, None]).astype("int32")
    return {
        "token_ids": np.where(padding_mask == 1, token_ids, CONFIG.pad_id).astype("int32"),
        "segment_ids": np.zeros((2, LENGTH), "int32"),
        "padding_mask": padding_mask,
        "mask_positions": POSITIONS,
    }


def model_of(seed=0, **options):
    model = kbi.Pretrainer(kbi.MPNetEncoder(CONFIG, **options), next_sentence=False, permuted=OPTIONS)
    random = np.random.default_rng(seed)
    for weight in model.weights:
        if "seed" not in weight.path:
            weight.assign(random.normal(size=weight.shape, scale=0.3))
    return model


def drawn(model, rows):
    """Of the rows the masked forms (batch, predictions), and the rank of each prediction in its order."""
    arrays = [keras.ops.convert_to_tensor(rows[name]) for name in ("token_ids", "mask_positions", "padding_mask")]
    found = {name: keras.ops.convert_to_numpy(x) for name, x in model.get_layer("permuted_rows")(*arrays).items()}
    count = rows["mask_positions"].shape[1]
    seen = found["attention_mask"][:, 0, -count:, :LENGTH]  # of each query, which tokens
    of_predictions = np.take_along_axis(seen, rows["mask_positions"][:, None, :].repeat(count, 1), axis=2)
    is_real = rows["mask_positions"] > 0
    return found["token_ids"][:, -count:], (of_predictions & is_real[:, None]).sum(-1)


def two_streams(encoder, token_ids, positions, masked):
    """The vectors of the queries of one row without padding, its tokens in the order `positions` at the end, as
    `compute_mpnet` of microsoft/MPNet computes them."""
    torch = pytest.importorskip("torch")
    bucket_of = pytest.importorskip("transformers.models.mpnet.modeling_mpnet").MPNetEncoder.relative_position_bucket
    weights = {w.path.removeprefix(f"{encoder.name}/"): torch.tensor(keras.ops.convert_to_numpy(w)).double()
               for w in encoder.weights}  # fmt: skip
    length, count = len(token_ids), len(positions)
    rest = [place for place in range(length) if place not in set(positions)]
    places = torch.tensor([*rest, *positions, *positions, *positions])
    tokens = torch.tensor([*token_ids[rest], *token_ids[positions], *masked, *masked])

    def norm(x, name):
        return torch.nn.functional.layer_norm(
            x, x.shape[-1:], weights[f"{name}/gamma"], weights[f"{name}/beta"], CONFIG.layer_norm_epsilon
        )

    def dense(x, name):
        return x @ weights[f"{name}/kernel"] + weights[f"{name}/bias"]

    hidden = weights["token_embedding/embeddings"][tokens]
    hidden = norm(hidden + weights["position_embedding/embeddings"][places + CONFIG.pad_id + 1], "embeddings_norm")
    content, query = hidden[: length + count], hidden[length + count :]
    before = torch.ones(count, count).tril(-1)  # tokens before each in the order
    ones, zeros = torch.ones(count, length - count), torch.zeros(count, count)
    query_mask = torch.cat([ones, before, 1 - before], dim=1)
    of_tokens = torch.cat([torch.zeros(length - count, count), torch.ones(count, count).tril(0), zeros])
    content_mask = torch.cat([torch.ones(length + count, length - count), of_tokens, 1 - of_tokens], dim=1)
    where = places[: length + count]
    buckets = bucket_of(where[None, :] - where[:, None], num_buckets=32)
    bias = weights["relative_positions/embeddings"][buckets].permute(2, 0, 1)  # (heads, queries, keys)
    heads = CONFIG.num_heads

    def split(x):
        return x.unflatten(-1, (heads, -1)).transpose(0, 1)

    def stream(x, keys, values, mask, bias, block):
        queries = split(dense(x, f"{block}/attention/query_key_value")[:, : x.shape[-1]])
        scores = queries @ keys.transpose(1, 2) / queries.shape[-1] ** 0.5 + bias
        probabilities = scores.masked_fill(mask[None] == 0, -torch.inf).softmax(-1)
        mixed = (probabilities @ values).transpose(0, 1).flatten(-2)
        x = norm(x + dense(mixed, f"{block}/attention/output"), f"{block}/attention_norm")
        inner = torch.nn.functional.gelu(dense(x, f"{block}/intermediate"))
        return norm(x + dense(inner, f"{block}/output"), f"{block}/output_norm")

    for number in range(CONFIG.num_layers):
        block = f"block_{number}"
        _, keys, values = dense(content, f"{block}/attention/query_key_value").chunk(3, dim=-1)
        keys, values = split(keys), split(values)
        of_queries = bias[:, -count:]  # the masked forms stand at the places of the queries
        content, query = (
            stream(content, keys, values, content_mask, bias, block),
            stream(query, keys, values, query_mask, of_queries, block),
        )
    return query.numpy()


def test_the_states_are_those_of_microsoft_s_two_streams():
    model, rows = model_of(), rows_of()
    masked, ranks = drawn(model, rows)
    assert sorted(ranks[0]) == [0, 1, 2, 3] and sorted(ranks[1, :2]) == [0, 1]
    states = keras.Model(model.input, model.get_layer("masked_lm_head").input[0])
    found = keras.ops.convert_to_numpy(states(rows))[:, -POSITIONS.shape[1] :]
    for row, (length, count) in enumerate(((9, 4), (6, 2))):
        order = np.argsort(ranks[row, :count])
        expected = two_streams(
            model.encoder, rows["token_ids"][row, :length], POSITIONS[row, order], masked[row, order]
        )
        np.testing.assert_allclose(found[row, order], expected, atol=1e-5)


def test_no_prediction_sees_its_token_and_orders_differ_while_training():
    model, rows = model_of(), rows_of()
    expected = model.predict_on_batch(rows)["masked_lm_logits"]
    kept = {**OPTIONS, "mask_token_rate": 1.0, "random_token_rate": 0.0}
    model = kbi.Pretrainer(model.encoder, next_sentence=False, permuted=kept)
    for weight in model.get_layer("masked_lm_head").weights:
        weight.assign(np.random.default_rng(len(weight.path)).normal(size=weight.shape, scale=0.3))
    first = model.predict_on_batch(rows)["masked_lm_logits"]
    assert not np.allclose(first, expected)
    _, ranks = drawn(model, rows)
    last = POSITIONS[0, np.argmax(ranks[0])]
    other = {**rows, "token_ids": rows["token_ids"].copy()}
    other["token_ids"][0, last] = 5 + (other["token_ids"][0, last] - 4) % 20
    changed = np.abs(model.predict_on_batch(other)["masked_lm_logits"] - first).max(-1)[0]
    np.testing.assert_array_equal(changed > 1e-6, np.zeros(4, bool))  # it is the last, which no query sees
    other["token_ids"][0, POSITIONS[0, np.argmin(ranks[0])]] += 1
    changed = np.abs(model.predict_on_batch(other)["masked_lm_logits"] - first).max(-1)[0]
    np.testing.assert_array_equal(changed > 1e-6, ranks[0] > 0)

    layer = PermutedRows(MASK, 20, seed=1)
    arrays = [keras.ops.convert_to_tensor(rows[name]) for name in ("token_ids", "mask_positions", "padding_mask")]
    masks = [keras.ops.convert_to_numpy(layer(*arrays, training=True)["attention_mask"]) for _ in range(6)]
    assert any((mask != masks[0]).any() for mask in masks[1:])


def test_shares_of_masked_forms_are_the_rates():
    layer = PermutedRows(MASK, 1000, mask_token_rate=0.7, random_token_rate=0.2, seed=0)
    token_ids, positions = np.full((50, 201), 999, "int32"), np.tile(np.arange(1, 201, dtype="int32"), (50, 1))
    found = layer(token_ids, positions, np.ones_like(token_ids), training=True)
    masked = keras.ops.convert_to_numpy(found["token_ids"])[:, 201:401]
    assert np.mean(masked == MASK) == pytest.approx(0.7, abs=0.02)
    assert np.mean(masked == 999) == pytest.approx(0.1, abs=0.02)
    np.testing.assert_array_equal(keras.ops.convert_to_numpy(found["token_ids"])[:, 401:], masked)


def test_sequences_of_a_packed_row_are_rows_of_their_own():
    """With one prediction each, whose order cannot differ, and all masked."""
    options = {**OPTIONS, "mask_token_rate": 1.0, "random_token_rate": 0.0}
    alone, packed = (
        kbi.Pretrainer(kbi.MPNetEncoder(CONFIG, packed=is_packed), next_sentence=False, permuted=options)
        for is_packed in (False, True)
    )
    random = np.random.default_rng(0)
    weights = [w for w in packed.weights if "seed" not in w.path]
    for weight, same in zip(weights, [w for w in alone.weights if "seed" not in w.path], strict=True):
        values = random.normal(size=weight.shape, scale=0.3)
        weight.assign(values), same.assign(values)
    check_sequences_of_a_packed_row(alone, packed, rows_of((9, 9)))


def test_it_learns_and_is_saved_with_its_options(tmp_path):
    model, rows = model_of(), rows_of()
    labels = {"mask_ids": np.take_along_axis(rows["token_ids"], POSITIONS, axis=1)}
    labels["mask_weights"] = (POSITIONS > 0).astype("float32")
    model.compile(optimizer=BertAdamW(3e-2), **QUICK_STEPS)
    losses = [model.train_on_batch(rows, labels, return_dict=True)["masked_lm_loss"] for _ in range(12)]
    assert losses[-1] < losses[0] / 2
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(
        again.predict_on_batch(rows)["masked_lm_logits"], model.predict_on_batch(rows)["masked_lm_logits"], atol=1e-5
    )
