"""A paragraph of running text into sentences.

The work is done by sentencex (Wikimedia, MIT, written in Rust, wheels for Linux, macOS and Windows, no models to
download). Measured on one core over the paragraphs of Jane Eyre, and over 24 short texts with abbreviations,
decimals, dotted names, URLs, ellipses and quotations:

| splitter               | MB/s | right of 24 |
| ---                    | ---  | ---         |
| sentencex 1.0.32       | 125  | 21          |
| blingfire 0.1.8        | 13.6 | 18          |
| nupunkt 0.8.0          | 8.3  | 20          |
| segtok 1.5.11          | 3.0  | 19          |
| sentence-splitter 1.4  | 1.3  | 17          |
| syntok 1.4.4           | 1.1  | 17          |
| pysbd 0.3.4            | 0.3  | 17          |

What it does not do to our liking is put right below; together that is 26 MB/s.
"""

import itertools
import re

import sentencex

# sentencex takes quadratic time in a paragraph full of quotations: 1 s for 1 MB, 36 s for 4 MB.
WINDOW_CHARACTERS = 100_000

# sentencex never splits inside a quotation. In novels that leaves 13 % of the words in sentences of more than
# 100 words, longer than a row of 128 tokens; from this length on the inside of a quotation is split too.
LONG_QUOTATION_CHARACTERS = 250

QUOTATION_MARKS = '"\u201c\u201d\u201e\u00ab\u00bb\u2018\u2019'

LETTER = re.compile(r"[^\W\d_]")


def split_sentences(paragraph):
    """Sentences of one paragraph, in order, with runs of white space made single spaces.

    No other character is changed. The rules are those for English; other languages with full stops, question and
    exclamation marks are split by the same marks, without their abbreviations.

    Args:
        paragraph: text; line breaks count as spaces.

    Returns: list of strings, none empty. A list number ("1.") stays with what it numbers.
    """
    # Collapsed first, because sentencex 1.0.32 panics at an initial before a wide space such as U+2028. Without
    # them 500,000 random strings of all scripts went through.
    text = " ".join(paragraph.split())
    pieces = []
    for piece in _windowed_pieces(text):
        if len(piece) < LONG_QUOTATION_CHARACTERS:
            pieces.append(piece)
        else:
            pieces += _split_long_quotation(piece)
    return [sentence.strip() for sentence in _join_fragments(pieces)]


def _windowed_pieces(text):
    """Pieces that concatenate to `text`, found in windows of bounded length."""
    if len(text) <= WINDOW_CHARACTERS:
        return sentencex.segment("en", text) if text else []
    return _pieces_of_windows(text)


def _pieces_of_windows(text):
    start = 0
    while start < len(text):
        end = start + WINDOW_CHARACTERS
        pieces = sentencex.segment("en", text[start:end])
        if end < len(text) and len(pieces) > 1:
            pieces.pop()  # cut off by the window, hence read again at the start of the next
        yield from pieces
        start += sum(map(len, pieces))


def _split_long_quotation(piece):
    # With its marks hidden a quotation is plain text to sentencex, except that `done?" I asked` stays whole: the
    # question mark no longer stands before a space.
    hidden = piece
    for mark in QUOTATION_MARKS:  # a small part of the time of `str.translate`
        hidden = hidden.replace(mark, "_")
    ends = list(itertools.accumulate(map(len, sentencex.segment("en", hidden))))
    return [piece[start:end] for start, end in itertools.pairwise([0, *ends])]


def _join_fragments(pieces):
    sentences = []
    for piece in pieces:
        if sentences and _is_unfinished(sentences[-1]):
            sentences[-1] += piece
        else:
            sentences.append(piece)
    return sentences


def _is_unfinished(piece):
    # sentencex also cuts inside `tf.Tensor` and `5 @.@ 3` (WikiText's 5.3), where no space follows the stop, and
    # after the number of a list item.
    return piece[-1:] == "." or not (piece[0].isalpha() or LETTER.search(piece))
