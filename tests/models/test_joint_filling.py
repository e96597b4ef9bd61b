"""Several masks filled together, against every combination of words counted one by one."""

import numpy as np
import pytest
from conftest import QUICK_STEPS

import keras_bert_impl as kbi
from keras_bert_impl.models.masked_lm import fill_together

TEXT = "the [MASK] [MASK] in rain"


@pytest.fixture
def model(small_tokenizer):
    """Weights so large that the word for one mask changes that for the other."""
    config = kbi.BertConfig(29, hidden_size=6, num_layers=2, num_heads=2, intermediate_size=7, max_length=11)
    model = kbi.MaskedLM(kbi.BertEncoder(config), tokenizer=small_tokenizer)
    model.compile(loss=model.loss, **QUICK_STEPS)
    random = np.random.default_rng(57)
    for weight in model.weights:
        weight.assign(random.normal(size=weight.shape, scale=1.5))
    return model


def next_words(model, texts):
    """The probabilities of the words for the first mask of each text, as `predict` gives them."""
    logits = model.predict(texts, verbose=0)[:, 0].astype("float64")
    return np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)


def every_combination(model):
    """The joint probability of every pair of whole words for the two masks of TEXT."""
    words = [(number, word) for number, word in enumerate(model.tokenizer.vocabulary) if word.isalpha()]
    [first] = next_words(model, [TEXT])
    second = next_words(model, [TEXT.replace("[MASK]", word, 1) for _, word in words])
    return {
        (one, other): first[number] * second[row, place]
        for row, (number, one) in enumerate(words)
        for place, other in words
    }


def test_the_likeliest_combinations_are_those_of_counting_all(model):
    found = fill_together(model, TEXT, 24**2)  # as many as there are, so that none is left out
    shares = {tuple(filled.tokens): filled.probability for filled in found}
    for pair, share in every_combination(model).items():
        assert shares[pair] == pytest.approx(share, rel=1e-3)
    assert len(shares) == 24**2 and sum(shares.values()) < 1  # five rows of the embedding are no words
    assert list(shares.values()) == sorted(shares.values(), reverse=True)
    assert model.fill_mask(TEXT, top_k=3, together=True)[0] == found[0]


def test_a_combination_is_not_the_words_that_are_likeliest_alone(model):
    expected = every_combination(model)
    alone = tuple(guesses[0].token for guesses in model.fill_mask(TEXT, top_k=1))
    [together] = model.fill_mask(TEXT, top_k=1, together=True)
    assert tuple(together.tokens) == max(expected, key=expected.get) != alone
    assert (alone, together.text) == (("cat", "cat"), "the cat rain in rain")


def test_several_texts_are_filled_as_each(model):
    texts = [TEXT, "the [MASK] sat"]
    found = model.fill_mask(texts, top_k=3, together=True)
    for filled, text in zip(found, texts, strict=True):
        assert [one.text for one in filled] == [one.text for one in model.fill_mask(text, top_k=3, together=True)]
        assert len(filled) == 3


@pytest.mark.parametrize(
    ("text", "tokens", "expected"),
    [
        ("The [MASK] is ([MASK]).", ["cat", "red"], "The cat is (red)."),
        ("Two cat [MASK] ran.", ["##s"], "Two cats ran."),
        ("[MASK] [MASK][MASK]!", ["cat", "##s", "ran"], "cats ran!"),
        ("a[MASK]b", ["cat"], "a cat b"),
    ],
)
def test_pieces_are_joined_to_the_word_before_them(text, tokens, expected, small_tokenizer):
    assert small_tokenizer.filled_text(text, tokens) == expected
