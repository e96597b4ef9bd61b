"""What a client should know of the texts of a request: which the model reads only in part, and which hold nothing."""

import math

import numpy as np
import tokenizers

from keras_bert_impl.text.tokenizers.rows import (
    longest_question,
    sentence_of_cut,
    sentence_of_cut_questions,
    sentence_without_mask,
)
from keras_bert_serving.errors import invalid

GUESSES = frozenset({"tokens", "token_ids", "probabilities"})  # the outputs for masks
ROWS = 64  # texts that are tokenized at once: all of a request would take hundreds of MB


class TextChecks:
    """Looks at the texts of requests for an export of this library; about any other SavedModel it says nothing.

    Args:
        directory: of the export.
        metadata: what its config.json holds.
    """

    def __init__(self, directory, metadata):
        path, self._export = directory / "tokenizer.json", metadata.get("export")
        # Of the longest row that the model reads; None if that is not known.
        length = self._export.get("sequence_length") if isinstance(self._export, dict) else None
        self._length = length if isinstance(length, int) and path.is_file() else None
        if self._length is not None:
            self._tokenizer = tokenizers.Tokenizer.from_file(str(path))
            self._tokenizer.no_truncation()
            self._tokenizer.no_padding()

    def warnings(self, signature, inputs):
        """Sentences about texts that are empty or were truncated.

        Args:
            signature: the Signature that was asked.
            inputs: arrays by name, as `request_inputs.check_inputs` returns them.
        """
        rows, found = self._rows(inputs), []
        empty = sum(not all(text.strip() for text in row) for row in rows)
        if empty:
            found.append(f"{empty:,} of {len(rows):,} texts are empty: what the model answers to these means nothing.")
        cut, length = self.cut(signature, inputs)
        sentence = sentence_of_cut_questions if "question" in inputs else sentence_of_cut
        return [*found, sentence(cut, len(rows), length)] if cut else found

    def cut(self, signature, inputs):
        """How many texts, pairs or questions the model reads only in part, and how many tokens of each of these; the
        arguments are those of `warnings`."""
        rows, length = self._rows(inputs), self._length
        if length is None:
            return 0, None
        if "question" in inputs:  # of the context, it reads all
            rows, length = [row[:1] for row in rows], longest_question(length)
        elif set(signature.inputs) == {"text"} and signature.name != "attention":
            in_windows = self._export.get("model") == "TokenClassifier" or self._export.get("long_texts") == "windows"
            rows = [] if in_windows else rows
        return sum(count > length for count in self._token_counts(rows, length, "question" not in inputs)), length

    def tokens_read(self, inputs):
        """How many tokens the model reads of all texts, or of all pairs; 0 where nothing is known."""
        columns = [[text.encode("utf-8", "replace") for text in texts] for texts in inputs.values()]
        rows = list(zip(*columns, strict=True)) if self._length is not None else []
        return sum(min(count, self._length) for count in self._token_counts(rows, 0))

    def longest_read(self, inputs, exactly):
        """The tokens of the longest row that is read, 0 where nothing is known; without `exactly` it may be fewer."""
        counts = self._token_counts(self._rows(inputs), 0 if exactly else math.inf)
        return min(max(counts, default=0), self._length or 0)

    def refuse_without_mask(self, inputs, outputs):
        """Raises ServingError for a text in which a model guesses no word, its outputs being GUESSES, although it reads
        all of it."""
        rows = self._rows(inputs)
        for number, (row, words) in enumerate(zip(rows, outputs["tokens"] if rows else (), strict=True)):
            if not np.any(words != b"") and self._token_counts([row], self._length)[0] <= self._length:
                where = f"Row {number}: " if len(rows) > 1 else ""
                raise invalid(where + sentence_without_mask(row[0].decode("utf-8", "replace"), "[MASK]"))

    def _rows(self, inputs):
        """The texts, as bytes, of each row that is computed, one or two: an ending makes a row of its own."""
        names = ("text", "text_pair", "endings", "question", "context") if self._length is not None else ()
        columns = [inputs[name] for name in names if name in inputs]
        if len(set(map(len, columns))) != 1:
            return []  # the model refuses columns of unequal lengths itself
        if columns[-1].ndim == 2:
            columns = [np.repeat(columns[0], columns[1].shape[1]), columns[1].ravel()]
        return list(zip(*columns, strict=True))

    def _token_counts(self, rows, most, special=True):
        """The tokens of each row of texts; its bytes, which are hardly ever fewer, where these are at most `most`."""
        controls = self._tokenizer.num_special_tokens_to_add(len(rows[0]) > 1) if rows and special else 0
        counts = [sum(map(len, row)) + controls for row in rows]
        long = [place for place, count in enumerate(counts) if count > most]
        for start in range(0, len(long), ROWS):
            places = long[start : start + ROWS]
            texts = [tuple(text.decode("utf-8", "ignore") for text in rows[place]) for place in places]
            texts = texts if len(rows[0]) > 1 else [text for (text,) in texts]
            encodings = self._tokenizer.encode_batch_fast(texts, add_special_tokens=special)
            for place, encoding in zip(places, encodings, strict=True):
                counts[place] = len(encoding)
        return counts
