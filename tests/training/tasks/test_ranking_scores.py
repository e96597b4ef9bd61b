"""MRR and NDCG are those of the definitions."""

import numpy as np
import pytest
from sklearn.metrics import ndcg_score
from tiers import once

from keras_bert_training.tasks.ranking_scores import ranking_scores

pytestmark = once


def reciprocal_rank(scores, relevance, at):
    order = np.argsort(-np.array(scores))[:at]
    places = np.nonzero(np.array(relevance)[order])[0]
    return 1 / (places[0] + 1) if len(places) else 0.0


@pytest.mark.parametrize("at", [3, 10])
def test_figures_are_those_of_the_definitions(at):
    random = np.random.default_rng(0)
    scores = [random.permutation(count) / 7 for count in (20, 5, 12)]
    relevance = [random.integers(0, 4, len(one)) * (random.random(len(one)) < 0.4) for one in scores]
    relevance[0][:] = np.where(np.argsort(np.argsort(-scores[0])) == 10, 2, 0)  # relevant at place 11 alone
    found = ranking_scores(scores, relevance, at=at)
    assert found["queries"] == 3
    expected = np.mean([reciprocal_rank(*one, at) for one in zip(scores, relevance, strict=True)])
    assert found[f"mrr@{at}"] == pytest.approx(expected)
    gains = [ndcg_score([grades], [one], k=at) for one, grades in zip(scores, relevance, strict=True)]
    assert found[f"ndcg@{at}"] == pytest.approx(np.mean(gains))


def test_a_query_without_a_relevant_text_counts_as_zero():
    found = ranking_scores([[0.3, 0.1], [0.2, 0.4], []], [[1, 0], [0, 0], []])
    assert found == {"queries": 3, "mrr@10": pytest.approx(1 / 3), "ndcg@10": pytest.approx(1 / 3)}


def test_of_equal_scores_the_first_text_stands_first():
    assert ranking_scores([[0.5, 0.5]], [[1, 0]]) == {"queries": 1, "mrr@10": 1.0, "ndcg@10": 1.0}
    found = ranking_scores([[0.5, 0.5]], [[0, 1]])
    assert found == {"queries": 1, "mrr@10": 0.5, "ndcg@10": pytest.approx(1 / np.log2(3))}


@pytest.mark.parametrize(
    ("scores", "relevance"),
    [([[1.0], [1.0, 2.0]], [[1], [1]]), ([[2.0], [1.0]], [[1], [0.5]]), ([[1.0], [float("nan")]], [[1], [1]])],
)
def test_what_does_not_belong_together_is_refused(scores, relevance):
    with pytest.raises(ValueError, match="query 1: expected a finite score and a relevance from 0, a whole number"):
        ranking_scores(scores, relevance)
