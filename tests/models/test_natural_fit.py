"""Every model is fitted, evaluated and asked on texts of very different lengths, compiled as Keras compiles."""

import numpy as np
import pytest
from conftest import QUICK_STEPS, WORDS
from tiers import every_backend, full_but, full_on, on

import keras_bert_impl as kbi

# The long rows come after the short ones: what a compiled step took for the length of all rows would be wrong there.
TEXTS = [*["the cat sat", "rain"] * 4, "the dog ran on a mat in rain " * 4, *["red rain is good , " * 3, "it"] * 2]
OTHERS = ["a dog", "the cats sat on a mat , it is bad ."] * 6 + ["blue"]
ANSWERS = [(text.split()[0], 0) if row % 3 else None for row, text in enumerate(TEXTS)]
NUMBERS = [row % 2 for row in range(len(TEXTS))]
WORD_LISTS = [text.split() for text in TEXTS]
# For each kind: its arguments, what it is fitted on, and the question that it is asked afterwards.
CASES = {
    "TextClassifier": ({"num_classes": 2}, (TEXTS, NUMBERS), lambda model: model.classify(TEXTS)),
    "TextRegressor": ({}, ((TEXTS, OTHERS), [0.5 * number for number in NUMBERS]), None),
    "TokenClassifier": (
        {"num_classes": 2, "class_names": ["O", "B-X"]},
        (WORD_LISTS, [["O", "B-X"] * (len(words) // 2) + ["O"] * (len(words) % 2) for words in WORD_LISTS]),
        lambda model: model.tag(TEXTS),
    ),
    "QuestionAnswerer": ({}, ((OTHERS, TEXTS), ANSWERS), lambda model: model.answer(OTHERS, TEXTS)),
    "NextSentencePredictor": ({}, ((TEXTS, OTHERS), NUMBERS), lambda model: model.follows(TEXTS, OTHERS)),
    "MultipleChoice": (
        {},
        ((TEXTS, [[text, "it"] for text in OTHERS]), NUMBERS),
        lambda model: model.choose(TEXTS, [[text, "it"] for text in OTHERS]),
    ),
    "MaskedLM": ({}, (TEXTS,), lambda model: model.fill_mask([f"{text} [MASK]" for text in TEXTS])),
    "TextEmbedder": ({}, ((TEXTS, OTHERS),), lambda model: model.embed(TEXTS)),
}


def encoder(**options):
    """A small encoder of at most 64 tokens."""
    sizes = {"hidden_size": 6, "num_layers": 1, "num_heads": 2, "intermediate_size": 7, "max_length": 64}
    return kbi.BertEncoder(kbi.BertConfig(len(WORDS), **sizes, **options))


@every_backend
@full_on("jax")
@pytest.mark.parametrize("kind", full_but(CASES, "TextClassifier", on=("tensorflow",)))
def test_a_model_is_fitted_and_asked_on_rows_of_several_lengths(kind, small_tokenizer):
    arguments, data, ask = CASES[kind]
    model = getattr(kbi, kind)(encoder(), tokenizer=small_tokenizer, **arguments)
    history = model.fit(*data, batch_size=3, verbose=0).history["loss"]
    assert len(history) == 1 and np.isfinite(history).all()
    assert int(model.optimizer.iterations) == 5
    assert np.isfinite(model.evaluate(*data, batch_size=3, verbose=0)).all()
    if ask:
        assert len(ask(model)) == len(TEXTS)


@on("tensorflow")
@pytest.mark.full
@pytest.mark.parametrize("kind", ["TextClassifier", "TextRegressor", "MaskedLM", "TextEmbedder"])
def test_a_dataset_of_texts_trains_as_lists_do(kind, small_tokenizer):
    import tensorflow as tf

    arguments, data, _ = CASES[kind]
    model = getattr(kbi, kind)(encoder(), tokenizer=small_tokenizer, **arguments)
    if model.compiled:  # an embedder compiles for its data
        model.compile(optimizer="sgd", loss=model.loss, **QUICK_STEPS)
    slices = data if len(data) > 1 else data[0]
    history = model.fit(tf.data.Dataset.from_tensor_slices(slices).batch(3), verbose=0).history["loss"]
    assert np.isfinite(history).all() and int(model.optimizer.iterations) == 5
    if kind == "TextClassifier":
        found = model.predict(tf.data.Dataset.from_tensor_slices(TEXTS).batch(2), verbose=0)
        np.testing.assert_allclose(found, model.predict(TEXTS, verbose=0), atol=1e-5)
