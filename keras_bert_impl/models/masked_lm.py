"""The masked language model alone: trains on raw text, fills in masks."""

import typing

import keras
import numpy as np
from keras import ops

from keras_bert_impl.encoders.asked import Asked
from keras_bert_impl.losses import NO_LABEL, LabelledAccuracy, WeightedCrossEntropy
from keras_bert_impl.models.answers import best
from keras_bert_impl.models.task_model import TaskModel
from keras_bert_impl.preprocessing import MaskedLMPreprocessor
from keras_bert_impl.preprocessing.labels import LabelRule
from keras_bert_impl.preprocessing.texts import is_empty, to_strings
from keras_bert_impl.text.tokenizers.rows import pack_rows, sentence_without_mask

# Combinations of words for several masks that are kept after each, if no more are asked for.
BEAM = 20


class FilledMask(typing.NamedTuple):
    """One guess for one mask, as `MaskedLM.fill_mask` returns it.

    Fields:
        token (str): the token as text, with the space before it if the vocabulary counts it as part of the token.
        id (int): its number in the vocabulary.
        probability (float): its probability.
    """

    token: str
    id: int
    probability: float


class FilledText(typing.NamedTuple):
    """One guess for all masks of a text, as `MaskedLM.fill_mask` with `together=True` returns it.

    Fields:
        text (str): the text with all masks filled.
        tokens (list of str): the tokens in place of the masks, as text.
        probability (float): their joint probability.
    """

    text: str
    tokens: list[str]
    probability: float


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class MaskedLM(TaskModel):
    """Predicts masked words, and trains an encoder on raw text by masking it.

    Open a checkpoint with `from_pretrained`, and use `fill_mask` for guesses. `fit(texts)` continues pre-training on
    your own texts: it masks them itself, differently in each epoch. `evaluate(texts)` always masks them in the same
    way. The head scores words by the token embedding (Devlin et al. 2019, section 3.1, task 1). The model is compiled
    with AdamW at 5e-5, the mean loss over masked tokens, and accuracy.

    Args:
        encoder (keras.Model): encoder of any family, such as a `BertEncoder`; the head shares its token embedding.
        tokenizer (Tokenizer, optional): tokenizer, needed for texts. Default: None, for token IDs only.
        sequence_length (int, optional): largest number of tokens in an input. Default: the encoder's `max_length`.
        seed (int, optional): random seed for masking. Default: 0.
        enhanced_decoder (bool, optional): whether DeBERTa's enhanced mask decoder predicts the words, which also sees
            absolute positions (He et al. 2021, section 3.2). It takes at most `max_length` tokens. Default: False;
            `from_pretrained` detects it.

    Input:  texts, for `predict` and `fill_mask` with `[MASK]`, or the tokenizer's own mask such as `<mask>`; or dict of
            the encoder's inputs and `mask_positions` (batch, predictions), int32.
    Output: logits (batch, predictions, vocabulary), float32.
    Labels: none for texts; for token IDs `mask_ids`, with `mask_weights` as sample weights, both (batch, predictions).
    Raises: ValueError for an encoder that reads in one direction, if the tokenizer does not fit the encoder, or if
        sequence_length is above its max_length.

    Example:
        >>> model = kbi.MaskedLM.from_pretrained("small_english")
        >>> [guesses] = model.fill_mask("She drank a cup of [MASK].", top_k=3)
        >>> [guess.token for guess in guesses]
        ['...', '...', '...']
        >>> history = model.fit(["A cat sleeps.", "A dog barks."], verbose=0)
    """

    preprocessor_class = MaskedLMPreprocessor
    asked = Asked("fill_mask", {"serving_default": {"text": ["The capital of France is [MASK]."]}}, "tokens")
    head_arguments = ("seed", "enhanced_decoder")
    label_kind = "masked"
    counterpart = "ForMaskedLM"

    def __init__(
        self,
        encoder,
        tokenizer=None,
        sequence_length=None,
        seed=0,
        enhanced_decoder=False,
        name="bert_masked_lm",
    ):
        config = encoder.config
        direction = getattr(config, "direction", "both")
        if direction != "both":
            raise ValueError(f"An encoder that reads {direction} predicts the next token: use a Pretrainer.")
        mask_positions = keras.Input((None,), dtype="int32", name="mask_positions")
        states, predicted = encoder.masked_states(encoder.input, mask_positions)
        if enhanced_decoder:
            states = encoder.decoded_states()
        logits = encoder.masked_lm_head()(states, predicted)
        inputs = {**encoder.input, "mask_positions": mask_positions}
        arguments = {"seed": seed, "enhanced_decoder": enhanced_decoder}
        super().__init__(encoder, tokenizer, sequence_length, logits, name, inputs, **arguments)
        self.random = np.random.default_rng(seed)  # of which each `fit` draws the seed of its masks

    def usual_objective(self):
        # The mean over the predicted tokens; Keras' default would count the padding, too.
        return {"loss": WeightedCrossEntropy(ignore_class=NO_LABEL), "weighted_metrics": [LabelledAccuracy()]}

    def label_rule(self, sizes):
        shape = (len(sizes.tokens), sizes.predictions)
        return LabelRule(
            shape, self.encoder.config.vocabulary_size, "the id of a masked token, or -1 for none", per_token=True
        )

    def data_seed(self, is_drawn=True):
        return int(self.random.integers(2**31)) if is_drawn or self.seed is None else self.seed

    def rows(self, texts, pad_to=None):
        """Returns the model's input arrays for texts with masks.

        Args:
            texts (list of str): texts in which `[MASK]` stands for a masked word.
            pad_to (int, optional): length to pad to. Default: that of the longest text, rounded up to a multiple of 32.

        Returns: dict of int32 arrays: (batch, length) for the encoder's inputs, (batch, masks) for `mask_positions`.
        Raises: ValueError if a text has no mask, or more tokens than `sequence_length`.
        """
        tokenizer, texts = self.tokenizer, to_strings(texts)
        # Packing adds the special tokens again.
        ids = [tokenizer.template.text_in(tokenizer.encode_with_masks(text).ids) for text in texts]
        for text, row in zip(texts, ids, strict=True):
            if tokenizer.mask_id not in row:
                raise ValueError(sentence_without_mask(text, tokenizer.mask_texts[0]))
            length = tokenizer.template.first_length(len(row), is_pair=False)
            if length > self.sequence_length:  # a mask could be cut away
                raise ValueError(f"{text[:60]!r}... has {length} tokens, but the model takes {self.sequence_length}.")
        rows = pack_rows(tokenizer, ids, None, self.sequence_length, pad_to)
        places = [np.flatnonzero(row == tokenizer.mask_id) for row in rows["token_ids"]]
        rows["mask_positions"] = np.zeros((len(texts), max(map(len, places))), "int32")
        for row, place in enumerate(places):
            rows["mask_positions"][row, : len(place)] = place
        return rows

    def named_outputs(self, logits, rows=None):
        """`logits`, (batch, masks, vocabulary)."""
        return {"logits": logits}

    def fill_mask(self, text, top_k=5, together=False, batch_size=32):
        """Returns the most likely words for each `[MASK]` of a text.

        Args:
            text (str or list): a text with at least one mask, or several texts.
            top_k (int, optional): number of words for each mask, or of combinations with together. Default: 5.
            together (bool, optional): whether to search for the most likely combination of words for all masks. False
                guesses each mask alone. Default: False.
            batch_size (int, optional): number of texts in a batch; not used with together. Default: 32.

        Returns: for a text a list with an entry for each mask, which is a list of top_k `FilledMask` (`token`, `id`,
            `probability`), the most likely first. With together, a list of top_k `FilledText` (`text`, `tokens`,
            `probability`). For several texts, a list of such lists.
        Raises: ValueError if a text has no mask, or more tokens than `sequence_length`.

        Example:
            >>> model = kbi.MaskedLM.from_pretrained("small_english")
            >>> model.fill_mask("The capital of France is [MASK].", top_k=1)
            [[FilledMask(token='france', id=5193, probability=0.43...)]]
            >>> model.fill_mask("The [MASK] of France is [MASK].", top_k=1, together=True)
            [FilledText(text='The ... of France is ...', tokens=['...', '...'], probability=0...)]
        """
        is_one = isinstance(text, str)
        if is_empty(text):
            return []
        if together:
            found = [fill_together(self, one, top_k) for one in ([text] if is_one else to_strings(text))]
            return found[0] if is_one else found
        rows = self.rows([text] if is_one else text)
        filled = [self._guesses(logits, top_k) for logits in super().predict(rows, batch_size=batch_size, verbose=0)]
        # Texts with fewer masks than others were padded.
        counts = (rows["token_ids"] == self.tokenizer.mask_id).sum(axis=1)
        filled = [guesses[:count] for guesses, count in zip(filled, counts, strict=True)]
        return filled[0] if is_one else filled

    def _guesses(self, logits, count):
        """The `count` most likely words of each row of logits, (masks, vocabulary)."""
        found = guesses(ops.convert_to_tensor(logits), count, self.tokenizer.vocabulary_size)
        return [
            [FilledMask(self.tokenizer.piece_text(int(i)), int(i), float(p)) for p, i in zip(*words, strict=True)]
            for words in zip(*map(ops.convert_to_numpy, found), strict=True)
        ]


def guesses(logits, count, vocabulary_size):
    """The probabilities and the ids of the `count` most likely words for masks, both (..., count), from logits
    (..., vocabulary)."""
    # An embedding may have more rows than the tokenizer has words, such as a multiple of 8: these are not guessed.
    return ops.top_k(ops.softmax(logits)[..., :vocabulary_size], count)


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
