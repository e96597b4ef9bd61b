"""Splits a paragraph of running text into sentences.

The work is done by sentencex (by Wikimedia, MIT, written in Rust, wheels for Linux, macOS and Windows, no models to
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

The code below corrects some of its splits; with these corrections the speed is 26 MB/s. Other languages are as fast,
except Catalan and Danish (0.2 MB/s) and Italian (8 MB/s without the corrections): sentencex compiles their regular
expressions again in every call.
"""

import itertools
import re

from keras_bert_impl.text.corpora.scripts import NEXT_PHRASE

# sentencex takes quadratic time in a paragraph full of quotations: 1 s for 1 MB, 36 s for 4 MB.
WINDOW_CHARACTERS = 100_000

# sentencex never splits inside a quotation. In novels that leaves 13 % of the words in sentences of more than
# 100 words, longer than a row of 128 tokens. Pieces of this length or more are split inside quotations too.
LONG_QUOTATION_CHARACTERS = 250

QUOTATION_MARKS = '"\u201c\u201d\u201e\u00ab\u00bb\u2018\u2019\u300c\u300d\u300e\u300f\u300a\u300b'

LETTER = re.compile(r"[^\W\d_]")

# ISO 639-1. sentencex accepts any string as a language and treats unknown ones, such as "german", as English.
LANGUAGES = frozenset(
    "aa ab ae af ak am an ar as av ay az ba be bg bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee el en eo "
    "es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is it iu ja jv ka "
    "kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng "
    "nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl sm sn so sq sr ss st su "
    "sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu".split()
)
# The languages whose abbreviations, initials or dates sentencex 1.0.32 knows.
LANGUAGES_WITH_RULES = frozenset(
    "am ar bg bn ca da de el en es fi fr gu hi hy it ja kk kn ml mr my nl pa pl pt ru sk ta te uk".split()
)


def check_language(language):
    """Raises: ValueError if `language` is not a code of ISO 639-1."""
    if language not in LANGUAGES:
        raise ValueError(
            f'language is "{language}", expected a code of two letters (ISO 639-1): en, de, ru, hi, ar, th, zh, ...'
        )


def split_sentences(paragraph, language="en"):
    """The sentences of one paragraph, in order, with each run of white space replaced by a single space.

    No other character is changed. A sentence ends at the marks of any script: a Chinese, Hindi or Arabic paragraph is
    split correctly whatever the language. The language determines which full stops belong to abbreviations, initials
    and dates; for languages outside `LANGUAGES_WITH_RULES` sentencex uses the rules of a related one, or English.

    Thai and Lao have no mark at the end of a sentence, so a paragraph of fewer than 250 characters is not split. A
    longer one is split into phrases, at its spaces.

    Args:
        paragraph: text; line breaks count as spaces.
        language: code of ISO 639-1.

    Returns: list of strings, none empty. A list number ("1.") stays with the text after it.
    Raises: ValueError for an unknown language.
    """
    check_language(language)
    # White space is collapsed first, because sentencex 1.0.32 panics at an initial before a wide space such as U+2028.
    # 500,000 random strings of all scripts without wide spaces caused no panic.
    text = " ".join(paragraph.split())
    pieces = []
    for piece in _windowed_pieces(text, language):
        if len(piece) < LONG_QUOTATION_CHARACTERS:
            pieces.append(piece)
        else:
            pieces += _split_long_quotation(piece, language)
    if language != "en":
        pieces = _join_continued(pieces)
    return [sentence.strip() for sentence in _join_fragments(pieces)]


def _segmented(language, text):
    import sentencex  # which only the extra `training` installs

    return sentencex.segment(language, text)


def _windowed_pieces(text, language):
    """Pieces that concatenate to `text`, found in windows of bounded length."""
    if len(text) <= WINDOW_CHARACTERS:
        return _segmented(language, text) if text else []
    return _pieces_of_windows(text, language)


def _pieces_of_windows(text, language):
    start = 0
    while start < len(text):
        end = start + WINDOW_CHARACTERS
        pieces = _segmented(language, text[start:end])
        if end < len(text) and len(pieces) > 1:
            pieces.pop()  # cut off by the window: the next window starts with it
        yield from pieces
        start += sum(map(len, pieces))


def _split_long_quotation(piece, language):
    # Without its quotation marks a quotation is plain text to sentencex. Hiding them as "_" keeps `done?" I asked`
    # whole, because no space follows the question mark.
    hidden = piece
    for mark in '"' if piece.isascii() else QUOTATION_MARKS:  # much faster than `str.translate`
        hidden = hidden.replace(mark, "_")
    ends = list(itertools.accumulate(map(len, _segmented(language, hidden))))
    if not piece.isascii():
        # Thai and similar scripts have no marks to split at, so they are split into phrases.
        ends = sorted({*ends, *(match.end() for match in NEXT_PHRASE.finditer(piece))})
    return [piece[start:end] for start, end in itertools.pairwise([0, *ends])]


def _join_continued(pieces):
    # sentencex does not split before the small letters a to z, but it does before those of other alphabets, and so cuts
    # the Russian "i. e." in two. English is excluded, because a sentence may begin with a small alpha.
    joined = []
    for piece in pieces:
        if joined and piece[0] > "\x7f" and piece[0].islower():
            joined[-1] += piece
        else:
            joined.append(piece)
    return joined


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
