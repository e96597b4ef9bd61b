"""The loss of an epoch is the mean over all that its batches count, however the rows are divided into batches."""

import keras
import numpy as np
import pytest
from conftest import QUICK_STEPS, revealing_config
from tiers import every_backend, full_on

import keras_bert_impl as kbi
from keras_bert_impl.losses import WeightedCrossEntropy
from keras_bert_impl.preprocessing.fit_inputs import rows_of

WORDS = [["the", "cats", "sat", "on", "a", "mat"], ["rain"], ["red", "dogs", "ran"], ["a", "dog"], ["bad"]]
LABELS = [[0, 1, 2, 0, 1, 2], [0], [2, 0, 1], [1, -100], [1]]
TEXTS = [" ".join(words) for words in WORDS]


def build(kind, tokenizer, *classes, **arguments):
    keras.utils.set_random_seed(3)
    config = revealing_config(tokenizer, max_length=32, initializer_range=0.7)
    model = kind(kbi.BertEncoder(config), *classes, tokenizer=tokenizer, **arguments)
    model.compile("sgd", model.loss, **QUICK_STEPS)
    return model


def cross_entropy_by_hand(model, weights=(1, 1, 1, 1, 1)):
    """The weighted mean over the words with a label, from the model's logits in NumPy."""
    rows, losses, counts = rows_of(model, model.make_preprocessor(), WORDS, LABELS, None), [], []
    logits = model.predict(WORDS, verbose=0).astype("float64")
    for row, labels, weight in zip(logits, rows.labels, weights, strict=True):
        for scores, label in zip(row, labels, strict=False):
            if label >= 0:
                losses.append(np.log(np.exp(scores).sum()) - scores[label])
                counts.append(weight)
    assert len(losses) == 12
    return np.average(losses, weights=counts)


def losses_of(model, *data, **arguments):
    """The loss that `evaluate` returns for batches of two and all rows."""
    return [model.evaluate(*data, batch_size=size, verbose=0, return_dict=True, **arguments)["loss"] for size in (2, 6)]


@every_backend
@full_on("jax")
def test_the_loss_of_a_token_classifier_is_the_mean_over_labelled_tokens(small_tokenizer):
    model = build(kbi.TokenClassifier, small_tokenizer, 3)
    expected = cross_entropy_by_hand(model)
    assert losses_of(model, WORDS, LABELS) == pytest.approx([expected] * 2, rel=1e-5)
    model.optimizer.learning_rate = 0.0
    history = model.fit(WORDS, LABELS, batch_size=2, verbose=0, validation_data=(WORDS, LABELS)).history
    assert history["loss"] + history["val_loss"] == pytest.approx([expected] * 2, rel=1e-5)


def test_the_loss_may_be_given_in_a_list(small_tokenizer):
    model = build(kbi.TokenClassifier, small_tokenizer, 3)
    expected = cross_entropy_by_hand(model)
    model.compile("sgd", [model.loss], **QUICK_STEPS)
    assert losses_of(model, WORDS, LABELS) == pytest.approx([expected] * 2, rel=1e-5)


def test_the_loss_of_weighted_rows_is_their_weighted_mean(small_tokenizer):
    model, weights = build(kbi.TokenClassifier, small_tokenizer, 3), np.array([1.0, 5.0, 0.0, 2.0, 3.0])
    expected = cross_entropy_by_hand(model, weights)
    assert losses_of(model, WORDS, LABELS, sample_weight=weights) == pytest.approx([expected] * 2, rel=1e-5)


def test_the_loss_of_pretraining_is_the_sum_of_its_parts_where_rows_have_no_masks(small_tokenizer):
    keras.utils.set_random_seed(3)
    config = revealing_config(small_tokenizer, max_length=32, initializer_range=0.7)
    model = kbi.Pretrainer(kbi.BertEncoder(config))
    model.compile("sgd", **QUICK_STEPS)
    rows = small_tokenizer(TEXTS)
    rows["mask_positions"] = np.full((5, 2), 1, "int32")
    labels = {
        "mask_ids": np.full((5, 2), 7, "int32"),
        "mask_weights": np.array([[1, 1], [0, 0], [1, 0], [0, 0], [1, 1]], "float32"),
        "next_sentence_labels": np.array([0, 1, 0, 1, 1], "int32"),
    }
    found = [model.evaluate(rows, labels, size, verbose=0, return_dict=True) for size in (1, 2, 5)]
    for figures in found:
        assert figures["loss"] == pytest.approx(figures["masked_lm_loss"] + figures["next_sentence_loss"], rel=1e-5)
        assert figures["loss"] == pytest.approx(found[-1]["loss"], rel=1e-4)


def test_a_subclass_may_compute_another_loss_or_add_to_it(small_tokenizer):
    class Other(kbi.TokenClassifier):
        def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
            return keras.ops.mean(y_pred * 0) + 7

    class More(kbi.TokenClassifier):
        def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
            return super().compute_loss(x, y, y_pred, sample_weight, training) + 7

    plain, other, more = (build(kind, small_tokenizer, 3) for kind in (kbi.TokenClassifier, Other, More))
    expected = cross_entropy_by_hand(plain) + 7
    assert losses_of(other, WORDS, LABELS) == pytest.approx([7] * 2)
    assert losses_of(more, WORDS, LABELS) == pytest.approx([expected] * 2, rel=1e-5)
    more.optimizer.learning_rate = 0.0
    assert more.fit(WORDS, LABELS, batch_size=2, verbose=0).history["loss"] == pytest.approx([expected], rel=1e-5)


def test_the_loss_of_texts_in_windows_does_not_depend_on_the_batches(small_tokenizer):
    model = build(kbi.TextClassifier, small_tokenizer, 3, sequence_length=6, long_texts="windows")
    model.compile("sgd", WeightedCrossEntropy(), **QUICK_STEPS)
    found = losses_of(model, TEXTS, [0, 1, 2, 1, 0], sample_weight=np.array([1.0, 5.0, 0.0, 2.0, 3.0]))
    assert found == pytest.approx(found[-1:] * 2, rel=1e-5)
