"""The most probable words for several masks together, by beam search from left to right."""

import typing

import numpy as np

from keras_bert_impl.models.answers import best

# Combinations that are kept after each mask, if no more are asked for.
BEAM = 20


class FilledText(typing.NamedTuple):
    """One guess for all masks of a text: the filled text, the pieces as they read, their joint probability."""

    text: str
    tokens: list[str]
    probability: float


def fill_together(model, text, k):
    """The k most probable combinations of words for the masks of a text.

    The probability of a combination is the product of a probability for each word, from left to right: that of the word
    given the text in which the masks before it are filled and those after it are still masks. After each mask, the
    max(k, 20) most probable beginnings are kept; a combination whose beginning is not among them is not found.

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
    return [
        FilledText(
            tokenizer.filled_text(text, [tokenizer.id_to_token(int(word)) for word in row[places]]),
            [tokenizer.piece_text(int(word)) for word in row[places]],
            float(np.exp(score)),
        )
        for row, score in zip(ids[:k], scores, strict=False)
    ]


def _log_probabilities(model, rows, ids, place):
    """Log probabilities of the tokenizer's words at one position of each row of ids: (rows, vocabulary), float64."""
    inputs = {name: np.repeat(array, len(ids), axis=0) for name, array in rows.items()}
    inputs |= {"token_ids": ids, "mask_positions": np.full((len(ids), 1), place, "int32")}
    logits = model.predict(inputs, verbose=0)[:, 0].astype("float64")
    logits -= logits.max(axis=-1, keepdims=True)
    # An embedding may have more rows than the tokenizer has words: these take their share, but are not guessed.
    return (logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True)))[:, : model.tokenizer.vocabulary_size]
