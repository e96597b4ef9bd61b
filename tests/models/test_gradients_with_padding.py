"""Gradients of every head where rows have padding, some of which sees no token."""

import dataclasses

import keras
import numpy as np
import pytest
from conftest import QUICK_STEPS
from every_model import WITHOUT_DROPOUT
from families import CONFIGS, FAMILIES, encoder_of, rows_for
from keras import ops
from tiers import full_but

import keras_bert_impl as kbi
from keras_bert_impl.kernels import attention


def with_a_loss_over_padding(encoder, **_):
    """A loss of a user's own over all states."""
    model = keras.Model(encoder.input, encoder.output["sequence_output"])
    model.compile(loss=lambda wanted, states: ops.mean((states - wanted) ** 2))
    return model


HEADS = {
    "states": with_a_loss_over_padding,
    "text_classifier": lambda encoder: kbi.TextClassifier(encoder, 3, dropout_rate=0.0),
    "token_classifier": lambda encoder: kbi.TokenClassifier(encoder, 4, dropout_rate=0.0),
    "question_answerer": kbi.QuestionAnswerer,
    "text_regressor": lambda encoder: kbi.TextRegressor(encoder, dropout_rate=0.0),
    "multiple_choice": lambda encoder: kbi.MultipleChoice(encoder, dropout_rate=0.0),
    "masked_lm": kbi.MaskedLM,
}
CASES = [(name, kind) for name in CONFIGS if name in FAMILIES or "ModernBert" in name for kind in HEADS]
# In rows of seven tokens, the window of the first ModernBERT is computed by blocks, that of the second is not.
WINDOWS = ("ModernBert", "ModernBert, three of four layers see a window")
QUICK = [(WINDOWS[0], "states"), (WINDOWS[1], "question_answerer"), ("DebertaV2", "question_answerer")]


def data_of(kind, config, batch):
    """Inputs and labels of two rows of seven tokens, four of which are padding in the second."""
    random, tokens = np.random.default_rng(0), np.array([7, 3])
    padding = (np.arange(7) >= tokens[:, None]).astype("int32")
    rows = rows_for(config, {**batch, "padding_mask": 1 - padding})
    first = (7 - tokens) * encoder_of(config).cls_is_last  # a row of XLNet's begins with its padding
    if kind == "multiple_choice":
        return {name: np.stack([array, array[::-1]], axis=1) for name, array in rows.items()}, np.array([1, 0])
    if kind == "masked_lm":
        rows["mask_positions"] = np.array([[1, 3, 6], [1, 2, 0]], "int32") + first[:, None].astype("int32")
    return rows, {
        "states": random.normal(size=(2, 7, config.hidden_size)).astype("float32"),
        "text_classifier": np.array([2, 0]),
        "token_classifier": np.where(rows["padding_mask"] == 1, random.integers(0, 4, (2, 7)), -1),
        "question_answerer": np.array([[4, 6], [0, 0]]) + first[:, None],  # where a BigBird may find them
        "text_regressor": np.array([0.5, 3.0], "float32"),
        "masked_lm": random.integers(5, 53, (2, 3)),
    }[kind]


def without_dropout(name, **changes):
    return dataclasses.replace(CONFIGS[name], **WITHOUT_DROPOUT, **changes)


def gradients_of(model, rows, labels):
    """By name of a weight; the model keeps its weights."""
    before = [ops.convert_to_numpy(weight).copy() for weight in model.trainable_weights]
    model.train_on_batch(rows, labels)
    found = {
        weight.path: old - ops.convert_to_numpy(weight)
        for weight, old in zip(model.trainable_weights, before, strict=True)
    }
    move(model, before)
    return found


def move(model, values):
    for weight, value in zip(model.trainable_weights, values, strict=True):
        weight.assign(value)


@pytest.mark.parametrize(("name", "kind"), full_but(CASES, *QUICK))
def test_gradients_are_finite_differences_and_those_of_the_plain_form(name, kind, small_batch, monkeypatch):
    config = without_dropout(name)
    keras.utils.set_random_seed(3)
    model = HEADS[kind](encoder_of(config)(config))
    model.compile(optimizer=keras.optimizers.SGD(1.0), loss=model.loss, **QUICK_STEPS)
    weights = [ops.convert_to_numpy(weight).copy() for weight in model.trainable_weights]
    move(model, weights := [array * 10 if array.ndim > 1 else array for array in weights])
    rows, labels = data_of(kind, config, small_batch)
    found = gradients_of(model, rows, labels)

    size = np.sqrt(sum(np.sum(array**2) for array in found.values()))
    losses, step = [], 0.01 / size**2  # which changes the loss by 0.01 on either side
    for sign in (-step, step):
        move(model, [array + sign * of_weight for array, of_weight in zip(weights, found.values(), strict=True)])
        losses.append(np.ravel(model.test_on_batch(rows, labels))[0])
    assert (losses[1] - losses[0]) / (2 * step * size**2) == pytest.approx(1, abs=0.01)

    move(model, weights)
    monkeypatch.setattr(attention, "form_for", lambda inputs: attention.by_ops)
    model.compile(optimizer=keras.optimizers.SGD(1.0), loss=model.loss, **QUICK_STEPS)
    for path, expected in gradients_of(model, rows, labels).items():
        np.testing.assert_allclose(found[path], expected, atol=1e-5 * max(1, size), err_msg=path)


@pytest.mark.parametrize("name", full_but(FAMILIES, "Bert", "ModernBert"))
def test_loss_and_gradients_of_answers_do_not_depend_on_how_far_rows_are_padded(name):
    # A BigBird's tokens see others in rows of another number of blocks, where these are not seen as a whole.
    config = without_dropout(name, max_length=200, **({"block_size": 64} if name == "BigBird" else {}))
    tokens = np.array([[20], [13]])
    keras.utils.set_random_seed(3)
    model = kbi.QuestionAnswerer(encoder_of(config)(config))
    model.compile(optimizer=keras.optimizers.SGD(1.0), loss=model.loss, **QUICK_STEPS)
    move(model, [ops.convert_to_numpy(weight) * (10 if weight.ndim > 1 else 1) for weight in model.trainable_weights])
    ids, found = np.random.default_rng(0).integers(6, 53, (2, 20)), []
    for length in (20, 32, 64, 200):
        places, first = np.arange(length), (length - tokens) * encoder_of(config).cls_is_last
        mask = (places >= first) & (places < first + tokens)
        rows = {"token_ids": np.full((2, length), config.pad_id), "segment_ids": np.zeros((2, length))}
        for row, of_row in enumerate(mask):
            rows["token_ids"][row, of_row] = ids[row, : of_row.sum()]
        rows = {name: array.astype("int32") for name, array in {**rows, "padding_mask": mask}.items()}
        labels = np.array([[5, 7], [0, 12]]) + first
        found.append({"loss": np.ravel(model.test_on_batch(rows, labels))[0], **gradients_of(model, rows, labels)})
    for other in found[1:]:
        for what, expected in found[0].items():
            np.testing.assert_allclose(other[what], expected, atol=1e-5, err_msg=what)
