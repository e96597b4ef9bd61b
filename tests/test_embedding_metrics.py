import numpy as np
import pytest
import scipy.stats
from tiers import every_backend, full_on, three_in_full

from keras_bert_impl.embedding_metrics import RankingAccuracy, SpearmanCorrelation, TripletAccuracy

pytestmark = three_in_full


def pairs(cosines):
    """Vectors (batch, 2, 2) whose cosines are these."""
    cosines = np.asarray(cosines, "float32")
    second = np.stack([cosines, np.sqrt(1 - cosines**2)], axis=-1)
    return np.stack([np.tile(np.array([3, 0], "float32"), (len(cosines), 1)), second], axis=1)


@every_backend
@full_on("jax")
def test_spearman_s_correlation_of_all_batches_is_scipy_s():
    random = np.random.default_rng(2)
    labels = np.round(random.uniform(0, 5, 300)) / 5  # with ties
    cosines = np.clip(labels - 0.5 + random.normal(size=300) / 3, -0.99, 0.99)
    metric = SpearmanCorrelation()
    for places in np.split(np.arange(300), [7, 100]):
        metric.update_state(labels[places], pairs(cosines[places]))
    expected = scipy.stats.spearmanr(labels, cosines).statistic
    assert 0.5 < expected < 0.9
    assert float(metric.result()) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("middle", [-0.9, 0.83, 0.999])
def test_cosines_that_lie_close_together_have_the_ranks_that_scipy_gives_them(middle):
    """The vectors of a model before its training all point the same way."""
    random = np.random.default_rng(4)
    labels = random.uniform(0, 1, 200).astype("float32")
    vectors = pairs(middle + 5e-4 * (labels + 0.1 * random.normal(size=200)))
    cosines = vectors[:, 1, 0] / np.linalg.norm(vectors[:, 1], axis=-1)
    metric = SpearmanCorrelation()
    for places in np.split(np.arange(200), [60]):
        metric.update_state(labels[places], vectors[places])
    expected = scipy.stats.spearmanr(labels, cosines).statistic
    assert expected > 0.8 and float(metric.result()) == pytest.approx(expected, abs=2e-3)


def test_of_more_pairs_than_there_is_room_for_the_last_ones_count(monkeypatch):
    monkeypatch.setattr(SpearmanCorrelation, "ROOM", 6)
    metric = SpearmanCorrelation()
    labels, cosines = np.linspace(-1, 1, 10).astype("float32"), np.linspace(-0.9, 0.9, 10)[::-1]
    cosines[4:] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
    for places in ([0, 1, 2, 3], [4, 5, 6], [7, 8, 9]):
        metric.update_state(labels[places], pairs(cosines[places]))
    assert float(metric.result()) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize(("labels", "expected"), [([0, 1, 2], 1), ([2, 1, 0], -1), ([1, 1, 1], 0), ([0, 2, 1], 0.5)])
def test_spearman_s_correlation_of_three_pairs(labels, expected):
    metric = SpearmanCorrelation(label_range=(0, 2))
    metric.update_state(np.array(labels, "float32"), pairs([-0.5, 0.1, 0.3]))
    assert float(metric.result()) == pytest.approx(expected, abs=1e-5)


def test_a_pair_of_weight_zero_does_not_count_in_the_correlation():
    metric = SpearmanCorrelation()
    metric.update_state(np.array([0, 0.5, 1, 0]), pairs([-0.5, 0.1, 0.3, 0.9]), np.array([1, 1, 1, 0]))
    assert float(metric.result()) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(("label", "cosine"), [(1.5, 0.1), (-1.5, 0.1), (0.5, np.nan)])
def test_the_correlation_is_nan_where_a_label_is_out_of_range_or_a_vector_is_nan(label, cosine):
    metric = SpearmanCorrelation()
    metric.update_state(np.array([0, 1, label]), pairs([-0.5, 0.1, cosine]))
    assert np.isnan(float(metric.result()))
    metric.reset_state()
    metric.update_state(np.array([0, 1]), pairs([-0.5, 0.1]))
    assert float(metric.result()) == pytest.approx(1, abs=1e-5)


def test_ranking_accuracy_counts_anchors_whose_positive_comes_first():
    # Row 0 has another positive that is nearer; to row 1, that of row 0 is equally near; row 2 finds its own.
    vectors = np.array([[[1, 0], [0, 1]], [[0, 1], [0, 1]], [[1, 1], [1, 1]]], "float32")
    metric = RankingAccuracy()
    metric.update_state(np.array([[0, 1], [2, 3], [4, 5]]), vectors)
    assert float(metric.result()) == pytest.approx(1 / 3)
    metric.reset_state()
    metric.update_state(np.array([[0, 1], [2, 1], [4, 5]]), vectors, np.array([1, 2, 1]))
    assert float(metric.result()) == pytest.approx(3 / 4)  # the positives of rows 0 and 1 are one text


def test_triplet_accuracy_counts_anchors_that_are_nearer_to_their_positive():
    vectors = np.array([[[0], [1], [2]], [[0], [2], [1]], [[0], [1], [1]]], "float32")
    metric = TripletAccuracy()
    metric.update_state(np.zeros((3, 3)), vectors)
    assert float(metric.result()) == pytest.approx(1 / 3)
