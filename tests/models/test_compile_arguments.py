"""What a user of Keras gives to `compile` is computed from logits, or refused."""

import json
import warnings

import keras
import numpy as np
import pytest
from conftest import QUICK_STEPS, revealing_config
from tiers import on

import keras_bert_impl as kbi

TEXTS = ["the cat sat", "a bad dog ran on a mat", "it is good", "red rain"]
NUMBERS = np.array([0, 1, 0, 1])
ONE_HOT = np.eye(2, dtype="float32")[NUMBERS]
READ_AS_LOGITS = "returns logits: the loss .* from_logits=True"


def name_of(loss):
    """Not `str`, which has the address of a function, another one in each process."""
    return loss if isinstance(loss, str) else getattr(loss, "name", None) or loss.__name__


HEADS = {
    "classifier": (kbi.TextClassifier, {"num_classes": 2, "dropout_rate": 0.0}),
    "several": (kbi.TextClassifier, {"num_classes": 2, "multi_label": True}),
    "embedder": (kbi.TextEmbedder, {}),
    "answerer": (kbi.QuestionAnswerer, {}),
    "regressor": (kbi.TextRegressor, {}),
}


def make(head, tokenizer):
    kind, arguments = HEADS[head]
    config = revealing_config(tokenizer, max_length=12, initializer_range=0.5)
    return kind(kbi.BertEncoder(config), tokenizer=tokenizer, **arguments)


@pytest.fixture
def model(small_tokenizer):
    return make("classifier", small_tokenizer)


def test_the_compile_of_every_tutorial_learns(model):
    with pytest.warns(UserWarning, match=READ_AS_LOGITS):
        model.compile(
            keras.optimizers.Adam(0.01), "sparse_categorical_crossentropy", metrics=["accuracy"], **QUICK_STEPS
        )
    history = model.fit(TEXTS, NUMBERS, epochs=40, verbose=0).history
    assert history["loss"][-1] < 0.1 and history["accuracy"][-1] == 1


@pytest.mark.parametrize(
    "loss",
    [
        "sparse_categorical_crossentropy",
        "SparseCategoricalCrossentropy",
        "categorical_focal_crossentropy",
        "bce",
        keras.losses.sparse_categorical_crossentropy,
        keras.losses.CategoricalCrossentropy(label_smoothing=0.2, name="categorical_mine"),
        keras.losses.BinaryCrossentropy(reduction="sum"),
    ],
    ids=name_of,
)
def test_a_cross_entropy_has_the_value_of_the_one_from_logits(model, loss):
    with pytest.warns(UserWarning, match=READ_AS_LOGITS):
        model.compile("sgd", loss, **QUICK_STEPS)
    made = keras.losses.get(loss)
    config = made.get_config() if isinstance(made, keras.losses.Loss) else {}
    kind = {"s": "SparseCategorical", "b": "Binary", "c": "Categorical"}[model.loss.name[0]]
    focal = "Focal" if "focal" in model.loss.name else ""
    expected = getattr(keras.losses, f"{kind}{focal}Crossentropy")(**{**config, "from_logits": True})
    labels = NUMBERS if kind == "SparseCategorical" else ONE_HOT
    found = np.ravel(model.evaluate(TEXTS, labels, verbose=0))[0]
    np.testing.assert_allclose(found, expected(labels, model.predict(TEXTS, verbose=0)), rtol=1e-5)
    if config:
        assert model.loss.get_config() == {**config, "from_logits": True}


def test_a_loss_that_reads_logits_stays_without_a_word(model):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for loss in (keras.losses.SparseCategoricalCrossentropy(from_logits=True), kbi.losses.WeightedCrossEntropy()):
            model.compile("sgd", loss, metrics=["accuracy"])
            assert model.loss is loss


def test_a_loss_in_a_list_or_by_the_output_is_computed_from_logits(model):
    expected = keras.losses.SparseCategoricalCrossentropy(from_logits=True)(NUMBERS, model.predict(TEXTS, verbose=0))
    for given in (["sparse_categorical_crossentropy"], {"classifier": "sparse_categorical_crossentropy"}):
        with pytest.warns(UserWarning, match=READ_AS_LOGITS):
            model.compile("sgd", given, **QUICK_STEPS)
        assert np.ravel(model.evaluate(TEXTS, NUMBERS, verbose=0))[0] == pytest.approx(float(expected), rel=1e-5)


METRICS, LOSSES = keras.metrics, keras.losses
SPARSE = "sparse_categorical_crossentropy"
REFUSED = [
    ("classifier", {"loss": "kl_divergence"}, "reads probabilities"),
    ("classifier", {"loss": LOSSES.Tversky()}, "reads probabilities"),
    ("classifier", {"loss": "bce", "metrics": {"classifier": ["binary_accuracy"]}}, "threshold is 0"),
    ("classifier", {"loss": "bce", "weighted_metrics": ["TruePositives"]}, "threshold is 0"),
    ("classifier", {"loss": "bce", "metrics": [METRICS.F1Score(threshold=0.5)]}, "threshold is 0"),
    ("classifier", {"metrics": [METRICS.Accuracy()]}, "compares labels with numbers of classes"),
    ("classifier", {"metrics": [METRICS.MeanIoU(2)]}, "compares labels with numbers of classes"),
    # Keras' figure would be 0 whatever is predicted.
    ("classifier", {"metrics": ["categorical_accuracy"]}, "reads one-hot labels"),
    ("classifier", {"metrics": [METRICS.F1Score()]}, "reads one-hot labels"),
    ("several", {"weighted_metrics": ["accuracy"]}, "takes the largest logit of a text"),
    ("several", {"weighted_metrics": ["f1_score"]}, "takes the largest logit of a text"),
    # Keras takes it for the binary accuracy: 0.42 where the stars of reviews are 1, 3 and 5.
    ("regressor", {"loss": "mse", "metrics": ["mae", "accuracy"]}, "counts classes"),
    ("regressor", {"loss": "mse", "weighted_metrics": "acc"}, "counts classes"),
    ("embedder", {"loss": LOSSES.CosineSimilarity()}, "does not fit the labels"),
    ("answerer", {"loss": SPARSE}, "leave loss out"),
    ("regressor", {"loss": SPARSE}, "give 'mean_squared_error'"),
    ("several", {"loss": SPARSE}, "give 'binary_crossentropy'"),
]


@pytest.mark.parametrize(("head", "arguments", "message"), REFUSED)
def test_what_would_be_computed_wrongly_is_refused(head, arguments, message, small_tokenizer):
    model = make(head, small_tokenizer)
    with pytest.raises(ValueError, match=message):
        model.compile("sgd", **{"loss": getattr(model, "loss", None), **arguments})


def test_a_metric_of_one_hot_labels_may_stand_beside_their_loss(model):
    model.compile("sgd", "categorical_crossentropy", metrics=["categorical_accuracy", METRICS.F1Score()])


def test_a_metric_that_can_read_logits_does(small_tokenizer):
    model = make("several", small_tokenizer)
    metrics = ["AUC", "binary_crossentropy", keras.metrics.AUC(name="mine")]
    model.compile("sgd", model.loss, metrics=metrics, **QUICK_STEPS)
    found = model.evaluate(TEXTS, ONE_HOT, verbose=0, return_dict=True)
    probabilities = 1 / (1 + np.exp(-model.predict(TEXTS, verbose=0)))
    entropy = -np.mean(np.where(ONE_HOT, np.log(probabilities), np.log(1 - probabilities)))
    assert found["binary_crossentropy"] == pytest.approx(entropy, rel=1e-5)
    auc = keras.metrics.AUC()
    auc.update_state(ONE_HOT, probabilities)
    names = [name for name in found if name in ("auc", "AUC", "mine")]
    assert len(names) == 2 and all(found[name] == pytest.approx(float(auc.result()), abs=1e-6) for name in names)


def test_the_auc_of_one_hot_labels_is_that_of_the_softmax(model):
    texts, labels = TEXTS * 3, np.eye(2)[[0, 1, 0, 1, 0, 1, 1, 1, 0, 1, 0, 0]]
    model.get_layer("classifier").kernel.assign(
        np.random.default_rng(3).normal(size=model.get_layer("classifier").kernel.shape)
    )
    model.compile("sgd", "categorical_crossentropy", metrics=["AUC"], **QUICK_STEPS)
    found = model.evaluate(texts, labels, batch_size=5, verbose=0, return_dict=True)
    logits = model.predict(texts, verbose=0)
    auc = keras.metrics.AUC()
    auc.update_state(labels, keras.ops.softmax(logits))
    (name,) = [name for name in found if "auc" in name.lower()]
    assert found[name] == pytest.approx(float(auc.result()), abs=1e-6)
    wrong = keras.metrics.AUC(from_logits=True)
    wrong.update_state(labels, logits)
    assert abs(float(wrong.result()) - found[name]) > 1e-3


@pytest.mark.parametrize(
    "metric",
    [
        keras.metrics.sparse_categorical_crossentropy,
        keras.losses.SparseCategoricalCrossentropy(),
        {"classifier": ["sparse_categorical_crossentropy"]},
    ],
    ids=["function", "loss", "by the output"],
)
def test_a_metric_is_computed_from_logits_however_it_is_given(model, metric):
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("sgd", loss, metrics=metric if isinstance(metric, dict) else [metric], **QUICK_STEPS)
    found = model.evaluate(TEXTS, NUMBERS, verbose=0, return_dict=True)
    assert found["sparse_categorical_crossentropy"] == pytest.approx(found["loss"], rel=1e-5)


@pytest.mark.parametrize("given", [[0, 1, 0, 1, 0, 1, 1, 1], list("01010111")])
def test_the_auc_of_two_classes_is_that_of_the_second(model, given):
    texts = TEXTS * 2  # of equal texts in both classes, so that no logits divide them
    model.compile(
        "sgd", "sparse_categorical_crossentropy", metrics=[keras.metrics.AUC(name="auc"), "accuracy"], **QUICK_STEPS
    )
    history = model.fit(texts, given, batch_size=3, verbose=0).history
    assert 0 <= history["auc"][0] <= 1
    found = model.evaluate(texts, given, batch_size=3, verbose=0, return_dict=True)["auc"]
    logits = model.predict(texts, verbose=0)
    auc = keras.metrics.AUC()
    auc.update_state([0, 1, 0, 1, 0, 1, 1, 1], 1 / (1 + np.exp(logits[:, 0] - logits[:, 1])))
    assert found == pytest.approx(float(auc.result()), abs=1e-6) and 0 < found < 1


@pytest.mark.parametrize("kind", ["TextClassifier", "TokenClassifier"])
def test_a_keras_file_keeps_how_the_model_was_compiled(kind, small_tokenizer, tmp_path):
    encoder = kbi.BertEncoder(revealing_config(small_tokenizer, max_length=12))
    model = getattr(kbi, kind)(encoder, 2, tokenizer=small_tokenizer)
    loss = "sparse_categorical_crossentropy" if kind == "TextClassifier" else model.loss
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.compile(keras.optimizers.Adam(0.01), loss, metrics=["accuracy"], **QUICK_STEPS)
    data = (TEXTS, NUMBERS) if kind == "TextClassifier" else ([["the", "cat"], ["rain"]], [[0, 1], [1]])
    model.fit(*data, epochs=2, verbose=0)
    model.save(tmp_path / "model.keras")
    reloaded = keras.saving.load_model(tmp_path / "model.keras")
    assert isinstance(reloaded.optimizer, keras.optimizers.Adam) and int(reloaded.optimizer.iterations) == 2
    for array, expected in zip(reloaded.optimizer.variables, model.optimizer.variables, strict=True):
        np.testing.assert_array_equal(keras.ops.convert_to_numpy(array), keras.ops.convert_to_numpy(expected))
    # A file has lists for tuples.
    assert json.dumps(reloaded.loss.get_config()) == json.dumps(model.loss.get_config())
    assert reloaded.evaluate(*data, verbose=0) == pytest.approx(model.evaluate(*data, verbose=0))


@on("tensorflow")
def test_a_model_made_in_the_scope_of_a_strategy_may_be_compiled_outside_it(small_tokenizer):
    import tensorflow as tf

    with tf.distribute.MirroredStrategy(["CPU:0"]).scope():
        model = make("classifier", small_tokenizer)
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    assert "accuracy" in model.fit(TEXTS, NUMBERS, verbose=0).history


def test_the_binary_accuracy_of_several_classes_is_of_the_signs_of_their_logits(small_tokenizer):
    model = make("several", small_tokenizer)
    model.compile("sgd", model.loss, metrics=["binary_accuracy"], **QUICK_STEPS)
    found = model.evaluate(TEXTS, ONE_HOT, verbose=0, return_dict=True)["binary_accuracy"]
    assert found == np.mean((model.predict(TEXTS, verbose=0) > 0) == ONE_HOT)


@pytest.mark.parametrize("loss", ["binary_crossentropy", "mse"])
def test_numbers_of_classes_beside_a_loss_of_a_number_for_each_class_are_refused(model, loss):
    model.compile("adam", loss)
    for labels in (NUMBERS, NUMBERS.tolist(), ["0", "1", "0", "1"]):
        with pytest.raises(ValueError, match="takes a value for each class: compile with 'sparse_cat"):
            model.fit(TEXTS, labels, verbose=0)
    model.fit(TEXTS, ONE_HOT, verbose=0)
