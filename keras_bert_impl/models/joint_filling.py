"""The most probable words for several masks together, by beam search from left to right."""

import typing

import numpy as np

from keras_bert_impl.models.answers import best

# Combinations that are kept after each mask, if no more are asked for.
BEAM = 20


class FilledText(typing.NamedTuple):
    """One guess for all masks of a text: the filled text, the vocabulary's pieces, their joint probability."""

    text: str
    tokens: list[str]
    probability: float


def fill_together(model, text, k):
    """The k most probable combinations of words for the masks of a text.

    The probability of a combination is the product of a probability for each word, from left to right: that of the word
    given the text in which the masks before it are filled and those after it are still masks. After each mask, the
    max(k, 20) most probable beginnings are kept; a combination whose beginning is not among them is not found.

    Args:
        model: a MaskedLM with a tokenizer.
        text: with at least one [MASK].
        k: how many combinations.

    Returns: a list of k FilledText, the most probable first.
    """
    tokenizer = model.tokenizer
    rows = model.rows([text])
    width = max(k, BEAM)
    ids, scores = rows["token_ids"], np.zeros(1)  # (combinations, length), (combinations,)
    for place in np.flatnonzero(ids[0] == tokenizer.mask_id):
        scores = scores[:, None] + _log_probabilities(model, rows, ids, place)  # (combinations, vocabulary)
        [kept] = best(scores.reshape(1, -1), min(width, scores.size))
        beginnings, words = np.unravel_index(kept, scores.shape)
        ids, scores = ids[beginnings].copy(), scores[beginnings, words]
        ids[:, place] = words
    places = rows["token_ids"][0] == tokenizer.mask_id
    combinations = [[tokenizer.id_to_token(int(word)) for word in row[places]] for row in ids[:k]]
    return [
        FilledText(filled_text(text, tokens), tokens, float(np.exp(score)))
        for tokens, score in zip(combinations, scores, strict=False)
    ]


def _log_probabilities(model, rows, ids, place):
    """Log probabilities of the tokenizer's words at one position of each row of ids: (rows, vocabulary), float64."""
    inputs = {name: np.repeat(array, len(ids), axis=0) for name, array in rows.items()}
    inputs |= {"token_ids": ids, "mask_positions": np.full((len(ids), 1), place, "int32")}
    logits = model.predict(inputs, verbose=0)[:, 0].astype("float64")
    logits -= logits.max(axis=-1, keepdims=True)
    # An embedding may have more rows than the tokenizer has words: these take their share, but are not guessed.
    return (logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True)))[:, : model.tokenizer.vocabulary_size]


def filled_text(text, tokens):
    """The text with a token in place of each [MASK]; "##s" is joined to the word before it."""
    filled, *others = text.split("[MASK]")
    for token, following in zip(tokens, others, strict=True):
        if token.startswith("##"):
            filled, token = filled.rstrip(), token.removeprefix("##")
        elif filled[-1:].isalnum():  # a word of its own, although the mask follows without a space
            filled += " "
        filled += token + (" " if following[:1].isalnum() else "") + following
    return filled
