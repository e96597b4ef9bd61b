import keras
import numpy as np
import pytest
from keras import ops
from tiers import every_backend, three_in_full

from keras_bert_impl.losses import (
    NO_LABEL,
    LabelledAccuracy,
    WeightedCrossEntropy,
    accuracy,
    cosine_loss,
    cross_entropy,
    masked_lm_loss,
    next_sentence_loss,
    soft_target_loss,
)

pytestmark = three_in_full

# Softmax of these logits is [1/2, 1/4, 1/4] and [1/10, 1/10, 8/10].
LOGITS = np.log(np.array([[[2, 1, 1], [1, 1, 8]]], "float32"))  # (1, 2, 3)


@every_backend
def test_the_masked_lm_loss_counts_predictions_only():
    mask_ids = np.array([[0, 2]])
    both = masked_lm_loss(mask_ids, np.array([[1.0, 1.0]], "float32"), LOGITS)
    first = masked_lm_loss(mask_ids, np.array([[1.0, 0.0]], "float32"), LOGITS)
    # Google adds 1e-5 to the number of predictions.
    np.testing.assert_allclose(float(both), (np.log(2) + np.log(10 / 8)) / (2 + 1e-5), rtol=1e-6)
    np.testing.assert_allclose(float(first), np.log(2) / (1 + 1e-5), rtol=1e-6)


def test_a_batch_without_predictions_has_a_loss_of_zero():
    assert float(masked_lm_loss(np.zeros((1, 2), int), np.zeros((1, 2), "float32"), LOGITS)) == 0


def test_the_next_sentence_loss_of_packed_rows_counts_their_sequences_alone():
    logits = np.log(np.array([[[3, 1], [1, 4], [1, 99]], [[1, 1], [1, 99], [1, 99]]], "float32"))
    found = next_sentence_loss(np.array([[0, 1, 0], [1, 0, 0]]), logits, np.array([[1, 1, 0], [1, 0, 0]]))
    np.testing.assert_allclose(float(found), (np.log(4 / 3) + np.log(5 / 4) + np.log(2)) / 3, rtol=1e-6)


def test_accuracy_is_the_weighted_share_of_labels_with_the_largest_logit():
    # Of four labels the first, second and fourth are right; the weights are 2, 0, 3, 1.
    logits = np.array([[[5, 1, 2], [1, 1, 2]], [[0, 7, 2], [0, 1, 0]]], "float32")
    found = accuracy(np.array([[0, 2], [0, 1]]), logits, np.array([[2, 0], [3, 1]]))
    np.testing.assert_allclose(float(found), (2 + 1) / 6, rtol=1e-6)


@pytest.fixture
def half_precision_by_default():
    before = keras.config.floatx()
    keras.config.set_floatx("bfloat16")
    yield
    keras.config.set_floatx(before)


@every_backend
def test_losses_are_float32_also_where_keras_default_is_half_precision(half_precision_by_default):
    # Each label has probability 1/2. bfloat16 can represent neither class 257 nor a sum of 301 nor the weight 1/3.
    labels = np.full((7, 43), 257)
    logits = np.zeros((7, 43, 301), "float32")
    logits[..., 257] = np.log(300)
    weights = np.ones((7, 43), "int32")
    expected = {"masked_lm": np.log(2) * 301 / (301 + 1e-5), "next_sentence": np.log(2), "accuracy": 1.0}
    expected |= {"accuracy of 256": 0.0, "unweighted": np.log(2), "ignoring": np.log(2)}
    found = {
        "masked_lm": masked_lm_loss(labels, weights, logits),
        "next_sentence": next_sentence_loss(labels, logits, weights),
        "accuracy": accuracy(labels, logits, weights),
        "accuracy of 256": accuracy(labels - 1, logits, weights),
        "unweighted": WeightedCrossEntropy()(labels, logits),
        "ignoring": WeightedCrossEntropy(ignore_class=-1)(labels, logits),
    }
    for name, value in found.items():
        np.testing.assert_allclose(float(value), expected[name], rtol=1e-5, err_msg=name)
    weighted = WeightedCrossEntropy()(np.array([0, 2]), LOGITS[0], np.array([1, 1 / 3], "float32"))
    np.testing.assert_allclose(float(weighted), (np.log(2) + np.log(10 / 8) / 3) / (4 / 3), rtol=1e-6)


def test_the_weighted_loss_is_that_of_keras_on_one_device():
    random = np.random.default_rng(0)
    labels, logits = random.integers(-1, 4, (3, 7)), random.normal(size=(3, 7, 4)).astype("float32")
    weights = random.uniform(size=(3, 7)).astype("float32")
    theirs = keras.losses.SparseCategoricalCrossentropy(
        from_logits=True, ignore_class=-1, reduction="mean_with_sample_weight"
    )
    ours = WeightedCrossEntropy(ignore_class=-1)
    for sample_weight in (None, weights):
        expected = float(theirs(labels, logits, sample_weight))
        np.testing.assert_allclose(float(ours(labels, logits, sample_weight)), expected, rtol=1e-5)
    assert float(WeightedCrossEntropy()(labels[:, :0], logits[:, :0])) == 0
    assert keras.losses.deserialize(keras.losses.serialize(ours)).ignore_class == -1


def test_the_weighted_loss_leaves_out_minus_one_and_minus_one_hundred():
    labels, logits = np.array([[0, -100, 2, -1]]), np.concatenate([LOGITS, LOGITS], axis=1)
    found = WeightedCrossEntropy(ignore_class=NO_LABEL)(labels, logits)
    np.testing.assert_allclose(float(found), (np.log(2) + np.log(4)) / 2, rtol=1e-6)
    metric = LabelledAccuracy()
    metric.update_state(np.array([[0, -100, 2, -1]]), logits)
    np.testing.assert_allclose(float(metric.result()), 0.5)


def test_a_weight_for_a_row_is_that_of_each_of_its_labels():
    labels, logits = np.array([[0, 2], [1, 1]]), np.concatenate([LOGITS, LOGITS])
    loss, metric = WeightedCrossEntropy(ignore_class=NO_LABEL), LabelledAccuracy()
    expected = (3 * (np.log(2) + np.log(10 / 8)) + np.log(4) + np.log(10)) / 8
    for weights in (np.array([3.0, 1.0]), np.array([[3.0], [1.0]])):
        np.testing.assert_allclose(float(loss(labels, logits, weights)), expected, rtol=1e-6)
    metric.update_state(labels, logits, np.array([3.0, 1.0]))
    np.testing.assert_allclose(float(metric.result()), 6 / 8)


@every_backend
def test_a_label_that_is_no_class_is_not_taken_for_a_loss_of_zero():
    try:
        found = cross_entropy(ops.array([[1, 3]]), ops.array(LOGITS))
    except Exception:  # TensorFlow and torch refuse it themselves
        return
    assert np.isnan(ops.convert_to_numpy(found)).tolist() == [[False, True]]


def test_soft_targets_are_compared_at_a_temperature_and_padding_does_not_count():
    teacher = np.log(np.array([[16, 4, 4], [1, 1, 8]], "float32"))
    student = np.log(np.array([[1, 1, 1], [5, 5, 5]], "float32"))
    # At temperature 2 the first teacher is [1/2, 1/4, 1/4] and its student uniform; gradients keep their size by 2 * 2.
    expected = 4 * (0.5 * np.log(0.5 * 3) + 2 * 0.25 * np.log(0.25 * 3))
    found = soft_target_loss(student, teacher, np.array([1.0, 0.0], "float32"), 2.0)
    np.testing.assert_allclose(float(found), expected, rtol=1e-5)
    assert float(soft_target_loss(teacher, student, np.array([1.0, 0.0], "float32"), 2.0)) != pytest.approx(expected)


def test_the_cosine_loss_is_one_minus_the_cosine_whatever_the_lengths():
    student = np.array([[1, 0], [1, 1], [2, 0], [9, 9]], "float32")
    teacher = np.array([[0, 2], [3, 0], [-5, 0], [0, 0]], "float32")
    found = cosine_loss(student, teacher, np.array([1, 1, 1, 0], "float32"))
    np.testing.assert_allclose(float(found), (1 + (1 - 0.5**0.5) + 2) / 3, rtol=1e-5)
