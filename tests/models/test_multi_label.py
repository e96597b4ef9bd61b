"""A TextClassifier whose texts may have several classes: what it learns, answers, saves and refuses."""

import json

import keras
import numpy as np
import pytest
from conftest import QUICK_STEPS, revealing_config
from reference_models import open_in_transformers, random_model

import keras_bert_impl as kbi
from keras_bert_impl.losses import MultiLabelF1
from keras_bert_impl.optimization import BertAdamW

TEXTS = ["the cat is good", "the dog is bad", "a good mat", "bad rain"]
NAMES = ["sad", "glad", "mad"]
CLASSES = [["glad", "mad"], [], ["glad"], ["sad", "mad"]]
ROWS = np.array([[0, 1, 1], [0, 0, 0], [0, 1, 0], [1, 0, 1]])


@pytest.fixture
def config(small_tokenizer):
    return revealing_config(small_tokenizer, max_length=11, initializer_range=0.5)


@pytest.fixture
def model(config, small_tokenizer):
    model = kbi.TextClassifier(
        kbi.BertEncoder(config), 3, tokenizer=small_tokenizer, class_names=NAMES, multi_label=True
    )
    model.compile(optimizer=BertAdamW(1e-2), loss=model.loss, metrics=[MultiLabelF1()], **QUICK_STEPS)
    return model


def loss_of(model, *data, **arguments):
    return np.ravel(model.evaluate(*data, verbose=0, **arguments))[0]


def sigmoid(logits):
    return 1 / (1 + np.exp(-logits.astype("float64")))


def test_the_loss_is_the_mean_binary_cross_entropy_and_the_metric_is_f1(model):
    probabilities = sigmoid(model.predict(TEXTS, verbose=0))
    loss = -np.mean(np.where(ROWS, np.log(probabilities), np.log(1 - probabilities)))
    hits = (ROWS * (probabilities > 0.5)).sum()
    f1 = 2 * hits / (ROWS.sum() + (probabilities > 0.5).sum())
    for labels in (CLASSES, ROWS, ROWS.tolist()):
        found = model.evaluate(TEXTS, labels, verbose=0, return_dict=True)
        np.testing.assert_allclose([found["loss"], found["f1"]], [loss, f1], rtol=1e-5)
    np.testing.assert_allclose(model.evaluate(model.rows(TEXTS), CLASSES, verbose=0), [loss, f1], rtol=1e-5)


def test_a_model_that_predicts_no_class_has_an_f1_of_0():
    metric = MultiLabelF1()
    metric.update_state(ROWS, np.full((4, 3), -0.1, "float32"))
    assert float(metric.result()) == 0
    metric.update_state(ROWS[:1], np.array([[-1, 1, 0.1]], "float32"))  # logits above 0 are predicted
    np.testing.assert_allclose(float(metric.result()), 2 * 2 / (7 + 2))  # 7 labels, 2 predicted, 2 right
    assert MultiLabelF1.from_config(metric.get_config()).name == "f1"


def test_the_weight_of_a_text_is_that_of_all_its_classes(model):
    losses = [loss_of(model, TEXTS[i : i + 1], ROWS[i : i + 1]) for i in range(4)]
    weights = [1, 0, 2, 3]
    found = loss_of(model, TEXTS, CLASSES, sample_weight=weights)
    np.testing.assert_allclose(found, np.dot(losses, weights) / 4, rtol=1e-5)
    with pytest.raises(ValueError, match=r"sample_weight has shape \(4, 3\), expected one for each text, \(4,\)"):
        model.fit(TEXTS, CLASSES, sample_weight=np.ones((4, 3)), verbose=0)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (ROWS * 2, r"labels\[0\]\[1\] is 2, out of range: each label is 1 if its row belongs to the class"),
        (ROWS - 1, r"labels\[0\]\[0\] is -1, out of range"),
        (ROWS[:, :2], r"labels have shape \(4, 2\), expected \(4, 3\)"),
        (ROWS / 2, r"labels\[0\]\[1\] is 0.5, not a whole number"),
        ([*CLASSES[:3], ["bad"]], r"labels\[3\] is 'bad', which is not one of the classes"),
    ],
)
def test_labels_that_are_not_0_or_1_are_refused(labels, message, model):
    for x in (TEXTS, model.rows(TEXTS)):
        with pytest.raises(ValueError, match=message):
            model.fit(x, labels, verbose=0)


def test_another_loss_takes_labels_of_its_own(model):
    model.compile(loss="mean_squared_error", optimizer="sgd", **QUICK_STEPS)
    logits = model.predict(TEXTS, verbose=0)
    for labels, rows in ((ROWS / 2, ROWS / 2), (CLASSES, ROWS)):
        found = loss_of(model, TEXTS, labels)
        np.testing.assert_allclose(found, np.mean((logits - rows) ** 2), rtol=1e-5)


def test_a_keras_file_and_a_checkpoint_keep_several_classes(model, tmp_path):
    model.save(tmp_path / "model.keras")
    model.save_pretrained(tmp_path)
    assert json.loads((tmp_path / "config.json").read_text())["problem_type"] == "multi_label_classification"
    for again in keras.saving.load_model(tmp_path / "model.keras"), kbi.TextClassifier.from_pretrained(tmp_path):
        assert again.multi_label and isinstance(again.loss, keras.losses.BinaryCrossentropy)
        assert again.class_names == NAMES
        np.testing.assert_allclose(again.predict(TEXTS, verbose=0), model.predict(TEXTS, verbose=0), atol=1e-6)


def test_the_pipeline_of_transformers_gives_the_same_probabilities(model, tmp_path):
    transformers = pytest.importorskip("transformers")
    model.save_pretrained(tmp_path)
    pipeline = transformers.pipeline("text-classification", str(tmp_path), top_k=None)
    for text, labels in zip(TEXTS, model.classify(TEXTS, top_k=None), strict=True):
        theirs = [(one["label"], one["score"]) for one in pipeline([text])[0]]
        assert [label for label, _ in theirs] == [label for label, _ in labels]
        np.testing.assert_allclose([score for _, score in theirs], [share for _, share in labels], atol=1e-5)


@pytest.mark.parametrize("labels", [3, 1])
def test_a_checkpoint_of_transformers_with_several_classes_opens_so(labels, config, small_tokenizer, tmp_path):
    fields = {"num_labels": labels, "problem_type": "multi_label_classification"}
    random_model("BertForSequenceClassification", config, tmp_path, **fields)
    small_tokenizer.save_pretrained(tmp_path)
    model = kbi.TextClassifier.from_pretrained(tmp_path)
    assert model.multi_label and model.num_classes == labels
    if labels > 1:
        assert not kbi.TextClassifier.from_pretrained(tmp_path, multi_label=False).multi_label


@pytest.mark.filterwarnings("ignore:.* newly initialised")
def test_a_new_head_is_not_that_of_the_checkpoint(model, tmp_path):
    model.save_pretrained(tmp_path)
    assert not kbi.TextClassifier.from_pretrained(tmp_path, num_classes=5).multi_label
    assert kbi.TextClassifier.from_pretrained(tmp_path, num_classes=5, multi_label=True).multi_label


def test_a_classifier_of_one_class_is_refused_unless_texts_may_lack_it(config, tmp_path):
    with pytest.raises(ValueError, match=r"num_classes=1 .* use 2, or multi_label=True"):
        kbi.TextClassifier(kbi.BertEncoder(config), 1)
    kbi.TextClassifier(kbi.BertEncoder(config), 1, multi_label=True, class_names=["mad"]).save_pretrained(tmp_path)
    found = kbi.TextClassifier.from_pretrained(tmp_path)
    assert found.multi_label and found.class_names == ["mad"]
    assert open_in_transformers("BertForSequenceClassification", tmp_path).config.id2label == {0: "mad"}


def test_a_classifier_of_tokens_of_one_class_opens_in_transformers_and_here(config, tmp_path):
    kbi.TokenClassifier(kbi.BertEncoder(config), 1, class_names=["O"]).save_pretrained(tmp_path)
    assert open_in_transformers("BertForTokenClassification", tmp_path).config.id2label == {0: "O"}
    assert kbi.TokenClassifier.from_pretrained(tmp_path).class_names == ["O"]


def test_classify_tells_all_classes_above_a_half_as_predict_of_the_command_line(model):
    every = model.classify(TEXTS, top_k=None)
    halves = [[label for label in labels if label.probability > 0.5] for labels in every]
    assert model.classify(TEXTS) == halves != every and any(halves)
    assert model.classify(TEXTS, threshold=0.0) == every
    assert [label.label for label in model.classify(TEXTS[0])] == [label.label for label in halves[0]]
    assert model.classify(TEXTS, top_k=1) == [labels[:1] for labels in every]
