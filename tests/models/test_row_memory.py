"""An XLNet that remembers the rows of the batch before, against the `mems` of transformers."""

import dataclasses
import warnings

import keras
import numpy as np
import pytest
from conftest import QUICK_STEPS
from families import CONFIGS
from reference_models import random_model
from tiers import every_backend, full_but, full_on

import keras_bert_impl as kbi
from keras_bert_impl.layers import QueryStream, RowMemory
from keras_bert_impl.optimization import BertAdamW

LENGTH, HALF, ROWS = 10, 5, 4
CONFIG = dataclasses.replace(CONFIGS["XLNet"], memory_length=7, reused_length=HALF)
POSITIONS = np.array([[1, 3, 5, 7], [0, 4, 6, 0], [2, 3, 8, 9], [4, 6, 7, 8]], "int32")
IS_REAL = (POSITIONS > 0) | (np.arange(4) == 0)


def rows_of(step, continues=1):
    """Full rows of two segments and <cls>; other tokens at each step."""
    random = np.random.default_rng(step)
    segment_ids = np.tile(np.array([0] * 7 + [1, 1, 2], "int32"), (ROWS, 1))
    return {
        "token_ids": random.integers(6, CONFIG.vocabulary_size, (ROWS, LENGTH)).astype("int32"),
        "segment_ids": segment_ids,
        "padding_mask": np.ones((ROWS, LENGTH), "int32"),
        "mask_positions": POSITIONS,
        "continues": np.full(ROWS, continues if step else 0, "int32"),
    }


def labels_of(rows):
    labels = {"mask_ids": np.take_along_axis(rows["token_ids"], POSITIONS, axis=1)}
    return {**labels, "mask_weights": IS_REAL.astype("float32")}


def model_of(checkpoint=None, config=CONFIG, rows=ROWS, bi_data=False, halves=True, **options):
    permuted = {"seed": 3, "halves": halves, "bi_data": bi_data, "memory_rows": rows}
    model = kbi.Pretrainer(kbi.XLNetEncoder(config, **options), next_sentence=False, permuted=permuted)
    if checkpoint is not None:
        model.load_pretrained(checkpoint)
    return model


def without_dropout(config):
    return dataclasses.replace(config, hidden_dropout_rate=0.0, attention_dropout_rate=0.0)


def mask_of(rows, halves=True):
    """What tokens and queries see in evaluation without a memory: bool (batch, length + predictions, length)."""
    names = ("mask_positions", "padding_mask", "segment_ids")
    found = QueryStream(seed=3, halves=halves)(*(keras.ops.convert_to_tensor(rows[name]) for name in names))
    return keras.ops.convert_to_numpy(found["attention_mask"])[:, 0]


def of_transformers(model, rows, mems, order=(0, 1, 2, 3)):
    """The logits and new mems of a transformers model whose queries see what ours do; `order` is that of its rows."""
    import torch

    order, seen = list(order), mask_of(rows)
    is_here = (POSITIONS[..., None] == np.arange(LENGTH)) & IS_REAL[..., None]
    hidden = 1 - seen[:, :LENGTH].astype("float32")  # a token also sees itself, which the mask of a query does not say
    for row, column in zip(*np.nonzero(IS_REAL), strict=True):
        hidden[row, POSITIONS[row, column]] = ~seen[row, LENGTH + column]
    found = model(
        input_ids=torch.as_tensor(rows["token_ids"][order]).long(),
        token_type_ids=torch.as_tensor(rows["segment_ids"][order]).long(),
        perm_mask=torch.as_tensor(hidden[order]),
        target_mapping=torch.as_tensor(is_here[order].astype("float32")),
        mems=mems,
        use_mems=True,
    )
    logits = np.empty(found.logits.shape, "float32")
    logits[order] = found.logits.detach().numpy()
    return logits, found.mems, found.logits


@every_backend
@pytest.mark.parametrize("bi_data", full_but([False, True], True, on=("jax",)))
def test_three_steps_are_those_of_transformers_with_its_mems(bi_data, tmp_path):
    theirs = random_model("XLNetForMaskedLM", CONFIG, tmp_path)
    theirs.transformer.bi_data = bi_data
    # Every second row is read backwards here, the second half of a batch there.
    order = np.array([0, 2, 1, 3]) if bi_data else np.arange(ROWS)
    model, mems = model_of(tmp_path, bi_data=bi_data), None
    alone = model_of(tmp_path, bi_data=bi_data)
    for step in range(3):
        rows = rows_of(step)
        logits, mems, _ = of_transformers(theirs, rows, mems, order)
        found = model.predict_on_batch(rows)["masked_lm_logits"]
        np.testing.assert_allclose(found[IS_REAL], logits[IS_REAL], atol=1e-5)
        first = alone.predict_on_batch({**rows, "continues": 0 * rows["continues"]})["masked_lm_logits"]
        assert (np.abs(first - found)[IS_REAL].max() > 1e-2) == (step > 0)  # the memory counts
    kept = keras.ops.convert_to_numpy(model.row_memory.evaluation_states)
    for layer, states in enumerate(mems):
        np.testing.assert_allclose(kept[order, layer], states.numpy().swapaxes(0, 1), atol=1e-5)


@every_backend
def test_training_steps_have_the_losses_and_gradients_of_transformers(tmp_path):
    """No gradient goes through the memory: theirs is cut off from the step before, too."""
    import torch

    config = without_dropout(CONFIG)
    theirs, mems = random_model("XLNetForMaskedLM", config, tmp_path), None
    model = model_of(tmp_path, config)
    model.get_layer("query_stream").call = evaluated(model.get_layer("query_stream").call)  # of the orders drawn there
    model.compile(optimizer=keras.optimizers.SGD(0.0), **QUICK_STEPS)
    before = {weight.path: keras.ops.convert_to_numpy(weight) for weight in model.trainable_weights}
    for step in range(3):
        rows = rows_of(step)
        _, mems, logits = of_transformers(theirs, rows, mems)
        labels = torch.as_tensor(labels_of(rows)["mask_ids"]).long()
        loss = torch.nn.functional.cross_entropy(logits[torch.as_tensor(IS_REAL)], labels[torch.as_tensor(IS_REAL)])
        if step == 2:
            model.optimizer.learning_rate.assign(1.0)
        model.reset_metrics()
        found = model.train_on_batch(rows, labels_of(rows), return_dict=True)["masked_lm_loss"]
        np.testing.assert_allclose(float(found), loss.item(), atol=1e-5)
    loss.backward()
    with torch.no_grad():
        for weight in theirs.parameters():
            weight -= weight.grad if weight.grad is not None else 0.0
    theirs.save_pretrained(tmp_path / "after")
    expected = model_of(tmp_path / "after", config)
    for one, other in zip(model.trainable_weights, expected.trainable_weights, strict=True):
        one, other = map(keras.ops.convert_to_numpy, (one, other))
        np.testing.assert_allclose(one, other, atol=2e-5)
    changes = [
        np.abs(keras.ops.convert_to_numpy(weight) - before[weight.path]).max() for weight in model.trainable_weights
    ]
    assert min(changes) > 1e-6


def evaluated(call):
    """A layer's call as in evaluation, whose orders do not differ from step to step."""
    return lambda *arguments, **options: call(*arguments, **{**options, "training": False})


@every_backend
def test_each_row_forgets_alone_and_evaluation_has_a_memory_of_its_own():
    layer = RowMemory(3, depth=1, length=4, width=2, reused_length=3)
    ones = np.ones(3, "int32")

    def step(value, continues, training, tokens=3):
        continues = keras.ops.convert_to_tensor(continues)
        found = layer(continues, training=training)
        # Of five tokens and two queries behind them, or of one token.
        length = 5 if tokens == 3 else tokens
        states = np.full((len(continues), length + 2, 2), -1.0, "float32")
        states[:, :tokens] = value
        states, token_ids = map(keras.ops.convert_to_tensor, (states, np.zeros((len(continues), length), "int32")))
        assert layer(continues, outputs=states, states=[states], token_ids=token_ids, training=training) is not None
        return keras.ops.convert_to_numpy(found["states"])[:, 0, :, 0], keras.ops.convert_to_numpy(found["is_filled"])

    states, is_filled = step(1, ones, True)
    assert not is_filled.any() and not states.any()
    states, is_filled = step(9, ones, False)
    assert not is_filled.any()
    states, is_filled = step(2, np.array([1, 0, 1], "int32"), True)
    assert is_filled.tolist() == [[False, True, True, True], [False] * 4, [False, True, True, True]]
    assert states.tolist() == [[0, 1, 1, 1], [0] * 4, [0, 1, 1, 1]]
    states, is_filled = step(3, ones, True)
    assert states.tolist() == [[1, 2, 2, 2], [0, 2, 2, 2], [1, 2, 2, 2]]
    # An evaluation may have fewer rows, and leaves those of the others alone.
    states, _ = step(8, ones[:2], False, tokens=1)
    assert states.tolist() == [[0, 9, 9, 9]] * 2
    states, _ = step(7, ones, False)
    assert states.tolist() == [[9, 9, 9, 8], [9, 9, 9, 8], [0, 9, 9, 9]]
    with pytest.raises(ValueError, match="A batch of 4 rows has no place in the memory of 3"):
        layer(np.ones(4, "int32"))


def test_the_first_half_of_a_row_sees_nothing_of_the_second():
    """What is remembered would otherwise hold the text of the next row."""
    model = model_of()
    random = np.random.default_rng(0)
    for weight in model.trainable_weights:
        weight.assign(random.normal(size=weight.shape, scale=0.3))
    kept = []
    for change in (0, 1):
        rows = rows_of(0)
        rows["token_ids"][:, HALF:] = 6 + (rows["token_ids"][:, HALF:] - 6 + change) % 20
        logits = model.predict_on_batch(rows)["masked_lm_logits"]
        kept.append((keras.ops.convert_to_numpy(model.row_memory.evaluation_states), logits))
    np.testing.assert_array_equal(kept[0][0], kept[1][0])
    in_first = IS_REAL & (POSITIONS < HALF)
    np.testing.assert_allclose(kept[0][1][in_first], kept[1][1][in_first], atol=1e-6)
    assert np.abs(kept[0][1] - kept[1][1])[IS_REAL & (POSITIONS >= HALF)].max() > 1e-3


def test_each_half_has_an_order_of_its_own_by_hand():
    rows = rows_of(0)
    seen = mask_of(rows)[0]
    queries, places = seen[LENGTH:], POSITIONS[0]  # 1, 3 | 5, 7
    assert sorted(queries[:2, places[:2]].sum(1)) == sorted(queries[2:, places[2:]].sum(1)) == [0, 1]
    assert not queries[:2, HALF:].any()
    assert queries[2:, :HALF].all()  # also the words that are predicted in the first half
    others = np.setdiff1d(np.arange(LENGTH), places)
    assert queries[:, others[others < HALF]].all() and queries[2:, others].all()
    tokens = seen[:LENGTH]
    assert not tokens[:HALF, HALF:].any() and tokens[HALF:, :HALF].all() and tokens.diagonal().all()


@every_backend
@full_on("tensorflow")
@pytest.mark.parametrize("policy", full_but(["float32", "mixed_bfloat16"], "mixed_bfloat16"))
def test_it_learns_and_is_saved_with_and_without_its_memory(policy, tmp_path):
    model = model_of(dtype=keras.dtype_policies.get(policy), bi_data=True, rematerialize=policy == "float32")
    model.compile(optimizer=BertAdamW(1e-2), **QUICK_STEPS)
    losses = []
    for step in range(30):
        rows = rows_of(step % 2)
        losses.append(float(model.train_on_batch(rows, labels_of(rows), return_dict=True)["masked_lm_loss"]))
    assert losses[-1] < losses[0]
    kept = keras.ops.convert_to_numpy(model.row_memory.training_states)
    assert np.abs(kept).max() > 0.1 and not keras.ops.convert_to_numpy(model.row_memory.evaluation_states).any()
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(keras.ops.convert_to_numpy(again.row_memory.training_states), kept)
    model.save_pretrained(tmp_path / "encoder")
    found = kbi.XLNetEncoder.from_pretrained(tmp_path / "encoder")
    assert (found.config.memory_length, found.config.reused_length) == (7, HALF)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # also about a memory that the file does not have
        again.load_pretrained(tmp_path / "encoder")


def test_a_memory_that_cannot_be_is_refused():
    with pytest.raises(ValueError, match="memory_rows needs a configuration with memory_length"):
        model_of(config=dataclasses.replace(CONFIG, memory_length=None))
    with pytest.raises(ValueError, match="Packed rows have no memory of the batch before"):
        model_of(packed=True)


def test_the_arithmetic_counts_the_memory():
    config = kbi.XLNetConfig.from_name("xlnet_tiny", vocabulary_size=100, memory_length=64, reused_length=32)
    permuted = {"seed": 0, "halves": True}
    plain = kbi.Pretrainer(kbi.XLNetEncoder(config), next_sentence=False, permuted=permuted)
    with_memory = kbi.Pretrainer(kbi.XLNetEncoder(config), next_sentence=False, permuted={**permuted, "memory_rows": 2})
    one, other = (model.training_flops(2, 64, 10) for model in (plain, with_memory))
    width, queries = 128, 74
    more = 2 * 64 * 3 * width**2 + (4 + 2) * 64 * queries * width  # of a layer and a row
    assert other - one == 3 * 2 * 2 * more
