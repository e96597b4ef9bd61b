"""What a client should know of the texts of a request: which the model reads only in part, and which hold nothing."""

import numpy as np
import tokenizers

from keras_bert_impl.serving.errors import invalid
from keras_bert_impl.tokenizers.rows import sentence_of_cut, sentence_without_mask

GUESSES = frozenset({"tokens", "token_ids", "probabilities"})  # the outputs for masks


class TextChecks:
    """Looks at the texts of requests for an export of this library; about any other SavedModel it says nothing.

    Args:
        directory: of the export.
        metadata: what its config.json holds.
    """

    def __init__(self, directory, metadata):
        path = directory / "tokenizer.json"
        self._length = longest_row(metadata) if path.is_file() else None
        if self._length is not None:
            self._export = metadata["export"]
            self._tokenizer = tokenizers.Tokenizer.from_file(str(path))
            self._tokenizer.no_truncation()
            self._tokenizer.no_padding()

    def warnings(self, signature, inputs):
        """Sentences about texts that are empty or were cut.

        Args:
            signature: the Signature that was asked.
            inputs: arrays by name, as `request_inputs.check_inputs` returns them.
        """
        if self._length is None or "text" not in inputs:
            return []
        rows, found = rows_of_texts(inputs), []
        empty = sum(not all(text.strip() for text in row) for row in rows)
        if empty:
            found.append(f"{empty:,} of {len(rows):,} texts are empty: what the model answers to these means nothing.")
        cut = self.number_cut(signature, inputs)
        return [*found, sentence_of_cut(cut, len(rows), self._length)] if cut else found

    def number_cut(self, signature, inputs):
        """How many texts, or pairs, the model reads only in part; the arguments are those of `warnings`."""
        if self._length is None or "text" not in inputs or self._reads_all(signature):
            return 0
        return sum(map(self._is_cut, rows_of_texts(inputs)))

    def refuse_without_mask(self, inputs, outputs):
        """Raises ServingError for a text in which the model guesses no word, although it reads all of it."""
        if self._length is None or outputs.keys() != GUESSES:
            return
        for row, words in zip(rows_of_texts(inputs), outputs["tokens"], strict=True):
            if not np.any(words != b"") and not self._is_cut(row):
                raise invalid(sentence_without_mask(row[0].decode("utf-8", "replace"), "[MASK]"))

    def _reads_all(self, signature):
        """Whether long texts are read in windows."""
        in_windows = self._export.get("model") == "TokenClassifier" or self._export.get("long_texts") == "windows"
        return in_windows and set(signature.inputs) == {"text"} and signature.name != "attention"

    def _is_cut(self, texts):
        """Whether a text, or a pair, has more tokens than a row holds."""
        controls = self._tokenizer.num_special_tokens_to_add(len(texts) > 1)
        # A token is hardly ever less than a byte: short texts, which are the most, need not be tokenized.
        if sum(map(len, texts)) + controls <= self._length:
            return False
        return len(self._tokenizer.encode(*(text.decode("utf-8", "ignore") for text in texts))) > self._length


def longest_row(metadata):
    """The tokens of the longest row that a model reads, from the config.json of its export; None if it is not there."""
    export = metadata.get("export")
    length = export.get("sequence_length") if isinstance(export, dict) else None
    return length if isinstance(length, int) else None


def rows_of_texts(inputs):
    """The texts, as bytes, of each row that is computed, one or two: an ending makes a row of its own."""
    columns = [inputs[name] for name in ("text", "text_pair", "endings") if name in inputs]
    if columns[-1].ndim == 2:
        columns = [np.repeat(columns[0], columns[1].shape[1]), columns[1].ravel()]
    return list(zip(*columns, strict=True))
