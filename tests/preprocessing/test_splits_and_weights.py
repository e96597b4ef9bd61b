"""`validation_split` and `class_weight` for texts, in all forms of them."""

import functools

import keras
import numpy as np
import pytest
from conftest import QUICK_STEPS, revealing_config
from sklearn.utils.class_weight import compute_sample_weight

import keras_bert_impl as kbi
from keras_bert_impl.preprocessing.splits_and_weights import split_rows, weights_by_number

TEXTS = ["the cat is good", "the dog is bad", "a good mat", "bad rain", "red cats sat"]
SECOND = ["sat", "ran on", "is blue", "good", "in rain"]
LABELS = [1, 0, 1, 0, 2]
NAMES = ["bad", "good", "neither"]


@pytest.fixture
def make(small_tokenizer):
    config = revealing_config(small_tokenizer, max_length=16)

    def build(kind, *arguments, **more):
        model = kind(kbi.BertEncoder(config), *arguments, tokenizer=small_tokenizer, **more)
        loss = model.loss if model.compiled else None
        model.compile(optimizer=keras.optimizers.SGD(0.1), loss=loss, **QUICK_STEPS)
        return model

    return build


@pytest.fixture
def model(make):
    return make(kbi.TextClassifier, 3, class_names=NAMES)


def loss_of(model, *data, **arguments):
    return np.ravel(model.evaluate(*data, verbose=0, **arguments))[0]


def test_the_last_texts_are_for_validation_as_keras_splits_arrays(model):
    rows, weights = model.rows(TEXTS), np.array([1, 2, 3, 4, 5.0])
    before = model.get_weights()
    losses = {}
    for name, x, y in (("texts", TEXTS, LABELS), ("ids", rows, np.array(LABELS))):
        model.set_weights(before)
        history = model.fit(x, y, sample_weight=weights, validation_split=0.4, batch_size=5, shuffle=False, verbose=0)
        losses[name] = history.history["loss"] + history.history["val_loss"]
    np.testing.assert_allclose(losses["texts"], losses["ids"], rtol=1e-5)
    expected = loss_of(model, TEXTS[3:], LABELS[3:], sample_weight=weights[3:])
    np.testing.assert_allclose(losses["texts"][1], expected, rtol=1e-5)


@pytest.mark.parametrize("share", [0.4, 0.7])
def test_every_row_is_in_one_part_and_none_in_both(share):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"label": LABELS}, index=[9, 8, 7, 6, 5])
    parts = ((tuple(TEXTS), TEXTS), {"a": np.arange(5)}, frame)
    (train, test), kept = split_rows(parts, share), {0.4: 3, 0.7: 1}[share]
    for part, rows in ((train, slice(kept)), (test, slice(kept, None))):
        (first, second), labels, weights = part
        assert list(first) == second == TEXTS[rows] and labels["a"].tolist() == list(range(5))[rows]
        assert weights["label"].tolist() == LABELS[rows]


def test_pairs_and_unlabelled_texts_are_split(make, model):
    history = model.fit((TEXTS, SECOND), LABELS, validation_split=0.4, verbose=0).history
    expected = loss_of(model, (TEXTS[3:], SECOND[3:]), LABELS[3:])
    np.testing.assert_allclose(history["val_loss"], [expected], rtol=1e-5)
    lm = make(kbi.MaskedLM)
    history = lm.fit(TEXTS, validation_split=0.4, verbose=0).history
    np.testing.assert_allclose(history["val_loss"], [loss_of(lm, TEXTS[3:])], rtol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"validation_split": 0.9, "y": LABELS[:2], "x": TEXTS[:2]}, "of 2 texts leaves none for training or for val"),
        ({"validation_split": 0.5, "y": LABELS[:4]}, "labels have shape"),
    ],
)
def test_a_split_that_cannot_be_made_is_refused(arguments, message, model):
    arguments = {"x": TEXTS, "y": LABELS, **arguments}
    with pytest.raises(ValueError, match=message):
        model.fit(**arguments, verbose=0)


@pytest.mark.parametrize("keys", [NAMES, [np.int64(0), "good", 2]], ids=["names", "both"])
def test_the_weight_of_a_class_is_that_of_its_texts(keys, model):
    class_weight = dict(zip(keys, [0.5, 2.0, 3.0], strict=True))
    weights = [2.0, 0.5, 2.0, 0.5, 3.0]
    expected = loss_of(model, TEXTS, LABELS, sample_weight=weights)
    model.optimizer.learning_rate = 0.0
    for labels in (LABELS, [NAMES[label] for label in LABELS]):
        history = model.fit(TEXTS, labels, class_weight=class_weight, verbose=0).history
        np.testing.assert_allclose(history["loss"], [expected], rtol=1e-5)
    rows = model.fit(model.rows(TEXTS), np.array(LABELS), class_weight=class_weight, verbose=0).history
    np.testing.assert_allclose(rows["loss"], [expected], rtol=1e-5)


def test_the_weight_of_a_class_holds_for_batches_of_texts(model):
    torch = pytest.importorskip("torch")
    model.optimizer.learning_rate = 0.0
    loader = torch.utils.data.DataLoader(list(zip(TEXTS, LABELS, strict=True)), batch_size=5)
    expected = loss_of(model, TEXTS, LABELS, sample_weight=[1, 4.0, 1, 4.0, 1])
    history = model.fit(loader, class_weight={"bad": 4.0}, verbose=0).history
    np.testing.assert_allclose(history["loss"], [expected], rtol=1e-5)


@pytest.mark.parametrize(
    ("class_weight", "message"),
    [
        ({"ugly": 2.0}, "class_weight is 'ugly', which is not one of the classes bad, good, neither"),
        ({3: 2.0}, "class_weight is 3, which is not one of the classes"),
        ({"bad": float("nan")}, "is nan, expected a finite number of at least 0"),
    ],
)
def test_a_weight_of_an_unknown_class_or_one_that_would_spoil_the_model_is_refused(class_weight, message, model):
    with pytest.raises(ValueError, match=message):
        model.fit(TEXTS, LABELS, class_weight=class_weight, verbose=0)


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [(kbi.TextClassifier, {"num_classes": 3, "multi_label": True}), (kbi.TextRegressor, {}), (kbi.TextEmbedder, {})],
)
def test_a_model_whose_texts_have_not_one_class_refuses_class_weights(kind, arguments, make):
    with pytest.raises(ValueError, match=f"{kind.__name__} has several or none: use sample_weight instead"):
        weights_by_number({0: 2.0}, make(kind, **arguments))


def test_a_pair_that_follows_or_not_has_a_class(make):
    model = make(kbi.NextSentencePredictor)
    assert weights_by_number({0: 2.0, 1: 3.0}, model) == {0: 2.0, 1: 3.0}
    with pytest.raises(ValueError, match="class_weight is 2, which is not one of the classes 0, 1"):
        weights_by_number({2: 1.0}, model)
    assert weights_by_number({4: 2.0}, make(kbi.MultipleChoice)) == {4: 2.0}


def test_balanced_classes_have_the_weights_of_scikit_learn(model):
    labels = [LABELS[0]] * (len(TEXTS) - 1) + [next(label for label in LABELS if label != LABELS[0])]
    of_rows = compute_sample_weight("balanced", labels)
    model.optimizer.learning_rate = 0.0
    expected = model.fit(TEXTS, labels, sample_weight=of_rows, batch_size=99, verbose=0).history["loss"]
    found = model.fit(model.rows(TEXTS), labels, class_weight="balanced", batch_size=99, verbose=0).history["loss"]
    assert found == pytest.approx(expected, rel=1e-5)
    both = model.fit(TEXTS, labels, class_weight="balanced", sample_weight=2 * np.ones(len(TEXTS)), verbose=0).history
    assert both["loss"] == pytest.approx([2 * loss for loss in expected], rel=1e-5)


@pytest.mark.parametrize("class_weight", ["balanced", {0: 1.0, 2: 9.0}])
def test_one_hot_labels_weigh_as_the_numbers_of_their_classes(class_weight, model):
    numbers = np.arange(len(TEXTS)) ** 2 % 3
    model.optimizer.learning_rate = 0.0
    fit = functools.partial(model.fit, class_weight=class_weight, batch_size=99, verbose=0)
    expected = fit(TEXTS, numbers).history["loss"]
    model.compile(model.optimizer, keras.losses.CategoricalCrossentropy(from_logits=True), metrics=[])
    one_hot = np.eye(3, dtype="float32")[numbers]
    assert fit(TEXTS, one_hot).history["loss"] == pytest.approx(expected, rel=1e-5)
    assert fit(model.rows(TEXTS), one_hot).history["loss"] == pytest.approx(expected, rel=1e-5)


def test_batches_have_no_balanced_weights(model):
    tf = pytest.importorskip("tensorflow")
    batches = tf.data.Dataset.from_tensor_slices((TEXTS, np.arange(len(TEXTS)) % 3)).batch(2)
    with pytest.raises(ValueError, match="needs all labels at once"):
        model.fit(batches, class_weight="balanced", verbose=0)


def test_a_table_with_a_column_for_each_class_is_read_by_the_names_of_its_columns(model):
    """As of `pandas.get_dummies`, whose columns are sorted; the classes need not be."""
    pandas = pytest.importorskip("pandas")
    names = ["pos", "neg", "mid"]
    named = kbi.TextClassifier(model.encoder, 3, tokenizer=model.tokenizer, class_names=names)
    named.compile(optimizer="sgd", loss=keras.losses.CategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    labels = [names[row % 3] for row in range(len(TEXTS))]
    table = pandas.get_dummies(pandas.Series(labels))
    assert list(table.columns) == ["mid", "neg", "pos"]
    expected = np.eye(3)[[names.index(label) for label in labels]]
    assert named.evaluate(TEXTS, table, verbose=0) == named.evaluate(TEXTS, expected, verbose=0)
    with pytest.raises(ValueError, match=r"columns of the labels are .*'po'"):
        named.fit(TEXTS, table.rename(columns={"pos": "po"}), verbose=0)


def test_ragged_class_numbers_of_equally_many_classes_are_not_taken_for_columns(make):
    tf = pytest.importorskip("tensorflow")
    model = make(kbi.TextClassifier, 3, multi_label=True)
    labels = [[0, 2], [1, 2], [2], [0], []]  # two of three classes in the first batch
    batches = tf.data.Dataset.from_tensor_slices((TEXTS, tf.ragged.constant(labels, "int32"))).batch(2)
    assert loss_of(model, batches) == pytest.approx(loss_of(model, TEXTS, labels), rel=1e-5)
