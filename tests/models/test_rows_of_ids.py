"""The arrays of ids that models take: which ones, by their names, and which ids."""

import keras
import numpy as np
import pytest
from conftest import QUICK_STEPS, WORDS, without
from every_model import KINDS, MODELS, inputs_of

import keras_bert_impl as kbi
from keras_bert_impl.encoders.keras_methods import own_inputs

LABELS = np.array([0, 2], "int32")
# Names that sort before, between and behind those of the inputs.
MORE = {"idx": np.arange(2), "sentence": np.ones((2, 7), "int32"), "weight": np.ones((2, 3), "float32")}


def outputs(found):
    return [keras.ops.convert_to_numpy(array) for array in keras.tree.flatten(found)]


def assert_same(found, expected):
    for one, other in zip(outputs(found), outputs(expected), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_an_array_too_many_does_not_change_what_a_model_computes(kind, small_config, small_batch):
    model = MODELS[kind](kbi.BertEncoder(small_config))
    rows = inputs_of(kind, small_batch)
    assert_same(model({**rows, **MORE}), model(rows))


def test_an_array_too_many_does_not_change_predictions_figures_and_training(small_config, small_batch):
    rows = without(small_batch, "mask_positions")

    def figures(more):
        keras.utils.set_random_seed(1)
        model = kbi.TextClassifier(kbi.BertEncoder(small_config), 3, dropout_rate=0.0)
        model.compile("sgd", model.loss, **QUICK_STEPS)
        given = {**rows, **more}
        before = [model.predict(given, verbose=0), model.evaluate(given, LABELS, verbose=0)]
        history = model.fit(given, LABELS, validation_data=(given, LABELS), verbose=0).history
        return [*before, history["val_loss"], model.train_on_batch(given, LABELS)]

    assert_same(figures(MORE), figures({}))


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("input_ids", "input_ids is token_ids"),
        ("attention_mask", "attention_mask is padding_mask"),
        ("token_type_ids", "token_type_ids is segment_ids"),
        ("labels", "labels is the separate argument y"),
        ("position_ids", "position_ids is an input of an encoder with packed=True"),
    ],
)
def test_an_array_by_the_name_of_another_library_is_refused_with_its_name_here(name, told, small_config, small_batch):
    rows = {**without(small_batch, "mask_positions"), name: small_batch["padding_mask"]}
    model = kbi.TextClassifier(kbi.BertEncoder(small_config), 3)
    for call in (model, model.encoder, model.predict, lambda rows: model.fit(rows, LABELS)):
        with pytest.raises(ValueError, match=told):
            call(rows)


def test_a_missing_array_is_named(small_config, small_batch):
    encoder = kbi.BertEncoder(small_config)
    with pytest.raises(ValueError, match="lacks token_ids"):
        encoder({"idx": LABELS, **without(small_batch, "mask_positions", "token_ids")})


@pytest.mark.parametrize(("name", "id", "told"), [
    ("token_ids", -1, r"token_ids\[1\]\[2\] is -1, .* from 0 to 52"),
    ("token_ids", 53, r"token_ids\[1\]\[2\] is 53, .* from 0 to 52"),
    ("segment_ids", -1, r"segment_ids\[1\]\[2\] is -1"),
    ("mask_positions", 7, r"mask_positions\[1\]\[2\] is 7, .* from 0 to 6"),
])  # fmt: skip
def test_an_id_that_the_model_does_not_have_is_refused(name, id, told, small_config, small_batch):
    rows = {name: array.copy() for name, array in small_batch.items()}
    rows[name][1, 2] = id
    model = kbi.MaskedLM(kbi.BertEncoder(small_config))
    labels = np.zeros((2, 3), "int32")
    calls = (model, model.predict, model.predict_on_batch, lambda rows: model.fit(rows, labels))
    calls += (lambda rows: model.evaluate(rows, labels), lambda rows: model.train_on_batch(rows, labels))
    calls += (lambda rows: model.fit(small_batch, labels, validation_data=(rows, labels), verbose=0),)
    for call in calls:
        with pytest.raises(ValueError, match=told):
            call(rows)


def test_a_position_behind_the_table_is_refused(small_config, small_batch):
    rows = without(small_batch, "mask_positions")
    positions = np.tile(np.arange(7), (2, 1))
    rows |= {"position_ids": positions, "sequence_ids": np.ones_like(positions)}
    encoder = kbi.BertEncoder(small_config, packed=True)
    encoder.predict(rows, verbose=0)
    positions[1, 2] = small_config.max_length
    with pytest.raises(ValueError, match=rf"position_ids\[1\]\[2\] is {small_config.max_length}, .* from 0 to"):
        encoder.predict(rows, verbose=0)


def test_lists_of_ids_are_arrays(small_config, small_batch):
    rows = without(small_batch, "mask_positions")
    lists = {name: array.tolist() for name, array in rows.items()}
    model = kbi.TextClassifier(kbi.BertEncoder(small_config), 3)
    for call in (model, model.predict, model.predict_on_batch):
        assert_same(call(lists), call(rows))
    assert np.isfinite(model.fit(lists, LABELS, verbose=0).history["loss"][0])


def test_ids_that_are_divided_over_replicas_are_taken_as_they_are(small_config):
    """TensorFlow's values of several replicas have no shape that NumPy could tell."""
    model = kbi.TextClassifier(kbi.BertEncoder(small_config), 2)
    divided = {name: object() for name in model.input}
    assert own_inputs(model, divided) == divided


@pytest.mark.parametrize("texts", [["the cat sat"], ["the cat sat", "a dog ran in red rain", "is it bad ?"]])
def test_one_silent_batch_is_computed_without_keras_iterator_and_as_with_it(texts, monkeypatch):
    encoder = kbi.BertEncoder(kbi.BertConfig(len(WORDS), 8, 1, 2, 16, max_length=32))
    model = kbi.TextClassifier(encoder, 2, tokenizer=kbi.WordPieceTokenizer(WORDS))
    rows = model.rows(texts)
    expected = model.predict(texts, verbose=1), model.predict(rows, verbose=1)
    several = model.predict(texts * 2, batch_size=len(texts), verbose=0)
    monkeypatch.setattr(keras.Model, "predict", lambda *_, **__: pytest.fail("Keras' predict was called"))
    np.testing.assert_allclose(model.predict(texts, verbose=0), expected[0], atol=1e-6)
    np.testing.assert_allclose(model.predict(rows, verbose=0), expected[1], atol=1e-6)
    np.testing.assert_allclose(several[: len(texts)], expected[0], atol=1e-6)
