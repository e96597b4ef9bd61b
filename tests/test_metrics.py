"""F1, precision and recall of classes."""

import keras
import numpy as np
import pytest
import sklearn.metrics
from conftest import QUICK_STEPS, revealing_config
from tiers import three_in_full

import keras_bert_impl as kbi
from keras_bert_impl.metrics import ClassScore
from keras_bert_training.tasks.scores import classification_scores

TEXTS = ["the cat sat", "a bad dog ran on a mat", "it is good", "red rain", "the dog", "a cat ran in rain"]
LABELS = [0, 1, 2, 0, 0, 1]
SKLEARN = {
    "f1_score": sklearn.metrics.f1_score,
    "precision": sklearn.metrics.precision_score,
    "recall": sklearn.metrics.recall_score,
}


@pytest.fixture
def model(small_tokenizer):
    keras.utils.set_random_seed(7)
    config = revealing_config(small_tokenizer, max_length=12, initializer_range=0.9)
    names = ["bad", "good", "neutral"]
    return kbi.TextClassifier(kbi.BertEncoder(config), 3, tokenizer=small_tokenizer, class_names=names)


@three_in_full
def test_the_names_of_keras_are_the_macro_figures_of_finetune_and_scikit_learn(model):
    model.compile("adam", "sparse_categorical_crossentropy", metrics=[*SKLEARN, "accuracy"], **QUICK_STEPS)
    found = model.evaluate(TEXTS, LABELS, batch_size=4, verbose=0, return_dict=True)
    predicted = model.predict(TEXTS, verbose=0).argmax(axis=1)
    for name, figure in SKLEARN.items():
        expected = figure(LABELS, predicted, average="macro", labels=[0, 1, 2], zero_division=0)
        assert found[name] == pytest.approx(expected, abs=1e-6)
    printed = classification_scores(np.array(LABELS), predicted, model.class_names)
    assert found["f1_score"] == pytest.approx(printed["macro_f1"], abs=1e-6) and 0 < found["f1_score"] < 1


@three_in_full
@pytest.mark.parametrize("figure", SKLEARN)
def test_the_figure_of_one_class_is_scikit_learns(figure):
    labels, predicted, weights = [0, 1, 2, 2, 0, 1, 1], [0, 2, 2, 1, 0, 1, 0], [1, 1, 2, 1, 0, 1, 1]
    for number in range(3):
        metric = ClassScore(figure, 3, class_number=number)
        for part in (slice(4), slice(4, None)):
            metric.update_state(np.array(labels[part]), np.eye(3)[predicted[part]], np.array(weights[part]))
        expected = SKLEARN[figure](labels, predicted, average=None, labels=[0, 1, 2], sample_weight=weights)
        assert float(metric.result()) == pytest.approx(expected[number], abs=1e-6)
    copy = ClassScore.from_config(metric.get_config())
    assert copy.get_config() == metric.get_config()


def test_tokens_without_a_label_do_not_count():
    metric = ClassScore("f1_score", 2)
    metric.update_state(np.array([[0, -1, 1], [1, -100, -1]]), np.eye(2)[[[0, 1, 1], [0, 0, 1]]])
    assert float(metric.result()) == pytest.approx((2 / 3 + 2 / 3) / 2)
    assert float(ClassScore("recall", 2).result()) == 0


def test_training_stops_by_the_f1_without_a_mode(model, small_tokenizer, tmp_path):
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["f1_score"], **QUICK_STEPS)
    stop = keras.callbacks.EarlyStopping("val_f1_score", patience=0, restore_best_weights=True)
    model.optimizer.learning_rate = 0.0
    history = model.fit(TEXTS, LABELS, validation_data=(TEXTS, LABELS), epochs=5, callbacks=[stop], verbose=0).history
    assert len(history["val_f1_score"]) == 2
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert again.evaluate(TEXTS, LABELS, verbose=0) == model.evaluate(TEXTS, LABELS, verbose=0)
