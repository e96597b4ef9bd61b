"""Texts whose words are masked: by a preprocessor, and in `fit` when a batch is requested."""

import dataclasses

import keras
import numpy as np

from keras_bert_impl.batching import LengthBatches
from keras_bert_impl.preprocessing.preprocessors import Preprocessor, TextPreprocessor, first_of, is_of_tensorflow
from keras_bert_impl.preprocessing.texts import is_texts, to_strings
from keras_bert_impl.text.rows import numpy_arrays
from keras_bert_impl.text.rows.masking import MaskingRule
from keras_bert_impl.text.tokenizers import tokenizer_to_config


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class Masking:
    """Masks tokens for a masked language model, differently in each call (Liu et al. 2019, section 4.1).

    Call: `masking(inputs, epoch=None)` on a model's inputs, for a batch or for one example. Without an epoch, call
    number N, counted from 0, masks as with `epoch=N`. With parallel calls of `tf.data`, the order of calls varies.

    Args:
        tokenizer (Tokenizer): tokenizer of the inputs.
        predictions_per_sequence (int, optional): number of predictions. Default: masking_rate of the length, rounded
            up.
        seed (int, optional): random seed for masking. Default: 0.
        options: `unit` ("token", "whole_word", "span", "ngram", "context_span" or "phrase"), `masking_rate` (0.15),
            `mask_token_rate` (0.8) and `random_token_rate` (0.1), as in `MaskingRule`.

    Returns: (inputs, mask_ids, mask_weights). The inputs also have `mask_positions`; labels, weights and positions are
        (batch, predictions).

    Example:
        >>> tokenizer = kbi.checkpoints.open_checkpoint("small_english").tokenizer
        >>> inputs = kbi.preprocessing.TextPreprocessor(tokenizer, 16)(["The cat slept all day."])
        >>> inputs, mask_ids, mask_weights = kbi.preprocessing.Masking(tokenizer, unit="span")(inputs)
        >>> inputs["mask_positions"].shape, mask_weights.tolist()
        ((1, 3), [[1.0, 0.0, 0.0]])
    """

    def __init__(self, tokenizer, predictions_per_sequence=None, seed=0, **options):
        self.rule = MaskingRule(tokenizer, predictions_per_sequence, seed, **options)
        self._calls, self._graph_calls = 0, None

    def __call__(self, rows, *, epoch=None):
        if is_of_tensorflow(rows):
            from keras_bert_impl.preprocessing.graphs import text_rows

            if epoch is None:
                self._graph_calls = self._graph_calls or text_rows.Counter()
                epoch = self._graph_calls.next()
            return text_rows.of_batches(lambda x, *_: self.masked(x, epoch, text_rows.arrays), rows, rank=1)
        if epoch is None:
            epoch, self._calls = self._calls, self._calls + 1
        if rows["token_ids"].ndim == 1:
            return first_of(self.masked({name: array[None] for name, array in rows.items()}, epoch))
        return self.masked(rows, epoch)

    def get_config(self):
        options = {field.name: getattr(self.rule, field.name) for field in dataclasses.fields(self.rule)}
        return {**options, "tokenizer": tokenizer_to_config(self.rule.tokenizer)}

    from_config = classmethod(Preprocessor.from_config.__func__)

    def __getstate__(self):
        return {**self.__dict__, "_graph_calls": None}

    def masked(self, rows, epoch, arrays=numpy_arrays, numbers=None):
        """A batch masked; `numbers` (batch,) are those of its rows, on which the masks depend, if not 0, 1, ..."""
        if numbers is None:
            numbers = arrays.cast(arrays.arange(arrays.shape(rows["token_ids"])[0]), arrays.int64)
        masked = self.rule.mask({**rows, "example_index": numbers}, epoch, arrays)
        return {name: masked[name] for name in (*rows, "mask_positions")}, masked["mask_ids"], masked["mask_weights"]


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class MaskedLMPreprocessor(TextPreprocessor):
    """Makes masked inputs and labels for a `MaskedLM` from texts, or from pairs of texts, with new masks in each call.

    Args:
        tokenizer (Tokenizer): tokenizer.
        sequence_length (int, optional): length that every text is truncated or padded to. Default: 512.
        truncate (str, optional): how to truncate, as in `TextPreprocessor`. Default: "longest_first".
        masking: arguments of `Masking` by name.

    Returns: (inputs, mask_ids, mask_weights), as `Masking` does.

    Example:
        >>> tokenizer = kbi.checkpoints.open_checkpoint("small_english").tokenizer
        >>> preprocessor = kbi.preprocessing.MaskedLMPreprocessor(tokenizer, 16, masking_rate=0.2)
        >>> inputs, mask_ids, mask_weights = preprocessor(["The cat slept all day.", "It rained."])
        >>> inputs["token_ids"].shape, mask_ids.shape, mask_weights.tolist()
        ((2, 16), (2, 4), [[1.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]])
    """

    arguments, targets = ("sequence_length", "truncate"), ()

    def __init__(self, tokenizer, sequence_length=512, truncate="longest_first", **masking):
        super().__init__(tokenizer, sequence_length, truncate)
        self.masking = Masking(tokenizer, **masking)

    def get_config(self):
        return {**self.masking.get_config(), **super().get_config()}

    def makes_labels(self, x):
        return True

    def rows(self, x, y=None, sample_weight=None, check=None):
        """The Rows of texts, not yet masked."""
        if check is not None and (y is not None or sample_weight is not None):
            raise ValueError("The labels are the masked words of the texts: leave y and sample_weight out.")
        if check is not None and not is_texts(x):
            to_strings(x)  # which raises: the second column could be the names of classes
        return super().rows(x)

    def to_train(self, rows, batch_size, shuffle, seed, multiple):
        return MaskedTexts(self.tokenizer, rows, batch_size, self.sequence_length, shuffle, seed)

    def to_evaluate(self, rows, batch_size, seed, multiple):
        return self.packed(rows, seed=seed)

    def packed(self, rows, pad_to=None, seed=None):
        masking = self.masking if seed is None else Masking(self.tokenizer, seed=seed)
        return masking(super().packed(rows, pad_to)[0], epoch=None if seed is None else 0)

    def _in_graph(self, x, y, sample_weight):
        return self.masking(super()._in_graph(x, y, sample_weight)[0])


class MaskedTexts(LengthBatches):
    """Batches of texts, each masked when it is requested, all of the same length.

    The order depends only on seed and epoch, the masks of a text also on its number: a `fit` resumed within epoch 3
    gets the batches that it would have got.
    """

    def __init__(self, tokenizer, rows, batch_size, sequence_length, shuffle, seed):
        super().__init__(tokenizer, rows, batch_size, sequence_length, shuffle, seed)
        self.is_seed_drawn = True

    def __getitem__(self, index):
        places = self.plan[index]
        rows, *_ = self.rows.packed(self.tokenizer, self.sequence_length, int(self.lengths.max()), places)
        return Masking(self.tokenizer, seed=self.seed).masked(rows, self.epoch, numbers=places)

    def _plan(self):
        count = len(self.lengths)
        order = np.random.default_rng((self.seed, self.epoch)).permutation(count) if self.shuffle else np.arange(count)
        self.plan = np.split(order, range(self.batch_size, count, self.batch_size))
