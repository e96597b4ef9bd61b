"""What google-research/bert's tokenization.py does to each character, in a form that any tokenizer can apply.

The original uses Python's unicodedata, TensorFlow's kernels use ICU, the tokenizers library uses Rust's tables:
three versions of Unicode, three different results. Here all use one table, of Unicode 14; a character assigned later
is a letter that lower-cases to itself, as it is for the original on Python 3.11.

Order matters in the original (clean, space CJK, split at spaces, lower, decompose, strip marks, split at
punctuation), yet its effect on a character depends on that character alone, with two exceptions:
    Final sigma: str.lower() looks at the neighbours of a capital sigma, and so do BEFORE_FINAL_SIGMA and
    AFTER_FINAL_SIGMA below.
    Decomposition sorts neighbouring marks. Nonspacing marks are stripped afterwards; of the other marks only Hangul
    tone marks and musical stems could change places, and no published vocabulary contains them.
"""

import pathlib

Ranges = list[tuple[int, int]]

# tokenization.py, _is_chinese_char: CJK Unified Ideographs, its extensions A to E, and the compatibility blocks.
CJK: Ranges = [
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
]
HANGUL_SYLLABLES: Ranges = [(0xAC00, 0xD7A3)]
MAX_CHARACTERS_PER_WORD = 200  # WordpieceTokenizer's max_input_chars_per_word: a longer word is one [UNK]


def parse_ranges(table: str) -> Ranges:
    """'9-a d' becomes [(9, 10), (13, 13)]."""
    spans = [word.split("-") for word in table.split()]
    return [(int(span[0], 16), int(span[-1], 16)) for span in spans]


# Written by tests/golden/make_unicode_table.py, which describes it.
_TABLE = pathlib.Path(__file__).with_name("unicode_table.txt").read_text(encoding="utf-8")
UNICODE_VERSION, *_RANGES, _FOLDED = (part.partition("\n")[2] for part in _TABLE.split("\n\n"))
DROPPED, SPACES, PUNCTUATION, NONSPACING_MARKS, CASED, CASE_IGNORABLE = map(parse_ranges, _RANGES)
CASE_IGNORABLE = DROPPED + CASE_IGNORABLE  # a dropped character no longer separates a sigma from its neighbour


def characters(ranges: Ranges) -> list[str]:
    """Every character of the ranges."""
    return [chr(code) for first, last in ranges for code in range(first, last + 1)]


def replacements(lowercase: bool) -> dict[str, str]:
    """The replacement of each character that does not stay unchanged.

    Spaces become " "; dropped characters and, with `lowercase`, nonspacing marks become "". Hangul syllables are not
    included: with `lowercase`, `decompose_hangul` computes their replacement. Nor are punctuation and CJK characters,
    which are words of their own: `isolated()` lists them.
    """
    table = dict.fromkeys(characters(SPACES), " ") | dict.fromkeys(characters(DROPPED), "")
    if not lowercase:
        return table
    table |= dict.fromkeys(characters(NONSPACING_MARKS), "")
    for line in _FOLDED.strip().splitlines():
        first, *folded = line.split()
        table |= {chr(int(first, 16) + place): text for place, text in enumerate(folded)}
    return table


def isolated() -> Ranges:
    """Characters that are words of their own, after `replacements` have been applied."""
    return PUNCTUATION + CJK


def decompose_hangul(syllable: str) -> str:
    """The two or three letters of a Hangul syllable (The Unicode Standard, section 3.12)."""
    index = ord(syllable) - 0xAC00
    lead, vowel, tail = index // 588, index % 588 // 28, index % 28
    return chr(0x1100 + lead) + chr(0x1161 + vowel) + (chr(0x11A7 + tail) if tail else "")


def character_class(ranges: Ranges) -> str:
    r"""The inside of a regular expression's brackets, as RE2 and Oniguruma read it: \x{61}-\x{7a}."""
    return "".join(rf"\x{{{first:x}}}-\x{{{last:x}}}" for first, last in ranges)


_CASED = character_class(CASED)
_IGNORABLE = character_class(CASE_IGNORABLE)

# A capital sigma becomes the final small sigma if a cased letter precedes it and none follows it, where ignorable
# characters in between do not count; elsewhere it becomes the ordinary small sigma.
BEFORE_FINAL_SIGMA = f"[{_CASED}][{_IGNORABLE}]*"
AFTER_FINAL_SIGMA = f"[{_IGNORABLE}]*(?:[^{_CASED}{_IGNORABLE}]|$)"
