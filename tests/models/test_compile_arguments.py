"""What a user of Keras gives to `compile` is computed from logits, or refused."""

import json
import warnings

import keras
import numpy as np
import pytest
from conftest import QUICK_STEPS, revealing_config
from tiers import every_backend, full_on, on

import keras_bert_impl as kbi

TEXTS = ["the cat sat", "a bad dog ran on a mat", "it is good", "red rain"]
NUMBERS = np.array([0, 1, 0, 1])
ONE_HOT = np.eye(2, dtype="float32")[NUMBERS]
LABELS = {"sparse": NUMBERS, "categorical": ONE_HOT, "binary": ONE_HOT}
NAMES = [
    "sparse_categorical_crossentropy",
    "SparseCategoricalCrossentropy",
    "categorical_crossentropy",
    "categorical_focal_crossentropy",
    "binary_crossentropy",
    "bce",
    "binary_focal_crossentropy",
]
READ_AS_LOGITS = "returns logits: the loss .* from_logits=True"


def name_of(loss):
    """Not `str`, which has the address of a function, another one in each process."""
    return loss if isinstance(loss, str) else getattr(loss, "name", None) or loss.__name__


@pytest.fixture
def model(small_tokenizer):
    config = revealing_config(small_tokenizer, max_length=12, initializer_range=0.5)
    return kbi.TextClassifier(kbi.BertEncoder(config), 2, tokenizer=small_tokenizer, dropout_rate=0.0)


def labels_for(loss):
    name = name_of(loss)
    kind = "binary" if name == "bce" else name.lower().replace("sparsecategorical", "sparse_").split("_")[0]
    return LABELS[kind]


@every_backend
@full_on("tensorflow")
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
        *NAMES,
        keras.losses.sparse_categorical_crossentropy,
        keras.losses.SparseCategoricalCrossentropy(),
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
    found = np.ravel(model.evaluate(TEXTS, labels_for(loss), verbose=0))[0]
    np.testing.assert_allclose(found, expected(labels_for(loss), model.predict(TEXTS, verbose=0)), rtol=1e-5)
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


@pytest.mark.parametrize(
    "loss",
    [
        *("kl_divergence", keras.losses.KLDivergence(), keras.losses.Tversky()),
    ],
    ids=name_of,
)
def test_a_loss_of_probabilities_is_refused(model, loss):
    with pytest.raises(ValueError, match="reads probabilities, but the model returns logits"):
        model.compile("sgd", loss)


@pytest.mark.parametrize(
    "metric",
    [
        *("binary_accuracy", keras.metrics.Recall(), "TruePositives", keras.metrics.F1Score(threshold=0.5)),
        *(keras.metrics.KLDivergence(), keras.metrics.SensitivityAtSpecificity(0.5), keras.metrics.BinaryIoU([0])),
    ],
    ids=name_of,
)
def test_a_metric_of_probabilities_is_refused(model, metric):
    for given in ({"metrics": {"classifier": [metric]}}, {"weighted_metrics": [metric]}):
        with pytest.raises(ValueError, match="reads probabilities, but the model returns logits, whose threshold is 0"):
            model.compile("sgd", "binary_crossentropy", **given)


def test_a_metric_that_can_read_logits_does(small_tokenizer):
    config = revealing_config(small_tokenizer, max_length=12, initializer_range=0.5)
    model = kbi.TextClassifier(kbi.BertEncoder(config), 2, tokenizer=small_tokenizer, multi_label=True)
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


@pytest.mark.parametrize("metric", ["Accuracy", keras.metrics.MeanIoU(2), keras.metrics.IoU(2, [0])], ids=name_of)
def test_a_metric_of_numbers_of_classes_is_refused(model, metric):
    if metric == "Accuracy":
        metric = keras.metrics.Accuracy()  # the name is that of the accuracy, whose kind Keras chooses
    with pytest.raises(ValueError, match="compares labels with numbers of classes, but the model returns logits"):
        model.compile("sgd", model.loss, metrics=[metric])


@pytest.mark.parametrize(
    "metric", ["categorical_accuracy", keras.metrics.OneHotIoU(2, [0]), keras.metrics.F1Score()], ids=name_of
)
def test_a_metric_of_one_hot_labels_beside_numbers_of_classes_is_refused(model, metric):
    """Keras' figure is 0 whatever is predicted."""
    with pytest.raises(ValueError, match="reads one-hot labels, but the loss takes the numbers of classes"):
        model.compile("sgd", model.loss, metrics=[metric])
    model.compile("sgd", "categorical_crossentropy", metrics=[metric])


@pytest.mark.parametrize("metric", ["accuracy", "categorical_accuracy", "f1_score", "TopKCategoricalAccuracy"])
def test_a_metric_of_the_largest_logit_is_refused_where_a_text_may_have_no_class(small_tokenizer, metric):
    config = revealing_config(small_tokenizer, max_length=12)
    model = kbi.TextClassifier(kbi.BertEncoder(config), 2, tokenizer=small_tokenizer, multi_label=True)
    with pytest.raises(ValueError, match="takes the largest logit of a text, but with multi_label"):
        model.compile("sgd", model.loss, weighted_metrics=[metric])


@every_backend
@full_on("jax")
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


def test_a_metric_that_reads_logits_already_stays_the_same_object(model):
    entropy = keras.metrics.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("sgd", model.loss, metrics=[entropy], **QUICK_STEPS)
    found = model.evaluate(TEXTS, NUMBERS, verbose=0, return_dict=True)
    assert float(entropy.result()) == pytest.approx(found[entropy.name], rel=1e-5)


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
        config = revealing_config(small_tokenizer, max_length=12)
        model = kbi.TextClassifier(kbi.BertEncoder(config), 2, tokenizer=small_tokenizer)
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    assert "accuracy" in model.fit(TEXTS, NUMBERS, verbose=0).history


@pytest.mark.parametrize("arguments", [{"metrics": ["mae", "accuracy"]}, {"weighted_metrics": "acc"}])
def test_accuracy_of_numbers_is_refused(small_tokenizer, arguments):
    """Keras takes it for the binary accuracy: 0.42 where the stars of reviews are 1, 3 and 5."""
    config = revealing_config(small_tokenizer, max_length=12)
    regressor = kbi.TextRegressor(kbi.BertEncoder(config), tokenizer=small_tokenizer)
    with pytest.raises(ValueError, match=r"acc.* counts classes, but the model returns numbers"):
        regressor.compile(optimizer="adam", loss="mse", **arguments)


def test_the_binary_accuracy_of_several_classes_is_of_the_signs_of_their_logits(small_tokenizer):
    config = revealing_config(small_tokenizer, max_length=12, initializer_range=0.5)
    model = kbi.TextClassifier(kbi.BertEncoder(config), 2, tokenizer=small_tokenizer, multi_label=True)
    model.compile("sgd", model.loss, metrics=["binary_accuracy"], **QUICK_STEPS)
    found = model.evaluate(TEXTS, ONE_HOT, verbose=0, return_dict=True)["binary_accuracy"]
    assert found == np.mean((model.predict(TEXTS, verbose=0) > 0) == ONE_HOT)


HEADS = {
    "embedder": (kbi.TextEmbedder, {}),
    "answerer": (kbi.QuestionAnswerer, {}),
    "regressor": (kbi.TextRegressor, {}),
    "several": (kbi.TextClassifier, {"num_classes": 2, "multi_label": True}),
}


@pytest.mark.parametrize(
    ("head", "loss", "message"),
    [
        ("embedder", keras.losses.CosineSimilarity(), "cosine_similarity takes other labels than a TextEmbedder has"),
        (
            "answerer",
            "sparse_categorical_crossentropy",
            "takes other labels than a QuestionAnswerer has: leave loss out",
        ),
        (
            "regressor",
            "sparse_categorical_crossentropy",
            "takes other labels than a TextRegressor has: give 'mean_squared_error'",
        ),
        (
            "several",
            "sparse_categorical_crossentropy",
            "takes other labels than a TextClassifier has: give 'binary_crossentropy'",
        ),
    ],
)
def test_a_loss_for_another_head_is_refused_with_the_loss_to_give(small_tokenizer, head, loss, message):
    kind, arguments = HEADS[head]
    model = kind(
        kbi.BertEncoder(revealing_config(small_tokenizer, max_length=12)), tokenizer=small_tokenizer, **arguments
    )
    with pytest.raises(ValueError, match=message):
        model.compile("adam", loss)


@pytest.mark.parametrize("loss", ["binary_crossentropy", "mse"])
def test_numbers_of_classes_beside_a_loss_of_a_number_for_each_class_are_refused(model, loss):
    model.compile("adam", loss)
    for labels in (NUMBERS, NUMBERS.tolist(), ["0", "1", "0", "1"]):
        with pytest.raises(ValueError, match="takes a number for each class of a row: compile with 'sparse_cat"):
            model.fit(TEXTS, labels, verbose=0)
    model.fit(TEXTS, ONE_HOT, verbose=0)
