"""The words of a text, where a tokenizer's own pieces do not say where words end."""

import functools
import re
import unicodedata

import numpy as np

from keras_bert_impl.text.tokenizers import google_characters


def word_numbers(text: str, offsets) -> np.ndarray:
    """The number of the word that each piece is in: words are those that BERT's tokenizer splits a text into, at white
    space and before and after each punctuation mark and CJK character.

    A word ends only where a piece ends: pieces that join words, such as "U.S", are one word. A piece without
    characters, such as the lone sign for a space, belongs to the word that follows it directly, otherwise to the word
    before it.

    Args:
        text: the text.
        offsets: of its pieces, in characters, ascending: (pieces, 2). White space at their ends does not matter.

    Returns: int (pieces,), ascending from 0 without gaps.
    """
    spans = [stripped_span(text, int(start), int(end)) for start, end in offsets]
    first = [_first_character(spans, place) for place in range(len(spans))]
    starts = {start for start, _ in word_spans(text)}
    numbers, current, reached, has_characters = [], 0, -1, False
    for (_, end), place in zip(spans, first, strict=True):
        # Several pieces may share a character, by its bytes: only the first of them can begin a word.
        if has_characters and place is not None and place in starts and place > reached:
            current, has_characters = current + 1, False
        if place is not None:
            reached, has_characters = max(reached, place, end - 1), True
        numbers.append(current)
    return np.array(numbers, int)


def stripped_span(text: str, start: int, end: int) -> tuple[int, int]:
    """A span of characters without white space at its ends; one of white space alone is empty, at its end."""
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end


def end_with_marks(text: str, end: int) -> int:
    """The end of a span with the combining marks that follow it: accents and vowel signs belong to the character before
    them, also where a tokenizer drops them, as that of BERT does with lower-casing."""
    while end < len(text) and unicodedata.category(text[end]).startswith("M"):
        end += 1
    return end


def _first_character(spans, place):
    """The character at which a piece begins, which for an empty one is that of the piece directly after it; None for
    an empty one that has no such piece."""
    start, end = spans[place]
    if start < end:
        return start
    following = spans[place + 1] if place + 1 < len(spans) else None
    return start if following and following[0] == start and following[1] > start else None


def word_spans(text: str) -> list[tuple[int, int]]:
    """The first character of each word of a text and the one after its last, where no piece joins words."""
    return [match.span() for match in _words().finditer(text)]


@functools.cache
def _words():
    alone = "".join(f"{re.escape(chr(first))}-{re.escape(chr(last))}" for first, last in google_characters.isolated())
    return re.compile(rf"[{alone}]|[^\s{alone}]+")
