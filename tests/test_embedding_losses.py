import json
import pathlib

import keras
import numpy as np
import pytest
from golden.make_embedding_losses import DIMS, WEIGHTS, embedding_losses_input
from keras import ops
from tiers import every_backend, full_on, three_in_full

import keras_bert_impl as kbi
from keras_bert_impl.embedding_losses import (
    AnglELoss,
    ContrastiveLoss,
    CoSENTLoss,
    CosineSimilarityLoss,
    EmbedDistillLoss,
    MarginMSELoss,
    MatryoshkaLoss,
    MultipleNegativesRankingLoss,
    TripletLoss,
    distances_of_triplets,
)

pytestmark = three_in_full

GOLDEN = json.loads((pathlib.Path(__file__).parent / "golden" / "embedding_losses.json").read_text(encoding="utf-8"))
LOSSES = (
    *(CosineSimilarityLoss, CoSENTLoss, AnglELoss, ContrastiveLoss),
    *(MultipleNegativesRankingLoss, TripletLoss, MarginMSELoss),
)
SETTINGS = {CosineSimilarityLoss: {}, MarginMSELoss: {}, TripletLoss: {"margin": 0.5}, ContrastiveLoss: {"margin": 0.1}}
E = np.e


def rows(*angles):
    """Vectors of length 2 at these angles in degrees, (batch, columns, 2)."""
    radians = np.radians(np.array(angles, "float32"))
    return 2 * np.stack([np.cos(radians), np.sin(radians)], axis=-1)


@every_backend
@pytest.mark.parametrize("name", GOLDEN)
def test_losses_are_those_of_sentence_transformers(name):
    vectors, similarities = embedding_losses_input()
    if name.startswith("EmbedDistillLoss"):
        found = EmbedDistillLoss(name.split()[1])(vectors[:, 3], vectors[:, :2])
        assert float(found) == pytest.approx(GOLDEN[name]["loss"], rel=1e-5)
        return
    vectors = vectors[:, : GOLDEN[name]["columns"]]
    loss = next(kind for kind in LOSSES if name.removeprefix("MatryoshkaLoss of ").startswith(kind.__name__))()
    if name.startswith("MatryoshkaLoss"):
        loss = MatryoshkaLoss(loss, DIMS, WEIGHTS)
    labels = similarities if loss.takes_similarities else np.arange(vectors.shape[0] * vectors.shape[1])
    found = loss(labels if loss.takes_similarities else labels.reshape(vectors.shape[:2]), vectors)
    assert float(found) == pytest.approx(GOLDEN[name]["loss"], rel=1e-5)


def test_the_cosine_loss_is_the_weighted_mean_square_of_the_difference():
    vectors = rows([0, 60], [0, 90])  # cosines 0.5 and 0
    assert float(CosineSimilarityLoss()(np.array([1.0, -1.0]), vectors)) == pytest.approx((0.25 + 1) / 2, abs=1e-6)
    found = CosineSimilarityLoss()(np.array([[1.0], [-1.0]]), vectors, np.array([3.0, 1.0]))
    assert float(found) == pytest.approx((3 * 0.25 + 1) / 4, abs=1e-6)


def test_cosent_counts_only_pairs_in_the_wrong_order_and_not_ties():
    vectors = rows([0, 60], [0, 90], [0, 90])  # cosines 0.5, 0, 0
    wrong = CoSENTLoss(scale=2)(np.array([1.0, 4.0, 4.0]), vectors)
    assert float(wrong) == pytest.approx(np.log(1 + 2 * E), rel=1e-5)
    assert float(CoSENTLoss()(np.array([3.0, 3.0, 3.0]), vectors)) == 0


@full_on("jax")
def test_a_row_of_weight_two_counts_in_cosent_like_two_rows():
    angles, labels = [[0, 60], [0, 90], [0, 20]], [1.0, 4.0, 2.0]
    twice = CoSENTLoss(scale=2)(np.array([*labels, 4.0]), rows(*angles, [0, 90]))
    weighted = CoSENTLoss(scale=2)(np.array(labels), rows(*angles), np.array([1.0, 2.0, 1.0]))
    assert float(weighted) == pytest.approx(float(twice), rel=1e-5)
    without = CoSENTLoss(scale=2)(np.array(labels), rows(*angles), np.array([1.0, 0.0, 1.0]))
    assert float(without) == pytest.approx(float(CoSENTLoss(scale=2)(np.array([1.0, 2.0]), rows(*angles[::2]))), 1e-5)


@full_on("jax")
def test_in_batch_negatives_are_the_positives_and_negatives_of_all_rows():
    vectors = rows([0, 0, 90], [90, 90, 0])  # the candidates of each anchor have cosines 1, 0, 0, 1
    found = MultipleNegativesRankingLoss(scale=1)(np.arange(6).reshape(2, 3), vectors)
    assert float(found) == pytest.approx(np.log((2 * E + 2) / E), rel=1e-5)


@pytest.mark.parametrize(
    "second",
    [[9, 1], [9, 0], [0, 7]],
    ids=["the positive again", "the anchor as positive", "another positive of the anchor"],
)
def test_what_is_known_to_be_no_negative_is_left_out(second):
    # The positive of row 1 is nearer to the anchor of row 0 than its own: it would be a costly negative.
    vectors = rows([0, 60], [0, 0])
    numbers = np.array([[0, 1], second])
    found = MultipleNegativesRankingLoss(scale=1)(numbers, vectors, np.array([1.0, 0.0]))
    assert float(found) == pytest.approx(0, abs=1e-6)
    counted = MultipleNegativesRankingLoss(scale=1)(np.arange(4).reshape(2, 2), vectors, np.array([1.0, 0.0]))
    assert float(counted) == pytest.approx(np.log((E**0.5 + E) / E**0.5), rel=1e-5)


def test_a_hard_negative_of_an_equal_anchor_stays_a_negative():
    vectors = rows([0, 0, 90], [0, 0, 90])
    found = MultipleNegativesRankingLoss(scale=1)(np.array([[0, 1, 2], [0, 1, 3]]), vectors)
    assert float(found) == pytest.approx(np.log((E + 2) / E), rel=1e-5)


def test_the_triplet_loss_is_a_hinge_on_distances():
    vectors = np.array([[[0, 0], [3, 4], [0, 5.5]], [[0, 0], [0, 1], [9, 0]]], "float32")
    found = TripletLoss()(np.zeros((2, 3)), vectors, np.array([3.0, 1.0]))
    assert float(found) == pytest.approx(3 * (5 - 5.5 + 1) / 4, abs=1e-5)
    assert float(TripletLoss(margin=0.25)(np.zeros((2, 3)), vectors)) == 0


def test_equal_vectors_have_a_distance_above_zero():
    distances = distances_of_triplets(np.ones((2, 3, 5), "float32"))
    assert all(float(ops.min(distance)) > 0 for distance in distances)  # where the square root has a gradient


@pytest.mark.parametrize("kind", LOSSES)
def test_a_loss_keeps_its_settings_and_is_float32(kind):
    loss = MatryoshkaLoss(kind(**SETTINGS.get(kind, {"scale": 3.0})), [5, 3])
    again = keras.losses.deserialize(keras.losses.serialize(loss))
    assert again.get_config() == loss.get_config() and again.loss.get_config() == loss.loss.get_config()
    vectors, similarities = embedding_losses_input()
    vectors = ops.cast(vectors[:, : kind.columns[0]], "bfloat16")
    labels = similarities if loss.takes_similarities else np.arange(7 * kind.columns[0]).reshape(7, -1)
    assert keras.backend.standardize_dtype(again(labels, vectors).dtype) == "float32"


def test_rows_of_another_number_of_texts_are_refused():
    with pytest.raises(ValueError, match="needs 2 texts in each example, but found 3"):
        CosineSimilarityLoss()(np.zeros(2), np.zeros((2, 3, 5), "float32"))


def test_numbers_of_texts_are_not_taken_for_similarities():
    with pytest.raises(ValueError, match="CosineSimilarityLoss needs one similarity for each pair"):
        CosineSimilarityLoss()(np.zeros((3, 2), "int32"), np.zeros((3, 2, 5), "float32"))


def test_matryoshka_learns_vectors_that_may_be_cut_and_refuses_widths_that_there_are_not():
    vectors, similarities = embedding_losses_input()
    whole = MatryoshkaLoss(CosineSimilarityLoss(), [5])(similarities, vectors[:, :2])
    assert float(whole) == pytest.approx(float(CosineSimilarityLoss()(similarities, vectors[:, :2])), rel=1e-6)
    with pytest.raises(ValueError, match="the vectors' width, 5"):
        MatryoshkaLoss(CosineSimilarityLoss(), [8, 4])(similarities, vectors[:, :2])
    with pytest.raises(ValueError, match="whole vectors"):
        MatryoshkaLoss(EmbedDistillLoss(), [4, 2])
    with pytest.raises(ValueError, match="mini_batch_size is 0"):
        MultipleNegativesRankingLoss(mini_batch_size=0)
    with pytest.raises(ValueError, match="There are 1 weights for 2 dims"):
        MatryoshkaLoss(CosineSimilarityLoss(), [4, 2], [1.0])


def test_a_teacher_has_a_vector_for_each_row_or_for_each_text():
    vectors, _ = embedding_losses_input()
    each = EmbedDistillLoss("mse")(vectors[:, 2:], vectors[:, :2])
    columns = [EmbedDistillLoss("mse")(vectors[:, place + 2], vectors[:, place]) for place in (0, 1)]
    assert float(each) == pytest.approx(float(sum(columns)) / 2, rel=1e-6)
    weights = np.array([1.0, *[0.0] * 6], "float32")
    of_first = EmbedDistillLoss()(vectors[:, 1], vectors[:, 0], weights)
    assert float(of_first) == pytest.approx(float(EmbedDistillLoss()(vectors[:1, 1], vectors[:1, 0])), rel=1e-6)
    with pytest.raises(ValueError, match="they need the same width"):
        EmbedDistillLoss()(vectors[:, 0, :4], vectors[:, 0])
    again = keras.losses.deserialize(keras.losses.serialize(EmbedDistillLoss("l2")))
    assert again.distance_metric == "l2"


def test_a_teacher_s_vectors_are_asked_for_and_no_texts_have_no_vectors():
    model = kbi.TextEmbedder.from_pretrained("small_english")
    assert model.embed([]).shape == (0, 256)
    model.compile(optimizer="adam", loss=EmbedDistillLoss())
    with pytest.raises(ValueError, match=r"EmbedDistillLoss takes the vectors of a teacher: fit\(texts, vectors\)"):
        model.fit(["red rain", "a dog"])
