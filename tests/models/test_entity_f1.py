"""F1 over entities as a metric of `fit` and `evaluate`, beside seqeval's."""

import random

import keras
import numpy as np
import pytest
from tiers import every_backend, full_but, full_on

import keras_bert_impl as kbi
from keras_bert_impl.preprocessing.entities import EntityF1
from keras_bert_training.tasks.tag_scores import entity_scores

SCHEMES = {
    "IOB": "O B-A I-A B-B I-B",
    "IOBES": "O B-A I-A E-A S-A B-B I-B E-B S-B",
    "BILOU": "O B-A I-A L-A U-A B-B I-B L-B U-B",
    "one type": "O B I",
    "O last": "B-A I-A I-B O",
}


def drawn(names, rows, length, seed):
    """Labels and predictions, of which half agree, and of the labels a third are none."""
    draw = random.Random(seed)
    labels = np.array([[draw.randrange(len(names)) for _ in range(length)] for _ in range(rows)])
    other = np.array([[draw.randrange(len(names)) for _ in range(length)] for _ in range(rows)])
    predicted = np.where([[draw.random() < 0.7 for _ in range(length)] for _ in range(rows)], labels, other)
    absent = [[draw.choice([-1, -100, 0, 0, 0, 0]) for _ in range(length)] for _ in range(rows)]
    return np.where(absent, absent, labels), predicted


@every_backend
@full_on("jax")
@pytest.mark.parametrize("scheme", full_but(SCHEMES, "BILOU", on=("tensorflow",)))
def test_it_is_seqevals_over_the_labelled_tokens(scheme):
    names = SCHEMES[scheme].split()
    labels, predicted = drawn(names, 60, 11, seed=5)
    metric = EntityF1(names)
    for part in np.split(np.arange(60), 3):
        metric.update_state(labels[part], np.eye(len(names))[predicted[part]])
    wanted, found = (
        [[names[number] for number in row[places >= 0]] for row, places in zip(numbers, labels, strict=True)]
        for numbers in (labels, predicted)
    )
    expected = entity_scores(wanted, found)["f1"]
    assert 0.2 < expected < 0.9
    assert float(metric.result()) == pytest.approx(expected, abs=1e-6)


def test_by_hand():
    metric = EntityF1(["O", "B-A", "I-A"])
    # Labelled: words 0 and 1, and word 4, whose first pieces are at 1, 2 and 5; found: 0 and 1, and 3.
    labels = [[-1, 1, 2, -100, 0, 0, 1, -1]]
    found = [[1, 1, 2, 1, 0, 1, 0, 2]]
    metric.update_state(labels, np.eye(3)[found])
    assert float(metric.result()) == pytest.approx(2 * 1 / (2 + 2))
    metric.reset_state()
    assert float(metric.result()) == 0.0
    metric.update_state([[0, 0, 0]], np.eye(3)[[[0, 0, 0]]])
    assert float(metric.result()) == 0.0  # where there is no entity
    metric.update_state([[1], [1], [0]], np.eye(3)[[[1], [0], [1]]], sample_weight=[3.0, 2.0, 0.0])
    assert float(metric.result()) == pytest.approx(2 * 3 / (5 + 3))


def test_a_token_classifier_of_entities_tells_it(small_tokenizer):
    names, words = SCHEMES["IOB"].split(), [["the", "cats", "sat"], ["red", "dogs", "ran", "on"], ["rain"] * 9]
    labels = [["O", "B-A", "I-A"], ["B-B", "I-B", "O", "O"], ["B-A", *["O"] * 8]]
    keras.utils.set_random_seed(3)
    config = kbi.BertConfig(29, hidden_size=6, num_layers=1, num_heads=2, intermediate_size=7, max_length=20)
    model = kbi.TokenClassifier(kbi.BertEncoder(config), 5, small_tokenizer, class_names=names)
    model.optimizer.learning_rate = 1e-2
    history = model.fit(words, labels, epochs=20, validation_data=(words, labels), verbose=0).history
    tagged = [[label.label for label in row] for row in model.tag(words)]
    figures = model.evaluate(words, labels, verbose=0, return_dict=True)
    assert figures["entity_f1"] == pytest.approx(entity_scores(labels, tagged)["f1"], abs=1e-6)
    assert history["val_entity_f1"][-1] == pytest.approx(figures["entity_f1"], abs=1e-6)
    assert list(figures) == ["accuracy", "entity_f1", "loss"]


def test_classes_that_mark_no_entities_have_none(small_tokenizer):
    config = kbi.BertConfig(29, hidden_size=6, num_layers=1, num_heads=2, intermediate_size=7, max_length=20)
    for names in (None, ["DT", "NN", "VB"], ["O", "PER", "LOC"], ["O", "B-A", "other"]):
        model = kbi.TokenClassifier(kbi.BertEncoder(config), 3, small_tokenizer, class_names=names)
        assert list(model.evaluate([["rain"]], [[0]], verbose=0, return_dict=True)) == ["accuracy", "loss"]
