import dataclasses
import json

import keras
import numpy as np
import pytest
from conftest import QUICK_STEPS, revealing_config
from tiers import every_backend, full_on, on

from keras_bert_impl import BertEncoder, TextClassifier, batching
from keras_bert_impl.optimization import BertAdamW

TEXTS = ["the cat is good", "the dog is bad", "a good mat", "bad rain", "red cats sat"]
PAIRS = (["the cat sat", "a dog", "rain"], ["on a mat", "ran in the red rain", "is good"])
LABELS = np.array([1, 0, 1, 0, 2])


@pytest.fixture
def config(small_tokenizer):
    return revealing_config(small_tokenizer, max_length=11, initializer_range=0.5)


@pytest.fixture
def classifier(config, small_tokenizer):
    return make_classifier(config, small_tokenizer)


def make_classifier(config, tokenizer):
    names = ["bad", "good", "neither"]
    model = TextClassifier(BertEncoder(config), 3, tokenizer=tokenizer, class_names=names)
    model.compile(optimizer=BertAdamW(1e-2), loss=model.loss, metrics=["accuracy"], **QUICK_STEPS)
    return model


def test_predictions_come_in_the_order_of_the_texts(classifier):
    order = [3, 0, 4, 2, 1]
    expected = classifier.predict(TEXTS, batch_size=2, verbose=0)
    found = classifier.predict([TEXTS[index] for index in order], batch_size=2, verbose=0)
    np.testing.assert_allclose(found, expected[order], atol=1e-5)


def test_predict_pads_texts_to_the_length_of_those_beside_them(classifier, monkeypatch):
    texts = ["red cats sat on the mat " * 2] + ["a dog ran"] * 7
    batches = []
    monkeypatch.setattr(classifier, "jit_compile", False)
    pack_rows = batching.pack_rows

    def kept(*arguments, **more):
        batches.append(pack_rows(*arguments, **more))
        return batches[-1]

    monkeypatch.setattr(batching, "pack_rows", kept)
    found = classifier.predict(texts, batch_size=4, verbose=0)
    assert {batch["token_ids"].shape for batch in batches} == {(4, 11), (4, 5)}
    np.testing.assert_allclose(found[1], classifier.predict("a dog ran", verbose=0)[0], atol=1e-6)
    np.testing.assert_allclose(found[0], classifier.predict(texts[:1], verbose=0)[0], atol=1e-6)
    assert np.abs(found[0] - found[1]).max() > 1e-4


def test_a_list_of_pairs_is_a_row_for_each_pair(classifier):
    rows = classifier.rows(list(zip(*PAIRS, strict=True)))
    for name, array in classifier.rows(PAIRS).items():
        np.testing.assert_array_equal(rows[name], array)
    # Two pairs have the same shape as two columns.
    two = classifier.rows([("the cat", "a dog"), ("sat", "ran")])
    assert classifier.tokenizer.decode(two["token_ids"][0]) == "the cat a dog"


@pytest.mark.parametrize(
    "texts",
    [
        [["the", "cat"], ["a", "dog"]],
        [("the cat", "sat"), ["a dog", "ran"]],
    ],
    ids=["words or columns", "a list among tuples"],
)
def test_lists_that_may_be_words_or_pairs_are_refused(texts, classifier):
    for call in (classifier.predict, classifier.rows, lambda x: classifier.fit(x, [0] * len(x))):
        with pytest.raises(ValueError, match="expected a string or a tuple"):
            call(texts)


def test_arguments_by_place_are_those_of_keras(classifier):
    history = classifier.fit(TEXTS, LABELS, 2, 3, 0).history
    assert len(history["loss"]) == 3 and int(classifier.optimizer.iterations) == 9
    weights = [1, 2, 1, 2, 1]
    expected = classifier.evaluate(TEXTS, LABELS, sample_weight=weights, verbose=0)
    np.testing.assert_allclose(classifier.evaluate(TEXTS, LABELS, 2, 0, weights), expected, rtol=1e-5)
    assert classifier.predict(TEXTS, 2, 0).shape == (5, 3)


@pytest.mark.parametrize("shuffle", [True, False])
def test_batches_of_ones_own_are_shuffled_where_asked(classifier, shuffle):
    class Batches(keras.utils.PyDataset):
        def __init__(self, rows):
            super().__init__()
            self.rows, self.seen = rows, []

        num_batches = 20

        def __getitem__(self, index):
            self.seen.append(index)
            return self.rows, LABELS

    batches = Batches(classifier.rows(TEXTS))
    classifier.fit(batches, shuffle=shuffle, verbose=0)
    in_order = str(list(range(20)))[1:-1]
    assert (in_order in str(batches.seen)) is not shuffle and set(batches.seen) == set(range(20))


@every_backend
@full_on("tensorflow")
def test_fit_learns_from_texts(classifier):
    classifier.compile(optimizer=BertAdamW(3e-2), loss=classifier.loss)
    classifier.fit(TEXTS, LABELS, epochs=25, verbose=0)
    assert classifier.predict(TEXTS, verbose=0).argmax(-1).tolist() == LABELS.tolist()


def test_validation_data_may_be_a_list_and_has_its_own_batch_size(classifier, monkeypatch):
    sizes, pack_rows = [], batching.pack_rows

    def kept(tokenizer, first, *arguments, **more):
        sizes.append(len(first))
        return pack_rows(tokenizer, first, *arguments, **more)

    monkeypatch.setattr(batching, "pack_rows", kept)
    classifier.fit(TEXTS, LABELS, validation_data=[TEXTS[:3], LABELS[:3]], validation_batch_size=1, verbose=0)
    assert set(sizes) == {5, 1}


def test_texts_longer_than_the_sequence_are_cut_to_it(config, small_tokenizer):
    model = TextClassifier(BertEncoder(config), 3, tokenizer=small_tokenizer, sequence_length=5)
    long, short = "the cat sat on a mat in rain", "the cat sat"
    np.testing.assert_array_equal(model.rows([long])["token_ids"], model.rows([short])["token_ids"])
    np.testing.assert_allclose(model.predict([long], verbose=0), model.predict([short], verbose=0), atol=1e-6)


def test_a_sequence_longer_than_the_position_table_is_refused(config, small_tokenizer):
    with pytest.raises(ValueError, match=r"sequence_length 12 .* max_length 11"):
        TextClassifier(BertEncoder(config), 3, tokenizer=small_tokenizer, sequence_length=12)


@pytest.mark.parametrize("texts", [[*TEXTS[:4], None], [*PAIRS[:1], [*TEXTS[:2], float("nan")]]])
def test_a_missing_text_is_named(texts, classifier):
    with pytest.raises(ValueError, match=r"text (4 is None|2 is nan)"):
        classifier.predict(texts if len(texts) > 2 else tuple(texts), verbose=0)


def test_a_tokenizer_with_more_words_than_the_embedding_is_refused(config, small_tokenizer):
    encoder = BertEncoder(dataclasses.replace(config, vocabulary_size=13))
    with pytest.raises(ValueError, match=r"tokenizer has \d+ words, but the encoder's embedding has 13"):
        TextClassifier(encoder, 3, tokenizer=small_tokenizer)


@pytest.mark.parametrize("names", [["bad", "good"], ["bad", "good", "bad"], {"a", "b", "c"}, "abc"])
def test_class_names_that_are_not_so_many_different_ones_in_order_are_refused(names, config):
    with pytest.raises(ValueError, match="class_names has to be a list of 3 different names"):
        TextClassifier(BertEncoder(config), 3, class_names=names)


@pytest.mark.parametrize("names", [np.array(["a", "b", "c"]), np.arange(3), ("a", "b", "c")])
def test_class_names_may_be_an_array(names, config, tmp_path):
    model = TextClassifier(BertEncoder(config), 3, class_names=names)
    assert model.class_names == [str(name) for name in names]
    model.save_pretrained(tmp_path)
    assert TextClassifier.from_pretrained(tmp_path).class_names == model.class_names


def test_another_number_of_classes_gets_a_new_head_and_a_warning(classifier, tmp_path):
    classifier.save_pretrained(tmp_path)
    with pytest.warns(UserWarning, match="classifier/kernel, classifier/bias: newly initialised"):
        model = TextClassifier.from_pretrained(tmp_path, num_classes=5)
    assert model.class_names == ["0", "1", "2", "3", "4"]
    assert model.predict(TEXTS, verbose=0).shape == (5, 5)


def test_a_checkpoint_without_a_classifier_asks_for_the_number_of_classes(config, small_tokenizer, tmp_path):
    BertEncoder(config).save_pretrained(tmp_path)
    small_tokenizer.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="num_classes=2"):
        TextClassifier.from_pretrained(tmp_path)


def test_class_names_are_written_in_order(classifier, tmp_path):
    classifier.save_pretrained(tmp_path)
    written = json.loads((tmp_path / "config.json").read_text())
    assert written["label2id"] == {"bad": 0, "good": 1, "neither": 2}


@on("tensorflow")  # about TensorFlow's tracing
@pytest.mark.full
def test_the_training_step_is_traced_once(classifier, monkeypatch):
    """Twice, if the optimizer's and the metrics' variables were created while it is traced."""
    traced, compute = [], type(classifier).compute_loss

    def counted(self, *arguments, **more):
        traced.append(more.get("training"))
        return compute(self, *arguments, **more)

    monkeypatch.setattr(type(classifier), "compute_loss", counted)
    classifier.compile(BertAdamW(1e-3), classifier.loss, metrics=["accuracy"])
    classifier.fit(["the cat", "a dog ran"] * 4, [0, 1] * 4, batch_size=4, verbose=0)
    assert traced.count(True) == 1
