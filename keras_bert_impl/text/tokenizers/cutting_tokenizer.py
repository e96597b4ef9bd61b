"""Rows with offsets of tokenizers that cut one text at a time."""

import re
import typing
from collections.abc import Sequence

import numpy as np

from keras_bert_impl.text.tokenizers.tokenizer import Tokenizer
from keras_bert_impl.text.tokenizers.words import word_numbers


class Encoding(typing.NamedTuple):
    """The pieces of a text or a pair; see `Tokenizer`."""

    ids: list[int]
    tokens: list[str]
    type_ids: list[int]
    sequence_ids: list[int | None]
    offsets: list[tuple[int, int]]


class CuttingTokenizer(Tokenizer):
    """What tokenizers share that say with `_cut(text)` which pieces a text has: ids, tokens and offsets."""

    def encode(self, text: str, pair: str | None = None, add_special_tokens: bool = True) -> Encoding:
        """`text`, or `text` and `pair`, as one sequence; see `Tokenizer`."""
        parts = [self._cut(one) for one in (text, pair) if one is not None]
        if not add_special_tokens:
            return _joined([self._of_text(part, number) for number, part in enumerate(parts)])
        before, between, after, second_segment, _ = self.template
        sequence = [*self._controls(before), self._of_text(parts[0], 0)]
        if pair is not None:
            sequence += [*self._controls(between), self._of_text(parts[1], 1)]
        return _joined([*sequence, *self._controls(after, 0 if pair is None else second_segment)])

    def encode_batch(self, texts: Sequence[str], add_special_tokens: bool = True) -> list[Encoding]:
        """Encodes each text as `encode` does."""
        return [self.encode(text, add_special_tokens=add_special_tokens) for text in texts]

    def encode_with_masks(self, text: str) -> Encoding:
        """`encode` of a text in which each of `mask_texts` is the mask token, which takes white space before it along.
        As in Hugging Face's tokenizers, what follows a mask is a text of its own."""
        found, begin = self._controls(self.template.before), 0
        for mask in [*re.finditer("|".join(map(re.escape, self.mask_texts)), text), None]:
            part = text[begin:] if mask is None else text[begin : mask.start()].rstrip(self.stripped)
            ids, tokens, offsets = self._cut(part)
            found.append(self._of_text((ids, tokens, [(begin + first, begin + last) for first, last in offsets]), 0))
            if mask is not None:
                found.append(Encoding([self.mask_id], [self.vocabulary[self.mask_id]], [0], [0], [mask.span()]))
                begin = mask.end()
        return _joined([*found, *self._controls(self.template.after)])

    def word_numbers(self, text: str, encoding: Encoding) -> np.ndarray:
        """The number of the word that each piece is in; see `Tokenizer`."""
        return word_numbers(text, encoding.offsets)

    def _controls(self, slot, segment=0):
        ids = {"cls": self.cls_id, "sep": self.sep_id}
        return [
            Encoding([ids[name]], [self.vocabulary[ids[name]]], [own], [None], [(0, 0)])
            for name, own in zip(slot, self.template.segments_of(slot, segment), strict=True)
        ]

    def _of_text(self, part, number):
        ids, tokens, offsets = part
        segment = self.template.second_segment if number else 0
        return Encoding(ids, tokens, [segment] * len(ids), [number] * len(ids), offsets)


def text_of_pieces(tokenizer: Tokenizer, ids: Sequence[int], skip_special_tokens: bool) -> str:
    """The text of pieces in which "▁" is a space, of those in `tokenizer.bytes_of` from the bytes that they stand for;
    bytes that are no UTF-8, of a character that was cut, become U+FFFD."""
    special = tokenizer.special_ids if skip_special_tokens else ()
    parts = [
        tokenizer.bytes_of[index] if index in tokenizer.bytes_of else tokenizer.id_to_token(index).encode()
        for index in map(int, ids)
        if index not in special
    ]
    return b"".join(parts).decode(errors="replace").replace("▁", " ")


def _joined(encodings):
    """Encodings one after another."""
    return Encoding(*([value for one in encodings for value in getattr(one, name)] for name in Encoding._fields))
