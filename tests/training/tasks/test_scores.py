import numpy as np
import pytest
import scipy.stats
import sklearn.metrics
from tiers import once

from keras_bert_training.tasks.scores import classification_scores, refuse_nan, regression_scores

pytestmark = once

NUMBERS = np.random.default_rng(11)
LABELS = {
    "random": (NUMBERS.integers(0, 3, 200), NUMBERS.integers(0, 3, 200)),
    "constant predictions": (NUMBERS.integers(0, 3, 50), np.full(50, 2)),
    "one class": (np.zeros(7, int), np.zeros(7, int)),
    "one class, wrong": (np.zeros(7, int), np.ones(7, int)),
    "a class nobody has": (NUMBERS.integers(0, 2, 50), NUMBERS.integers(1, 3, 50)),
    "one example": (np.array([1]), np.array([1])),
}


@pytest.mark.parametrize("case", LABELS)
def test_classification_figures_are_scikit_learns(case):
    labels, predicted = LABELS[case]
    found = classification_scores(labels, predicted, ["a", "b", "c"])
    assert found["accuracy"] == pytest.approx(np.mean(labels == predicted))
    assert found["matthews_correlation"] == pytest.approx(sklearn.metrics.matthews_corrcoef(labels, predicted))
    f1 = sklearn.metrics.f1_score(labels, predicted, labels=[0, 1, 2], average="macro", zero_division=0)
    assert found["macro_f1"] == pytest.approx(f1)
    assert np.sum(found["confusion"]) == len(labels)


def test_f1_of_two_classes_is_that_of_the_second():
    found = classification_scores([1, 1, 0, 0, 1], [1, 0, 0, 1, 1], ["no", "yes"])
    assert found["f1"] == pytest.approx(2 / 3)  # precision 2/3, recall 2/3
    assert found["confusion"] == [[1, 1], [1, 2]]


@pytest.mark.filterwarnings("error")
def test_a_class_that_nobody_has_or_predicts_counts_as_zero_without_a_warning():
    # F1 of a is 0, of b 2 * 1/2 * 1 / (1/2 + 1) = 2/3, of c 0.
    found = classification_scores([0, 1], [1, 1], ["a", "b", "c"])
    assert (found["macro_f1"], found["matthews_correlation"]) == (pytest.approx(2 / 9), 0.0)
    assert found["confusion"] == [[0, 1, 0], [0, 1, 0], [0, 0, 0]]


VALUES = {
    "random": (NUMBERS.normal(size=90), NUMBERS.normal(size=90)),
    "tied ranks": (NUMBERS.integers(0, 4, 90) / 2, NUMBERS.integers(0, 4, 90) / 2),
    "two": (np.array([1.0, 2.0]), np.array([5.0, 4.0])),
    "far apart": (np.array([1e-9, 1e9, 3.0]), np.array([2e9, 1.0, 4e-9])),
}


@pytest.mark.parametrize("case", VALUES)
def test_correlations_are_scipys(case):
    values, predicted = VALUES[case]
    found = regression_scores(values, predicted)
    assert found["pearson"] == pytest.approx(scipy.stats.pearsonr(values, predicted).statistic)
    ranks = (scipy.stats.rankdata(values), scipy.stats.rankdata(predicted))
    assert found["spearman"] == pytest.approx(np.corrcoef(*ranks)[0, 1])
    assert found["mean_squared_error"] == pytest.approx(np.mean((values - predicted) ** 2))
    assert found["examples"] == len(values)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("swapped", [False, True])
def test_the_correlation_with_a_constant_is_zero(swapped):
    values, predicted = np.array([1.0, 2.0, 3.0]), np.full(3, 2.0)
    found = regression_scores(predicted, values) if swapped else regression_scores(values, predicted)
    assert (found["pearson"], found["spearman"]) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("first", "second", "complaint"),
    [
        ([1.0, 2.0], [1.0, float("nan")], "Predictions 1 holds NaN"),
        ([1.0, float("inf")], [1.0, 2.0], "Labels 1 holds NaN or infinity"),
    ],
)
def test_what_has_no_figure_is_refused(first, second, complaint):
    with pytest.raises(ValueError, match=complaint):
        regression_scores(first, second)


def test_outputs_that_diverged_are_refused_by_name():
    with pytest.raises(ValueError, match="The logits of example 1 holds NaN"):
        refuse_nan([np.zeros(3), np.array([0.0, np.nan, 1.0])], "The logits of example")
