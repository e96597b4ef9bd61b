"""Phrases that a tagger has found at certain characters of a .jsonl row's text, followed into the row's sentences."""

import json

import numpy as np

WHITE_SPACE = np.array([code for code in range(0x3001) if chr(code).isspace()], np.uint32)  # there is none above
SHOWN_CHARACTERS = 80  # of a malformed span, in a message


def spans_in_sentences(row, field, text, sentences):
    """The phrases of a row, in characters of its sentences instead of its text.

    Splitting a text into sentences changes nothing but its white space (`sentences.split_sentences`), so the other
    characters of the sentences are those of the text, one by one. This is checked.

    Args:
        row: dict.
        field: key of its phrases: objects with integer `start` and `end`, the end exclusive, in characters of the text,
            or pairs of them.
        text: string.
        sentences: those that the text was split into.

    Returns: list of (start, end) in characters of the sentences joined by line breaks, without white space at the ends;
        (0, 0) for a phrase of nothing but white space.
    Raises: ValueError for a missing field or a malformed span, naming it, for phrases of a text without a sentence, and
        if the characters of the sentences are not those of the text.
    """
    spans = _spans_of(row, field, text)
    if not spans:
        return []
    if not sentences:
        raise ValueError(f'field "{field}" marks phrases in a text that is white space. Empty it.')
    joined = "\n".join(sentences)
    in_text, in_sentences = _written_places(text), _written_places(joined)
    if "".join(text.split()) != "".join(joined.split()):
        raise ValueError(
            "the sentences do not hold the characters of the text, so that its phrases cannot be found in them. Leave "
            "the row out, and report its text to us."
        )
    ends = np.searchsorted(in_text, spans)  # (spans, 2): written characters before each end
    return [
        (int(in_sentences[first]), int(in_sentences[after - 1]) + 1) if first < after else (0, 0)
        for first, after in ends
    ]


def _written_places(text):
    """The places of the characters that are not white space."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    return np.flatnonzero(~np.isin(codes, WHITE_SPACE))


def _spans_of(row, field, text):
    if field not in row:
        raise ValueError(
            f'no field "{field}"; the row has {", ".join(row)}. Set phrase_field to the field with the phrases, '
            "which is an empty list in a row without any."
        )
    if not isinstance(row[field], list):
        raise ValueError(
            f'field "{field}" is a {type(row[field]).__name__}, expected a list of objects with start and end, or of '
            "pairs [start, end]."
        )
    spans = list(map(_ends_of, row[field]))
    for number, span in enumerate(spans):
        if span is None or not 0 <= span[0] < span[1] <= len(text):
            shown = json.dumps(row[field][number], ensure_ascii=False)
            shown = shown if len(shown) <= SHOWN_CHARACTERS else f"{shown[:SHOWN_CHARACTERS]}..."
            raise ValueError(
                f"{field}[{number}] is {shown}, expected integers start < end within the {len(text)} characters of the "
                "text, the end exclusive. Correct the row: characters are counted, from 0, not bytes or tokens."
            )
    return spans


def _ends_of(span):
    """(start, end) of an object or a pair; None if it has no two integers."""
    ends = (span.get("start"), span.get("end")) if isinstance(span, dict) else span
    is_pair = isinstance(ends, list | tuple) and len(ends) == 2 and all(type(end) is int for end in ends)
    return tuple(ends) if is_pair else None
