"""Splits a paragraph of running text into sentences, whose marks differ from script to script.

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

# Unicode's property Sentence_Terminal (PropList.txt), which Python's unicodedata does not have: hexadecimal ranges,
# inclusive.
SENTENCE_TERMINAL = """
21 2e 3f 589 61d-61f 6d4 700-702 7f9 837 839 83d-83e 964-965 104a-104b 1362 1367-1368 166e 1735-1736 17d4-17d5 1803
1809 1944-1945 1aa8-1aab 1b4e-1b4f 1b5a-1b5b 1b5e-1b5f 1b7d-1b7f 1c3b-1c3c 1c7e-1c7f 2024 203c-203d 2047-2049
2cf9-2cfb 2e2e 2e3c 2e53-2e54 2e60-2e61 3002 a4ff a60e-a60f a6f3 a6f7 a876-a877 a8ce-a8cf a92f a9c8-a9c9 aa5d-aa5f
aaf0-aaf1 abeb fe12 fe15-fe16 fe52 fe56-fe57 ff01 ff0e ff1f ff61 10a56-10a57 10f55-10f59 10f86-10f89 11047-11048
110be-110c1 11141-11143 111c5-111c6 111cd 111de-111df 11238-11239 1123b-1123c 112a9 113d4-113d5 1144b-1144c
115c2-115c3 115c9-115d7 11641-11642 1173c-1173e 11944 11946 11a42-11a43 11a9b-11a9c 11c41-11c42 11ef7-11ef8
11f43-11f44 16a6e-16a6f 16af5 16b37-16b38 16b44 16d6e-16d6f 16e98 1bc9f 1da88
"""
# Also the ellipsis, which Unicode leaves out because a sentence may continue after it, and the Tibetan shad.
OTHER_ENDS = "…\u0f0d\u0f0e"
# Quotation marks and brackets that may follow the end of a sentence.
CLOSING = (
    "'\"\u201c\u201d\u2018\u2019\u00ab\u00bb\u2039\u203a)\\]\u300d\u300f\u300b\u3009\u3011\u3015\uff09\uff3d\uff63"
)

# Thai and Lao: a sentence ends with a space or without any mark, and so does a phrase.
WITHOUT_SENTENCE_MARKS = "\u0e00-\u0eff"
# Scripts without spaces between words: Thai, Lao, Tibetan, Myanmar, Khmer, kana, CJK ideographs, and the punctuation
# that is written with them. Korean has spaces.
WITHOUT_SPACES = (
    "\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3000-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uffef"
    "\U00020000-\U0003ffff"
)


def _character_class(table):
    spans = [span.split("-") for span in table.split()]
    return "".join(f"{chr(int(span[0], 16))}-{chr(int(span[-1], 16))}" for span in spans)


SENTENCE_END = re.compile(rf"[{_character_class(SENTENCE_TERMINAL)}{OTHER_ENDS}][{CLOSING}\s]*$")
ENDS_WITHOUT_MARK = re.compile(rf"[{WITHOUT_SENTENCE_MARKS}][{CLOSING}\s]*$")
# A line break inside text without spaces: lines are joined there without a space.
LINE_BREAK_WITHOUT_SPACE = re.compile(rf"\n(?<=[{WITHOUT_SPACES}]\n)(?=[{WITHOUT_SPACES}])")
# The space between two phrases of Thai, Lao, Tibetan or Khmer.
NEXT_PHRASE = re.compile(" (?<=[\u0e00-\u0fff\u1780-\u17ff] )(?=[\u0e00-\u0fff\u1780-\u17ff])")
CHARACTER_WITHOUT_SPACES = re.compile(f"[{WITHOUT_SPACES}]")

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
    """Splits a paragraph into sentences, in any language.

    Each run of white space becomes a single space; no other character is changed. A sentence ends at the marks of any
    script: a Chinese, Hindi or Arabic paragraph is split correctly whatever the language. The language determines which
    full stops belong to abbreviations, initials and dates; a language without rules of its own has those of a related
    one, or of English. Thai and Lao do not mark the ends of sentences: a paragraph of fewer than 250 characters is not
    split, a longer one is split at its spaces.

    Args:
        paragraph (str): text; line breaks count as spaces.
        language (str, optional): ISO 639-1 code. Default: "en".

    Returns: list of str, none empty. A list number ("1.") stays with the text after it.
    Raises: ValueError for an unknown language; ImportError without sentencex, which the extra `training` installs.

    Example:
        >>> kbi.corpora.split_sentences("Dr. Lee was here. It rained.")
        ['Dr. Lee was here.', 'It rained.']
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
