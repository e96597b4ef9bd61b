"""Figures of rankings are those of the definitions; mined negatives are near, and none of the positives."""

import numpy as np
import pytest
from conftest import revealing_config
from sklearn.metrics import ndcg_score
from tiers import once

import keras_bert_impl as kbi
from keras_bert_impl.models.answers import Match
from keras_bert_impl.retrieval import mine_hard_negatives, retrieval_scores

pytestmark = once

TEXTS = ["the cat", "a dog ran", "red mat", "good rain", "the dog sat", "a cat", "blue mat", "bad rain is bad"]


@pytest.fixture
def embedder(small_tokenizer):
    config = revealing_config(small_tokenizer, max_length=11, initializer_range=0.5)
    return kbi.TextEmbedder(kbi.BertEncoder(config), small_tokenizer)


@pytest.mark.parametrize("at", [3, 10])
def test_figures_are_those_of_sentence_transformers(at):
    library = pytest.importorskip("sentence_transformers.sentence_transformer.evaluation")
    random = np.random.default_rng(0)
    found = [random.permutation(20)[:at].tolist() for _ in range(7)]
    relevant = [set(random.permutation(20)[: random.integers(1, 4)].tolist()) for _ in found]
    names = [str(number) for number in range(7)]
    theirs = library.InformationRetrievalEvaluator(
        *(dict(zip(names, names, strict=True)), {str(number): "" for number in range(20)}),
        {name: {str(number) for number in numbers} for name, numbers in zip(names, relevant, strict=True)},
        **{f"{figure}_at_k": [at] for figure in ("accuracy", "precision_recall", "mrr", "ndcg", "map")},
    )
    hits = [[{"corpus_id": str(number), "score": -place} for place, number in enumerate(one)] for one in found]
    expected = theirs.compute_metrics(hits)
    scores = retrieval_scores(found, relevant, at)
    assert scores.pop("queries") == 7 and 0 < scores[f"mrr@{at}"] < 1
    for name, score in scores.items():
        assert score == pytest.approx(expected[f"{name.split('@')[0]}@k"][at]), name


def test_grades_count_for_ndcg():
    random = np.random.default_rng(0)
    scores = random.permutation(12)
    grades = random.integers(0, 4, 12)
    found = [[Match(int(number), "", float(scores[number])) for number in np.argsort(-scores)]]
    relevant = [{number: grade for number, grade in enumerate(grades.tolist()) if grade}]
    assert retrieval_scores(found, relevant, 5)["ndcg@5"] == pytest.approx(ndcg_score([grades], [scores], k=5))


def test_a_query_without_a_relevant_text_counts_as_zero_and_its_order_is_that_of_the_search():
    scores = retrieval_scores([[1, 0], [0, 1], []], [[0], [], []])
    assert scores["queries"] == 3 and scores["mrr@10"] == pytest.approx(0.5 / 3)
    with pytest.raises(ValueError):
        retrieval_scores([[1, 0]], [[0], [1]])


@pytest.mark.parametrize("relevant", [[0.0], [True, False], ["the cat"], {0: 0.7}, [0, 1, 0]])
def test_what_is_no_number_of_a_text_is_refused(relevant):
    with pytest.raises(ValueError, match="query 0: expected the numbers of texts, each once"):
        retrieval_scores([[1, 0]], [relevant])
    with pytest.raises(ValueError, match="at is 0"):
        retrieval_scores([[1, 0]], [[0]], at=0)


class FixedVectors:
    """In the place of an embedder: vectors by text."""

    def __init__(self, vectors):
        self.vectors = vectors

    def embed_queries(self, texts, batch_size):
        return np.array([self.vectors[text] for text in texts], "float32")

    embed_documents = embed_queries


def test_negatives_are_farther_than_a_positive_whose_similarity_is_negative_and_are_numbers():
    fixed = FixedVectors({"q": [1, 0], "right": [-0.2, 0], "near": [-0.195, 0], "far": [-0.9, 0], "bad": [np.nan, 0]})
    assert mine_hard_negatives(fixed, ["q"], ["right"], ["near", "right", "far", "bad"]) == (["q"], ["right"], ["far"])
    with pytest.warns(UserWarning, match="1 of 1 pairs have fewer than 3 negatives"):
        mine_hard_negatives(fixed, ["q"], ["right"], ["near", "right", "far", "bad"], 3, relative_margin=None)


def test_negatives_are_the_nearest_texts_that_are_no_positives(embedder):
    anchors, positives = TEXTS[:4] + TEXTS[:1], TEXTS[4:8] + TEXTS[6:7]
    columns = mine_hard_negatives(embedder, anchors, positives, TEXTS, num_negatives=2, relative_margin=None)
    assert columns[:2] == (anchors, positives)
    similar = embedder.similarity(anchors, TEXTS)
    for row, anchor in enumerate(anchors):
        known = {anchor, *(positive for of, positive in zip(anchors, positives, strict=True) if of == anchor)}
        order = [TEXTS[number] for number in np.argsort(-similar[row]) if TEXTS[number] not in known]
        assert [columns[2][row], columns[3][row]] == order[:2]
    passed = mine_hard_negatives(embedder, anchors, positives, TEXTS, 1, range_min=1, relative_margin=None)
    assert passed[2] == columns[3]


def test_negatives_keep_their_distance_and_what_is_left_out_is_counted(embedder):
    anchors, positives = TEXTS[:4], TEXTS[4:]
    similar = embedder.similarity(anchors, positives)
    limits = 0.95 * np.diag(similar)
    has_negative = [any(similar[row, others] <= limits[row]) for row, others in enumerate(~np.eye(4, dtype=bool))]
    assert 0 < sum(has_negative) < 4  # else the next lines show nothing
    with pytest.warns(UserWarning, match=f"{4 - sum(has_negative)} of 4 pairs have fewer than 1 negatives"):
        columns = mine_hard_negatives(embedder, anchors, positives)
    assert columns[0] == [anchor for anchor, has in zip(anchors, has_negative, strict=True) if has]
    for anchor, positive, negative in zip(*columns, strict=True):
        assert embedder.similarity(anchor, negative) <= 0.95 * embedder.similarity(anchor, positive) + 1e-6
    embedder.fit(columns, verbose=0)


def test_figures_of_a_search_stand_in_the_logs_of_each_epoch(embedder):
    relevant = [[number] for number in range(4)]
    scores = kbi.callbacks.RetrievalScores(TEXTS[:4], TEXTS[4:], relevant, at=3)
    best = kbi.callbacks.BestWeights("val_ndcg@3")
    history = embedder.fit((TEXTS[:4], TEXTS[4:]), epochs=2, verbose=0, callbacks=[scores, best]).history
    found = retrieval_scores(embedder.search(TEXTS[:4], TEXTS[4:], top_k=3), relevant, 3)
    assert max(history["val_ndcg@3"]) == pytest.approx(found["ndcg@3"])
    assert {"val_accuracy@3", "val_recall@3", "val_mrr@3", "val_map@3"} <= set(history)
