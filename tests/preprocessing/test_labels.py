"""Labels and sample weights of every head: which are accepted, and which are refused by name before training."""

import warnings

import keras
import numpy as np
import pytest
from conftest import QUICK_STEPS, revealing_config
from tiers import full_but

import keras_bert_impl as kbi
from keras_bert_impl.batching import LengthBatches, Rows
from keras_bert_impl.losses import NO_LABEL, LabelledAccuracy
from keras_bert_impl.text.tokenizers.rows import TextsCutWarning

TEXTS = ["the cat is good", "the dog is bad", "a good mat"]
PAIRS = (["is it good", "is it", "a dog"], ["the cat", "a dog sat", "ran in rain"])
CHOICES = (TEXTS, [["sat", "ran on"], ["is bad", "in rain"], ["sat", "the"]])
# A label for each token of TEXTS, [CLS] and [SEP] included.
TOKEN_LABELS = [[-1, 0, 1, 2, 3, -100], [-1, 0, 1, 2, 3, -1], [-1, 1, 2, 3, -1]]
# The model, texts, their labels, and wrong labels with the error that they raise.
HEADS = {
    "text_classifier": (kbi.TextClassifier, {"num_classes": 3}, TEXTS, [1, 0, 2], [1, 0, 3], "labels[2] is 3"),
    "token_classifier": (
        kbi.TokenClassifier,
        {"num_classes": 4},
        TEXTS,
        TOKEN_LABELS,
        [[-1, 0, 1, 2, 4, -100], *TOKEN_LABELS[1:]],
        "labels[0][4] is 4",
    ),
    # The second row is [CLS] is it [SEP] a dog sat [SEP], "it" being [UNK]: 8 tokens.
    "question_answerer": (
        kbi.QuestionAnswerer,
        {},
        PAIRS,
        [[5, 6], (0, 0), [4, 4]],
        [[5, 6], [0, 8], [4, 4]],
        "labels[1][1] is 8",
    ),
    "next_sentence": (kbi.NextSentencePredictor, {}, PAIRS, [1, 0, 1], [1, 0, 2], "labels[2] is 2"),
    "multiple_choice": (kbi.MultipleChoice, {}, CHOICES, [1, 0, 1], [2, 0, 1], "labels[0] is 2"),
    "text_regressor": (kbi.TextRegressor, {}, TEXTS, [0.5, -1, 2], [0.5, float("nan"), 2], "labels[1] is nan"),
}
head = pytest.mark.parametrize("kind", full_but(HEADS, "text_classifier", "token_classifier", "question_answerer"))


@pytest.fixture
def make(small_tokenizer):
    """Builds a model of two layers and eleven positions without dropout."""
    config = revealing_config(small_tokenizer, max_length=11)

    def build(kind):
        kind_of_model, arguments, *_ = HEADS[kind]
        model = kind_of_model(kbi.BertEncoder(config), tokenizer=small_tokenizer, **arguments)
        model.compile(optimizer="sgd", loss=model.loss, **QUICK_STEPS)
        return model

    return build


def loss_of(model, *data, **arguments):
    return np.ravel(model.evaluate(*data, verbose=0, **arguments))[0]


@head
def test_labels_and_weights_may_be_lists_or_tuples_of_texts_or_ids(kind, make):
    _, _, texts, labels, *_ = HEADS[kind]
    model = make(kind)
    validation = (texts, tuple(labels), [1, 2, 1])
    history = model.fit(texts, labels, sample_weight=(1, 2, 1), validation_data=validation, verbose=0).history
    assert np.isfinite(history["loss"]).all()
    expected = history["val_loss"]
    np.testing.assert_allclose(loss_of(model, texts, labels, sample_weight=(1, 2, 1)), expected, rtol=1e-5)
    # The scores of the padding take part in the softmax of an answerer, which therefore needs rows of equal length.
    rows = model.rows(texts, 8 if kind == "question_answerer" and not model.jit_compile else None)
    if kind == "token_classifier":
        labels = [row + [-1] * (11 - len(row)) for row in labels]
    np.testing.assert_allclose(loss_of(model, rows, labels, sample_weight=[1, 2, 1]), expected, rtol=1e-5)


def check_refused(call, message):
    with pytest.raises(ValueError) as error:
        call()
    assert message in str(error.value)


@head
def test_a_label_out_of_range_is_refused_before_training(kind, make):
    _, _, texts, labels, wrong, message = HEADS[kind]
    model = make(kind)
    rows = model.rows(texts)
    check_refused(lambda: model.fit(texts, wrong, verbose=0), message)
    check_refused(lambda: model.fit(texts, labels, validation_data=(texts, wrong), verbose=0), message)
    if kind == "token_classifier":
        wrong = [row + [-1] * (11 - len(row)) for row in wrong]
    check_refused(lambda: model.fit(rows, np.array(wrong), verbose=0), message)
    assert int(model.optimizer.iterations) == 0


@pytest.mark.parametrize("kind", ["text_classifier", "token_classifier", "question_answerer"])
def test_labels_of_another_number_are_refused(kind, make):
    _, _, texts, labels, *_ = HEADS[kind]
    model = make(kind)
    message = "zip() arg" if kind == "token_classifier" else "labels have shape (2,"
    check_refused(lambda: model.fit(texts, labels[:2], verbose=0), message)
    check_refused(lambda: model.fit(texts, labels, sample_weight=[1, 1], verbose=0), "sample_weight has shape (2,)")


@pytest.mark.parametrize("no_label", NO_LABEL)
def test_a_row_without_a_label_is_refused(no_label, make):
    labels = [0, no_label, 1]
    check_refused(lambda: make("text_classifier").fit(TEXTS, labels, verbose=0), f"is {no_label}, out of range")


def test_minus_one_and_minus_one_hundred_have_no_weight_in_token_classification(make):
    model = make("token_classifier")
    model.compile(loss=model.loss, metrics=[LabelledAccuracy()], **QUICK_STEPS)
    logits = model.predict(TEXTS, verbose=0)
    losses, right = [], []
    for row, labels in zip(logits, TOKEN_LABELS, strict=True):
        for token, label in zip(row, labels, strict=False):
            if label >= 0:
                losses.append(np.log(np.exp(token).sum()) - token[label])
                right.append(token.argmax() == label)
    found = model.evaluate(TEXTS, TOKEN_LABELS, verbose=0)
    np.testing.assert_allclose(found, [np.mean(losses), np.mean(right)], rtol=1e-5)


def test_the_weight_of_a_row_is_that_of_all_its_tokens(make):
    model = make("token_classifier")
    first, third = (loss_of(model, [TEXTS[i]], [TOKEN_LABELS[i]]) for i in (0, 2))
    for weights in ([1, 0, 2], [[1] * 6, [0] * 6, [2] * 5]):
        found = loss_of(model, TEXTS, TOKEN_LABELS, sample_weight=weights)
        # The first text has four labels, the third three.
        np.testing.assert_allclose(found, (4 * first + 6 * third) / 10, rtol=1e-5)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([[1, 2], *TOKEN_LABELS[1:]], "labels[0] has shape (2,), but text 0 has 6 tokens"),
        ([*TOKEN_LABELS[:2], [-1, 1, 2, 3, -1, 2]], "labels[2][5] is 2, after the last token of its text"),
    ],
)
def test_labels_of_other_tokens_than_ours_are_refused(make, labels, message):
    check_refused(lambda: make("token_classifier").fit(TEXTS, labels, verbose=0), message)


def test_labels_go_on_behind_a_text_that_was_cut(make):
    model = make("token_classifier")
    long = ["the cat sat on a mat in rain . the cat"]
    with pytest.warns(UserWarning, match="1 of 1 texts have more than 11 tokens"):
        found = loss_of(model, long, [[-1, *[2] * 11, -1]])
    np.testing.assert_allclose(found, loss_of(model, ["the cat sat on a mat in rain ."], [[-1] + [2] * 10]))


@pytest.mark.parametrize(
    ("kind", "labels", "message"),
    [
        ("text_classifier", np.eye(3), "labels have shape (3, 3), expected (3,)"),
        ("text_classifier", [0.5, 1, 1], "labels[0] is 0.5, not a whole number"),
        ("text_classifier", ["good", "bad", "good"], "labels[0] is 'good', which is not one of the classes 0, 1, 2."),
        ("question_answerer", [1, 2, 3], "labels have shape (3,), expected (3, 2)"),
        ("text_regressor", np.ones((3, 2)), "labels have shape (3, 2), expected (3,)"),
    ],
)
def test_labels_of_another_kind_are_refused(kind, labels, message, make):
    check_refused(lambda: make(kind).fit(HEADS[kind][2], labels, verbose=0), message)


def test_labels_as_wide_as_the_rows_are_wanted_beside_ids(make):
    model = make("token_classifier")
    message = "labels have shape (3, 9), expected (3, 11)"
    check_refused(lambda: model.fit(model.rows(TEXTS), np.zeros((3, 9), int), verbose=0), message)


def test_a_loss_of_another_kind_has_labels_of_its_own(make):
    model = make("text_classifier")
    model.compile(loss=keras.losses.CategoricalCrossentropy(from_logits=True), optimizer="sgd", **QUICK_STEPS)
    by_rows = loss_of(model, TEXTS, np.eye(3)[[1, 0, 2]].tolist())
    model.compile(loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True), optimizer="sgd", **QUICK_STEPS)
    check_refused(lambda: model.evaluate(TEXTS, [1, 0, 3], verbose=0), "labels[2] is 3")
    np.testing.assert_allclose(by_rows, loss_of(model, TEXTS, [1, 0, 2]), rtol=1e-5)


def test_batches_are_checked_as_texts_are(make, small_tokenizer):
    rows = Rows([[7], [7, 8], [9]], labels=[0, 3, 1])
    batches = LengthBatches(small_tokenizer, rows, batch_size=2, sequence_length=11)
    check_refused(lambda: make("text_classifier").fit(batches, verbose=0), "labels[1] is 3")


@pytest.mark.parametrize("kind", ["question_answerer", "next_sentence"])
def test_a_model_of_pairs_refuses_single_texts(kind, make):
    model = make(kind)
    for call in (model.predict, model.rows, lambda texts: model.fit(texts, HEADS[kind][3])):
        check_refused(lambda call=call: call(TEXTS), "got single texts: pass a tuple of two columns")
    check_refused(lambda: model.predict("is it"), "got single texts")


def test_multiple_choice_predicts_texts_in_their_order(make):
    model = make("multiple_choice")
    scores = model.predict(CHOICES, verbose=0)
    np.testing.assert_allclose(scores, model.predict(model.rows(CHOICES), verbose=0), atol=1e-6)
    check_refused(
        lambda: model.predict((TEXTS, [["a"], ["a", "the"], ["a"]])), "text 1 has 2 choices, but text 0 has 1"
    )


NAMES = ["bad", "good", "neither"]


@pytest.mark.parametrize(
    "container",
    [list, lambda names: np.array([name.encode() for name in names]), lambda names: pandas_of(names)],
    ids=["list", "bytes", "pandas"],
)
def test_names_of_classes_are_their_numbers(container, make):
    model = make("text_classifier")
    model.class_names = NAMES
    expected = loss_of(model, TEXTS, [1, 0, 2])
    np.testing.assert_allclose(loss_of(model, TEXTS, container(["good", "bad", "neither"])), expected, rtol=1e-5)
    np.testing.assert_allclose(loss_of(model, model.rows(TEXTS), ["good", "bad", "neither"]), expected, rtol=1e-5)


def pandas_of(names):
    return pytest.importorskip("pandas").Series(names)


def test_names_of_the_classes_of_tokens_stand_between_numbers(make):
    model = make("token_classifier")
    model.class_names = ["O", "B-X", "I-X", "B-Y"]
    named = [[model.class_names[label] if label >= 0 else label for label in row] for row in TOKEN_LABELS]
    np.testing.assert_allclose(loss_of(model, TEXTS, named), loss_of(model, TEXTS, TOKEN_LABELS), rtol=1e-5)
    named[1][2] = "B-Z"
    with pytest.raises(
        ValueError, match=r"labels\[1\]\[2\] is 'B-Z', which is not one of the classes O, B-X, I-X, B-Y"
    ):
        loss_of(model, TEXTS, named)


@pytest.mark.parametrize(("kind", "wrong"), [("text_regressor", float("nan")), ("token_classifier", -1.0)])
def test_a_weight_that_would_spoil_the_model_is_refused(kind, wrong, make):
    _, _, texts, labels, *_ = HEADS[kind]
    model = make(kind)
    for data in (texts,) if kind == "token_classifier" else (texts, model.rows(texts)):
        with pytest.raises(ValueError, match=r"sample_weight\[1\] is (nan|-1.0), expected a finite number"):
            model.fit(data, labels, sample_weight=np.array([1.0, wrong, 1.0]), verbose=0)


@pytest.mark.full
def test_an_error_in_labels_comes_before_a_warning_of_texts_that_were_cut(make):
    with warnings.catch_warnings():
        warnings.simplefilter("error", TextsCutWarning)
        with pytest.raises(ValueError, match="is 7, out of range"):
            make("text_classifier").fit(["the cat is good " * 9, "a"], [1, 7], verbose=0)
