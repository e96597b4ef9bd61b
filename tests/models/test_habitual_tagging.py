"""A TokenClassifier compiled and fitted as a person writes it in Keras, and what its loss and metrics then count."""

import keras
import numpy as np
import pandas
import pytest
from conftest import QUICK_STEPS, revealing_config
from tiers import every_backend, full_but, full_on

import keras_bert_impl as kbi
from keras_bert_impl.preprocessing.fit_inputs import rows_of

CLASSES = ["O", "B-PER", "I-PER"]
SENTENCES = [
    (["the", "cats", "sat", "on", "a", "mat"], ["O", "B-PER", "O", "O", "O", "B-PER"]),
    (["rain"], ["O"]),
    (["red", "dogs", "ran"], ["B-PER", "I-PER", "O"]),
    (["a", "dog"], ["O", "B-PER"]),
]
WORDS, TAGS = map(list, zip(*SENTENCES, strict=True))
HABITS = {
    "name": "sparse_categorical_crossentropy",
    "object": keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    "of probabilities": keras.losses.SparseCategoricalCrossentropy(),
    "torch's number": keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=-100),
    "scikit-learn's number": keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=-1),
    "ours": kbi.losses.WeightedCrossEntropy(),
    "by the output": {"classifier": "sparse_categorical_crossentropy"},
}


@pytest.fixture
def model(small_tokenizer):
    keras.utils.set_random_seed(4)
    config = revealing_config(small_tokenizer, max_length=32, initializer_range=0.7)
    return kbi.TokenClassifier(kbi.BertEncoder(config), 3, small_tokenizer, class_names=CLASSES)


def by_hand(model):
    """The mean loss and the accuracy of the twelve words, from what `predict` gives for their first pieces."""
    logits, words = (
        model.predict(WORDS, verbose=0).astype("float64"),
        model.make_preprocessor().rows(WORDS).source.words,
    )
    losses, right = [], []
    for scores, places, tags in zip(logits, words, TAGS, strict=True):
        for number, tag in enumerate(tags):
            of_word, label = scores[list(places).index(number)], CLASSES.index(tag)
            losses.append(np.log(np.exp(of_word).sum()) - of_word[label])
            right.append(of_word.argmax() == label)
    return np.mean(losses), np.mean(right)


@every_backend
@full_on("jax")
@pytest.mark.parametrize("habit", full_but(HABITS, "name", on=("tensorflow",)))
def test_the_habitual_compile_has_the_loss_and_accuracy_of_the_words(model, habit):
    model.compile("adam", HABITS[habit], metrics=["accuracy"], **QUICK_STEPS)
    found = model.evaluate(WORDS, TAGS, batch_size=2, verbose=0)
    np.testing.assert_allclose(found, by_hand(model), rtol=1e-5)


@pytest.mark.parametrize("no_label", [-1, -100])
def test_ids_with_either_number_for_no_label_are_taken(model, no_label):
    model.compile("adam", "sparse_categorical_crossentropy", **QUICK_STEPS)
    rows = rows_of(model, model.make_preprocessor(), WORDS, TAGS, None)
    inputs, labels = model.rows(WORDS, pad_to=32), np.where(rows.labels < 0, no_label, rows.labels)
    found = model.evaluate(inputs, labels, verbose=0, return_dict=True)["loss"]
    assert found == pytest.approx(by_hand(model)[0], rel=1e-5)


def test_a_summed_loss_is_the_sum_over_the_words(model):
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="sum")
    model.compile("adam", loss, **QUICK_STEPS)
    found = model.evaluate(WORDS, TAGS, verbose=0, return_dict=True)["loss"]
    assert found == pytest.approx(12 * by_hand(model)[0], rel=1e-5)


def as_objects(lists):
    array = np.empty(len(lists), object)
    array[:] = lists
    return array


FORMS = {
    "zip": lambda words, tags: tuple(zip(*zip(words, tags, strict=True), strict=True)),
    "object arrays": lambda words, tags: (as_objects(words), as_objects(tags)),
    "Series": lambda words, tags: (pandas.Series(words), pandas.Series(tags)),
    "values of a frame": lambda words, tags: tuple(pandas.DataFrame({"w": words, "t": tags})[["w", "t"]].values.T),
}


@pytest.mark.parametrize("form", FORMS)
def test_sentences_are_read_in_every_form_that_people_have_them(model, form):
    words, tags = FORMS[form](WORDS[:2], TAGS[:2])
    expected = model.evaluate(WORDS[:2], TAGS[:2], verbose=0)
    assert model.evaluate(words, tags, verbose=0) == expected
    model.fit(words, tags, verbose=0, validation_data=(words, tags))
    model.fit(words, tags, verbose=0, validation_split=0.5)


def test_two_sentences_of_equal_length_are_no_pair_of_texts(model):
    words, tags = (["a", "dog"], ["the", "cats"]), (["O", "B-PER"], ["O", "B-PER"])
    expected = model.evaluate(list(words), list(tags), verbose=0)
    assert model.evaluate(words, tags, verbose=0) == model.evaluate(np.array(words), np.array(tags), verbose=0)
    assert model.evaluate(words, tags, verbose=0) == expected
    assert model.tag(words) == model.tag(list(words))


def test_an_empty_word_has_no_token_and_no_label(model):
    """`padded_batch` fills sentences up with empty words."""
    padded = [[*words, *[""] * (6 - len(words))] for words in WORDS]
    for fill in ("", "O", 0, -1):
        labels = [[*tags, *[fill] * (6 - len(tags))] for tags in TAGS]
        assert model.evaluate(padded, labels, verbose=0) == model.evaluate(WORDS, TAGS, verbose=0)
        assert model.evaluate(np.array(padded), np.array(labels), verbose=0) == model.evaluate(WORDS, TAGS, verbose=0)
    np.testing.assert_array_equal(model.predict(padded, verbose=0), model.predict(WORDS, verbose=0))
