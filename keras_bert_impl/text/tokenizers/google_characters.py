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

In the `tokenizers` library, whose own BertNormalizer also differs on final sigma, private-use and unassigned
characters, ASCII text goes through its fast steps, which are exact there, and any other text through `ExactNormalizer`.
Both keep offsets into the original text, since the library's NormalizedString records every replacement.
"""

import functools
import pathlib
import re

from tokenizers import NormalizedString, Regex, normalizers, pre_tokenizers

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


@functools.cache
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


@functools.cache
def isolated_characters() -> frozenset[str]:
    """Those of `isolated()`, one by one."""
    return frozenset(characters(isolated()))


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
# As Oniguruma and JavaScript read it, which looks for the letter first.
_FINAL_SIGMA = rf"Σ(?<={BEFORE_FINAL_SIGMA}Σ)(?={AFTER_FINAL_SIGMA})"
_PRINTABLE_ASCII = re.compile(r"[\t\n\r -~]*")


def is_plain(text: str) -> bool:
    """Whether `text` holds nothing but printable ASCII, tabs and line ends, so that the fast steps are exact."""
    return text.isascii() and _PRINTABLE_ASCII.fullmatch(text) is not None


class ExactNormalizer:
    """Google's cleaning, lower-casing and accent stripping of any text; the library calls `normalize`.

    Each distinct character of the text that has to be replaced costs one pass in Rust. A text may hold hundreds of
    distinct Hangul syllables, so these are left to the library's NFD: the Unicode standard guarantees that their
    decomposition never changes, and no other character is left for NFD to decompose.
    """

    def __init__(self, lowercase: bool):
        self.lowercase = lowercase
        self.replacements = replacements(lowercase)
        self.final_sigma = Regex(_FINAL_SIGMA) if lowercase else None

    def normalize(self, normalized: NormalizedString) -> None:
        text = normalized.normalized
        if self.lowercase and "Σ" in text:
            normalized.replace(self.final_sigma, "ς")
        for character in sorted(self.replacements.keys() & set(text)):
            normalized.replace(character, self.replacements[character])
        if self.lowercase and any("가" <= character <= "힣" for character in text):
            normalized.nfd()


def exact_normalizer(lowercase: bool) -> normalizers.Normalizer:
    """`ExactNormalizer` wrapped as a normalizer of the library, which cannot be pickled."""
    return normalizers.Normalizer.custom(ExactNormalizer(lowercase))


def exact_pre_tokenizer() -> pre_tokenizers.PreTokenizer:
    """Splits normalized or printable ASCII text at spaces; punctuation and CJK characters become words of their own."""
    alone = Regex(f"[{character_class(isolated())}]")
    spaces = Regex(r"[ \t\n\r]+")
    return pre_tokenizers.Sequence([pre_tokenizers.Split(spaces, "removed"), pre_tokenizers.Split(alone, "isolated")])


def portable_normalizer(lowercase: bool) -> normalizers.Normalizer:
    """`ExactNormalizer` in steps that a file can hold: regular expressions and the library's tables for lower-casing
    and decomposition. They differ for 56 characters, all assigned after Unicode 14 of 2021, which the library's newer
    tables lower-case or decompose."""

    def replace(ranges, replacement):
        return normalizers.Replace(Regex(f"[{character_class(ranges)}]"), replacement)

    steps = [replace(DROPPED, ""), replace(SPACES, " ")]
    if lowercase:
        # The library lower-cases each character for itself and knows no final sigma.
        steps.insert(0, normalizers.Replace(Regex(_FINAL_SIGMA), "ς"))
        steps += [normalizers.Lowercase(), normalizers.NFD(), replace(NONSPACING_MARKS, "")]
    return normalizers.Sequence(steps)
