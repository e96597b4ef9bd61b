"""The masked language model alone: trains on raw text, fills in masks."""

import typing

import keras
import numpy as np

from keras_bert_impl.layers import MaskedLMHead
from keras_bert_impl.losses import WeightedCrossEntropy
from keras_bert_impl.models.initialization import kernel_initializer
from keras_bert_impl.models.pretrained import PretrainedMixin, check_vocabulary, checked_sequence_length
from keras_bert_impl.models.raw_text import (
    RawTextMixin,
    TextBatches,
    is_text_dataset,
    is_text_pair,
    is_texts,
    to_strings,
)
from keras_bert_impl.optimization import BertAdamW
from keras_bert_impl.tokenizers.masking import mask_rows
from keras_bert_impl.tokenizers.rows import ROW_MULTIPLE, encode_texts, pack_rows, rows_from_texts


class FilledMask(typing.NamedTuple):
    """One guess for one [MASK]: the vocabulary's piece, its id, its probability."""

    token: str
    id: int
    probability: float


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class BertMaskedLM(RawTextMixin, PretrainedMixin, keras.Model):
    """Predicts the words at masked positions (Devlin et al. 2019, section 3.1, task 1). Compiled as it comes,
    with AdamW at 5e-5, the mean loss over predicted tokens, and accuracy.

    `fit(texts)` and `evaluate(texts)` mask the texts themselves, anew in every epoch; `predict(texts)` and
    `fill_mask` expect `[MASK]` in the texts.

    Args:
        encoder: a BertEncoder; the head continues its graph and shares its token embedding.
        tokenizer: a WordPieceTokenizer; needed for texts.
        sequence_length: texts are cut to this many tokens; None means the encoder's `max_length`.
        seed: of the masking.

    Input:  dict of the encoder's inputs and `mask_positions` (batch, predictions), int32; or texts.
    Output: logits (batch, predictions, vocabulary), float32. Labels are `mask_ids`, sample weights `mask_weights`.
    """

    head_arguments = ("seed",)

    def __init__(self, encoder, tokenizer=None, sequence_length=None, seed=0, name="bert_masked_lm"):
        check_vocabulary(tokenizer, encoder)
        config = encoder.config
        mask_positions = keras.Input((None,), dtype="int32", name="mask_positions")
        logits = MaskedLMHead(
            encoder.token_embedding,
            activation=config.activation,
            layer_norm_epsilon=config.layer_norm_epsilon,
            initializer=kernel_initializer(config),
            dtype=encoder.dtype_policy,
            name="masked_lm_head",
        )(encoder.output["sequence_output"], mask_positions)
        inputs = {**encoder.input, "mask_positions": mask_positions}
        super().__init__(inputs=inputs, outputs=logits, name=name)
        self.dtype_policy = encoder.dtype_policy
        # Not tracked as a layer: the graph above holds the encoder's layers, all but the pooler, which no output of
        # this model uses, so that it is not a weight of it and gets no gradient. Hugging Face leaves it out, too.
        object.__setattr__(self, "encoder", encoder)
        self.tokenizer = tokenizer
        self.sequence_length = checked_sequence_length(sequence_length, config)
        self.seed = seed
        self.random = np.random.default_rng(seed)
        self.compile(
            optimizer=BertAdamW(5e-5),
            # Over the tokens predicted; Keras' default would divide by the padding, too.
            loss=WeightedCrossEntropy(),
            weighted_metrics=["accuracy"],
        )

    def fit(self, x=None, y=None, batch_size=None, validation_data=None, **arguments):
        """`keras.Model.fit`; texts are masked anew for every batch. Returns the History."""
        if is_texts(x) or is_text_pair(x):  # of a pair, `to_strings` says that it is not texts
            x, batch_size = MaskedTexts(self._encode(x), batch_size or 32, self._mask_ids, self.seed), None
        if is_texts(validation_data):
            validation_data = self._fixed_masks(validation_data)
        return super().fit(x, y, batch_size=batch_size, validation_data=validation_data, **arguments)

    def evaluate(self, x=None, y=None, sample_weight=None, **arguments):
        """`keras.Model.evaluate`; texts get masks that depend on the model's seed alone."""
        if is_texts(x):
            x, y, sample_weight = self._fixed_masks(x)
        return super().evaluate(x, y, sample_weight=sample_weight, **arguments)

    def rows(self, texts, pad_to=None):
        """The input arrays of texts in which `[MASK]` stands for a masked word."""
        tokenizer, texts = self._require_tokenizer(), to_strings(texts)
        # The special tokens come back with packing.
        ids = [tokenizer.encode_with_masks(text).ids[1:-1] for text in texts]
        for text, row in zip(texts, ids, strict=True):
            if tokenizer.mask_id not in row:
                raise ValueError(f"There is no [MASK] in the text {text[:60]!r}: write [MASK] for the word to guess.")
            if len(row) + 2 > self.sequence_length:
                raise ValueError(
                    f"The text {text[:60]!r}... has {len(row) + 2} tokens, the model takes {self.sequence_length}."
                )
        rows = pack_rows(tokenizer, ids, None, self.sequence_length, pad_to)
        places = [np.flatnonzero(row == tokenizer.mask_id) for row in rows["token_ids"]]
        rows["mask_positions"] = np.zeros((len(texts), max(map(len, places))), "int32")
        for row, place in enumerate(places):
            rows["mask_positions"][row, : len(place)] = place
        return rows

    def fill_mask(self, text, k=5):
        """The k likeliest words for every `[MASK]` of one text.

        Returns: a list with an entry for each mask: a list of k FilledMask, the likeliest first.
        Raises: ValueError if the text holds no `[MASK]` or is longer than the model takes, or k is not from 1 to the
            size of the vocabulary.
        """
        if not 1 <= k <= self._require_tokenizer().vocabulary_size:
            raise ValueError(f"k is {k}: ask for 1 to {self.tokenizer.vocabulary_size} words, all of the vocabulary.")
        rows = self.rows([text])
        logits = keras.ops.convert_to_tensor(super().predict(rows, verbose=0))[0]  # (masks, vocabulary)
        # An embedding may have more rows than the tokenizer words, to make it a multiple of 8: those are no guesses.
        words = keras.ops.softmax(logits)[:, : self.tokenizer.vocabulary_size]
        probabilities, ids = keras.ops.top_k(words, k)
        probabilities, ids = map(keras.ops.convert_to_numpy, (probabilities, ids))
        return [
            [FilledMask(self.tokenizer.id_to_token(int(i)), int(i), float(p)) for i, p in zip(*guesses, strict=True)]
            for guesses in zip(ids, probabilities, strict=True)
        ]

    def _to_inputs(self, x):
        if is_text_dataset(x):
            return TextBatches(x, self._mask_texts)
        return super()._to_inputs(x)

    def _encode(self, texts):
        """The ids of each text without special tokens, short enough to be packed."""
        room = self.sequence_length - 2
        return [ids[:room] for ids in encode_texts(self._require_tokenizer(), to_strings(texts))]

    def _mask_ids(self, ids, length):
        rows = pack_rows(self.tokenizer, ids, None, self.sequence_length, pad_to=min(length, self.sequence_length))
        return mask_rows(rows, self.tokenizer, self.random)

    def _mask_texts(self, texts):
        # All of one length: Keras takes the shapes of the first batches for those of all.
        return self._mask_ids(self._encode(texts), self.sequence_length)

    def _fixed_masks(self, texts):
        rows = rows_from_texts(self._require_tokenizer(), to_strings(texts), sequence_length=self.sequence_length)
        return mask_rows(rows, self.tokenizer, np.random.default_rng(self.seed))


class MaskedTexts(keras.utils.PyDataset):
    """Batches of tokenized texts in random order, each masked when it is asked for, all of one length.

    Args:
        ids: for each text the list of its ids, without special tokens.
        batch_size: texts in a batch; the last may be smaller.
        mask: function from such lists and the length of a row to (inputs, mask_ids, mask_weights).
        seed: of the order.
    """

    def __init__(self, ids, batch_size, mask, seed):
        super().__init__()
        self.ids, self.batch_size, self.mask = ids, batch_size, mask
        longest = max(map(len, ids)) + 2
        self.length = -(-longest // ROW_MULTIPLE) * ROW_MULTIPLE
        self.random = np.random.default_rng(seed)
        self.order = self.random.permutation(len(ids))

    def __len__(self):
        return -(-len(self.ids) // self.batch_size)

    def __getitem__(self, index):
        places = self.order[index * self.batch_size : (index + 1) * self.batch_size]
        return self.mask([self.ids[place] for place in places], self.length)

    def on_epoch_end(self):
        self.order = self.random.permutation(len(self.ids))
