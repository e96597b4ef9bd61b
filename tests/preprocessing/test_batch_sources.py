"""Batches of texts from tf.data and from PyTorch's DataLoader, in the forms that their users yield."""

import math

import keras
import numpy as np
import pytest
from conftest import QUICK_STEPS, WORDS, revealing_config
from made_fits import as_new, loss_of
from tiers import full_but

import keras_bert_impl as kbi
from keras_bert_impl.preprocessing import TextPreprocessor
from keras_bert_impl.preprocessing.texts import received, source_of_loader

TEXTS = ["the cat is good", "the dog is bad", "a good mat", "bad rain", "red cats sat"]
SECOND = ["sat", "ran on", "is blue", "good", "in rain"]
NUMBERS = [1, 0, 1, 0, 2]
CLASSES = ["bad", "good", "neither"]
NAMES = [CLASSES[number] for number in NUMBERS]
WEIGHTS = [1.0, 2.0, 0.5, 1.0, 3.0]


def make_classifier(tokenizer, **arguments):
    config = revealing_config(tokenizer, max_length=16)
    model = kbi.TextClassifier(kbi.BertEncoder(config), 3, tokenizer, class_names=CLASSES, **arguments)
    model.compile(optimizer="sgd", loss=model.loss, **QUICK_STEPS)
    return model


@pytest.fixture
def model(small_tokenizer):
    return make_classifier(small_tokenizer)


@pytest.fixture(scope="module")
def compiled():
    """A model that JAX compiles once for all forms of the data, and its weights."""
    model = make_classifier(kbi.WordPieceTokenizer(WORDS))
    return model, model.get_weights()


@pytest.fixture
def classifier(compiled):
    return as_new(*compiled)


def loader(examples, **arguments):
    data = pytest.importorskip("torch").utils.data
    return data.DataLoader(examples, **{"batch_size": 2, **arguments})


def dataset(columns):
    return pytest.importorskip("tensorflow").data.Dataset.from_tensor_slices(columns).batch(2)


def rows_of(*columns):
    return list(zip(*columns, strict=True))


# The data in each form, and what they are in lists.
FORMS = {
    "loader with weights": (lambda: loader(rows_of(TEXTS, NUMBERS, WEIGHTS)), TEXTS, NUMBERS, WEIGHTS),
    "loader of pairs and names": (lambda: loader(rows_of(rows_of(TEXTS, SECOND), NAMES)), (TEXTS, SECOND), NAMES, None),
    "loader of dicts": (
        lambda: loader([{"text": text, "label": number} for text, number in rows_of(TEXTS, NUMBERS)]),
        *(TEXTS, NUMBERS, None),
    ),
    "loader of dicts of pairs": (
        lambda: loader([{"text": a, "text_pair": b, "labels": n} for a, b, n in rows_of(TEXTS, SECOND, NAMES)]),
        *((TEXTS, SECOND), NAMES, None),
    ),
    "loader that collates pairs": (
        lambda: loader(
            rows_of(TEXTS, SECOND, NUMBERS), collate_fn=lambda rows: ([row[:2] for row in rows], [r[2] for r in rows])
        ),
        *((TEXTS, SECOND), NUMBERS, None),
    ),
    "tf.data of names and weights": (lambda: dataset((TEXTS, NAMES, WEIGHTS)), TEXTS, NUMBERS, WEIGHTS),
    "tf.data of pairs and names": (lambda: dataset(((TEXTS, SECOND), NAMES)), (TEXTS, SECOND), NUMBERS, None),
    "tf.data of dicts and labels": (lambda: dataset(({"text": TEXTS}, NUMBERS)), TEXTS, NUMBERS, None),
}


QUICK = (
    "loader with weights",
    "loader of dicts of pairs",
    "tf.data of names and weights",
    "tf.data of pairs and names",
)


@pytest.mark.parametrize("form", full_but(FORMS, *QUICK))
def test_batches_are_evaluated_and_trained_on_as_lists_are(form, classifier):
    make, texts, labels, weights = FORMS[form]
    history = classifier.fit(make(), validation_data=make(), epochs=2, verbose=0).history
    assert int(classifier.optimizer.iterations) == 2 * 3
    expected = loss_of(classifier, texts, labels, sample_weight=weights, batch_size=2)
    np.testing.assert_allclose([history["val_loss"][-1], loss_of(classifier, make())], expected, rtol=1e-5)


def test_a_loader_predicts_in_its_order_and_ignores_labels(model):
    expected = model.predict(TEXTS, verbose=0)
    for examples in (TEXTS, rows_of(TEXTS, NUMBERS)):
        np.testing.assert_allclose(model.predict(loader(examples), verbose=0), expected, atol=1e-5)
    pairs = model.predict(loader(rows_of(TEXTS, SECOND)), verbose=0)
    np.testing.assert_allclose(pairs, model.predict((TEXTS, SECOND), verbose=0), atol=1e-5)


def test_a_loader_of_ids_is_left_to_keras(model):
    rows = model.rows(TEXTS)
    examples = [({name: array[i] for name, array in rows.items()}, NUMBERS[i]) for i in range(5)]
    ids = loader(examples)
    assert received(ids) is ids
    np.testing.assert_allclose(loss_of(model, ids), loss_of(model, rows, NUMBERS, batch_size=2), rtol=1e-5)


def test_a_loader_shuffles_anew_in_each_epoch(model, monkeypatch):
    torch = pytest.importorskip("torch")
    seen, rows = [], TextPreprocessor.rows
    monkeypatch.setattr(
        TextPreprocessor, "rows", lambda self, x, *more, **how: seen.append(tuple(x)) or rows(self, x, *more, **how)
    )
    examples = rows_of(["the " * number for number in range(12)], [0] * 12)
    shuffled = loader(examples, batch_size=12, shuffle=True, generator=torch.Generator().manual_seed(3))
    model.fit(shuffled, epochs=4, verbose=0)
    assert len(set(seen)) >= 4 and all(sorted(batch) == sorted(text for text, _ in examples) for batch in seen)


@pytest.mark.full
def test_an_endless_loader_trains_for_the_steps_asked_for(model):
    data = pytest.importorskip("torch").utils.data

    class Endless(data.IterableDataset):
        def __iter__(self):
            while True:
                yield from rows_of(TEXTS, NUMBERS)

    source = source_of_loader(loader(Endless()))
    assert source.num_batches is None
    model.fit(loader(Endless()), steps_per_epoch=3, epochs=2, verbose=0)
    assert int(model.optimizer.iterations) == 6
    assert model.predict(loader(Endless()), steps=2, verbose=0).shape == (4, 3)


def test_the_size_of_a_dataset_is_its_own():
    sizes = [
        received(data).num_batches for data in (dataset(TEXTS), dataset(TEXTS).repeat(), dataset(TEXTS).filter(all))
    ]
    assert sizes == [3, math.inf, None]


def all(texts):
    return True


def test_lists_within_the_examples_of_a_loader_are_lists_for_each_row(small_tokenizer):
    several = make_classifier(small_tokenizer, multi_label=True)
    names = [["bad", "good"], ["neither", "bad"], ["good", "neither"], ["bad", "good"], ["good", "bad"]]
    np.testing.assert_allclose(
        loss_of(several, loader(rows_of(TEXTS, names))), loss_of(several, TEXTS, names, batch_size=2), rtol=1e-5
    )
    zeros_and_ones = [[1, 1, 0], [1, 0, 1], [0, 1, 1], [1, 1, 0], [1, 1, 0]]
    found = loss_of(several, loader(rows_of(TEXTS, zeros_and_ones)))
    np.testing.assert_allclose(found, loss_of(several, TEXTS, names, batch_size=2), rtol=1e-5)


@pytest.mark.full
def test_several_classes_a_text_may_be_a_ragged_tensor(small_tokenizer):
    tf = pytest.importorskip("tensorflow")
    several = make_classifier(small_tokenizer, multi_label=True)
    names = [["bad", "good"], [], ["good"], ["bad", "good", "neither"], []]
    ragged = tf.data.Dataset.from_tensor_slices((TEXTS, tf.ragged.constant(names, dtype=tf.string))).batch(2)
    np.testing.assert_allclose(loss_of(several, ragged), loss_of(several, TEXTS, names, batch_size=2), rtol=1e-5)


def test_a_model_keeps_its_weights_when_the_first_batch_is_wrong(model):
    expected = model.predict(TEXTS, verbose=0)
    with pytest.raises(ValueError, match=r"labels\[0\] is 'ugly'"):
        model.fit(loader(rows_of(TEXTS, ["ugly"] * 5)), verbose=0)
    np.testing.assert_array_equal(model.predict(TEXTS, verbose=0), expected)


def test_names_of_classes_are_no_second_texts_to_predict(model):
    for data in (dataset((TEXTS, NAMES)), loader(rows_of(TEXTS, NAMES))):
        with pytest.raises(Exception, match="second strings of each batch are names of classes"):
            model.predict(data, verbose=0)
    meant = model.predict(dataset(((TEXTS, NAMES),)), verbose=0)
    np.testing.assert_allclose(meant, model.predict((TEXTS, NAMES), verbose=0), atol=1e-5)


def test_two_columns_are_pairs_for_a_model_without_classes(small_tokenizer):
    config = kbi.BertConfig(29, hidden_size=6, num_layers=1, num_heads=2, intermediate_size=7, max_length=16)
    model = kbi.TextRegressor(kbi.BertEncoder(config), small_tokenizer)
    expected = model.predict((TEXTS, SECOND), verbose=0)
    for data in (dataset((TEXTS, SECOND)), loader(rows_of(TEXTS, SECOND)), dataset(((TEXTS, SECOND),))):
        np.testing.assert_allclose(model.predict(data, verbose=0), expected, atol=1e-5)


@pytest.mark.parametrize(
    "columns",
    [
        {"text": TEXTS, "label": NUMBERS, "text_b": SECOND},
        {"text_pair": TEXTS, "label": NUMBERS},
    ],
)
def test_columns_of_other_names_are_refused(columns, model):
    for data in (
        dataset(columns),
        loader([dict(zip(columns, row, strict=True)) for row in rows_of(*columns.values())]),
    ):
        with pytest.raises(Exception, match=f"columns {', '.join(columns)}, expected text"):
            model.fit(data, verbose=0)


@pytest.mark.full
def test_the_choices_of_a_loader_are_those_of_each_text(small_tokenizer):
    config = kbi.BertConfig(29, hidden_size=6, num_layers=1, num_heads=2, intermediate_size=7, max_length=16)
    model = kbi.MultipleChoice(kbi.BertEncoder(config), small_tokenizer)
    model.compile(optimizer="sgd", loss=model.loss, **QUICK_STEPS)
    texts, endings = TEXTS[:2], [["sat", "ran"], ["is bad", "the"]]  # as many texts as choices: swapped axes would fit
    found = loss_of(model, loader([((text, choices), 1) for text, choices in rows_of(texts, endings)]))
    np.testing.assert_allclose(found, loss_of(model, (texts, endings), [1, 1]), rtol=1e-5)


class Reviews(keras.utils.PyDataset):
    """Keras' own form of a dataset, with batches of texts in an array."""

    def __init__(self):
        super().__init__()
        self.texts, self.ends = np.array(TEXTS), 0

    def __len__(self):
        return 3

    def __getitem__(self, index):
        rows = slice(2 * index, 2 * index + 2)
        return self.texts[rows], np.array(NUMBERS[rows])

    def on_epoch_end(self):
        self.ends += 1


def test_a_py_dataset_of_texts_is_read_as_lists_are(classifier):
    reviews = Reviews()
    history = classifier.fit(reviews, epochs=3, validation_data=Reviews(), verbose=0).history
    assert len(history["val_loss"]) == 3 and reviews.ends >= 2
    assert history["val_loss"][-1] == pytest.approx(loss_of(classifier, TEXTS, NUMBERS))
    found = classifier.predict(TextsAlone(), verbose=0)
    np.testing.assert_allclose(found, classifier.predict(TEXTS, verbose=0), atol=1e-6)


class TextsAlone(Reviews):
    def __getitem__(self, index):
        return super().__getitem__(index)[0]
