import random
import warnings

import pytest
import seqeval.metrics
from tiers import once

from keras_bert_impl.preprocessing.entities import are_entities
from keras_bert_training.tasks.tag_scores import entity_scores, word_scores

pytestmark = once


@pytest.mark.parametrize(
    ("labels", "answer"),
    [
        ("O B-PER I-PER", True),
        ("O I-PER I-LOC", True),  # IOB1
        ("O B-A I-A E-A S-A", True),
        ("O B-A I-A L-A U-A", True),
        ("O B I", True),  # entities of one kind, without its name
        ("O", True),
        ("DT NN VB", False),
        ("O PER LOC", False),
        ("PER-B PER-I O", False),
        ("N V E S I", False),  # parts of speech of one letter, some of them those of prefixes
        ("E S", False),
    ],
)
def test_labels_are_entities_if_they_say_where_one_begins(labels, answer):
    assert are_entities(labels.split()) is answer


def test_prefixes_on_some_labels_only_are_refused():
    with pytest.raises(ValueError, match=r"label 'X' has no prefix .* but 'B-PER' has one"):
        are_entities(["O", "B-PER", "X"])


def test_parts_of_speech_that_are_all_wrong_score_zero():
    # seqeval looks only at the first letters, by which all of these would be right, with an F1 of 1.0.
    wanted, found = [["DT", "NN", "VB"]], [["XT", "XN", "XB"]]
    scores = word_scores(wanted, found)
    assert (scores["accuracy"], scores["macro_f1"], scores["words"]) == (0.0, 0.0, 3)
    with pytest.raises(ValueError, match=r"label 'DT' has no prefix like B- or I-: use word_scores"):
        entity_scores(wanted, found)


def test_words_by_hand():
    scores = word_scores([["DT", "NN", "NN"], ["VB"]], [["DT", "NN", "VB"], ["XX"]])
    # DT: all right. NN: precision 1, recall 1/2. VB: one predicted, wrong; the other missed. XX has no words.
    assert scores["accuracy"] == 0.5 and scores["macro_f1"] == pytest.approx((1 + 2 / 3 + 0) / 3)
    assert scores["by_type"]["NN"] == {"precision": 1.0, "recall": 0.5, "f1": pytest.approx(2 / 3), "words": 2}
    assert list(scores["by_type"]) == ["DT", "NN", "VB"] and scores["sentences"] == 2


def test_two_entities_of_one_word_each_are_two_in_bilou_too():
    units = [["U-A", "U-A", "B-A", "L-A", "L-A"]]
    assert entity_scores(units, units)["entities"] == 4
    wrong = entity_scores(units, [["B-A", "L-A", "B-A", "L-A", "O"]])
    assert (wrong["precision"], wrong["recall"]) == (0.5, 0.25)


@pytest.mark.parametrize("labels", ["O B-A I-A B-B I-B", "O I-A I-B B-A"], ids=["IOB2", "IOB1"])
def test_entity_figures_are_seqevals_on_random_labels(labels):
    numbers = random.Random(3)
    lengths = [numbers.randrange(9) for _ in range(200)]
    wanted, found = ([numbers.choices(labels.split(), k=n) for n in lengths] for _ in range(2))
    scores = entity_scores(wanted, found)
    for ours, theirs in (("precision", "precision_score"), ("recall", "recall_score"), ("f1", "f1_score")):
        assert scores[ours] == pytest.approx(getattr(seqeval.metrics, theirs)(wanted, found))
    report = seqeval.metrics.classification_report(wanted, found, output_dict=True)
    assert scores["by_type"]["A"]["f1"] == pytest.approx(report["A"]["f1-score"])


def test_entities_by_hand():
    wanted = [["B-PER", "I-PER", "O", "B-LOC"], ["O", "O"]]
    found = [["B-PER", "O", "O", "B-LOC"], ["B-LOC", "O"]]
    scores = entity_scores(wanted, found)
    # 3 found, 2 there, 1 right
    assert (scores["precision"], scores["recall"], scores["f1"]) == (pytest.approx(1 / 3), 0.5, pytest.approx(0.4))
    assert scores["by_type"]["PER"]["f1"] == 0.0 and scores["entities"] == 2


@pytest.mark.parametrize(
    ("wanted", "found"),
    [([["O", "O"]], [["O", "O"]]), ([["O"]], [["B-A"]]), ([["B-A"]], [["O"]]), ([[]], [[]])],
)
def test_figures_without_entities_are_zero_and_quiet(wanted, found):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scores = entity_scores(wanted, found)
    assert (scores["precision"], scores["recall"], scores["f1"]) == (0.0, 0.0, 0.0)


def test_a_type_that_is_called_an_average_keeps_its_figures():
    scores = entity_scores([["B-batting avg", "O"]], [["B-batting avg", "O"]])
    assert scores["by_type"]["batting avg"]["f1"] == 1.0
