"""Google's basic tokenization as normalizers and pre-tokenizers of the `tokenizers` library.

BertNormalizer, the library's own, differs from the original on final sigma, private-use and unassigned characters
and wherever Rust's version of Unicode differs from Python's. Hence there are two pipelines: ASCII text goes through
the library's fast steps, which are exact there, and any other text through `ExactNormalizer`. Both keep offsets into
the original text, since the library's NormalizedString records every replacement.
"""

import re

from tokenizers import NormalizedString, Regex, normalizers, pre_tokenizers

from keras_bert_impl.text.tokenizers import google_characters

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
        self.replacements = google_characters.replacements(lowercase)
        before, after = google_characters.BEFORE_FINAL_SIGMA, google_characters.AFTER_FINAL_SIGMA
        self.final_sigma = Regex(rf"{before}\KΣ(?={after})") if lowercase else None

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
    alone = Regex(f"[{google_characters.character_class(google_characters.isolated())}]")
    spaces = Regex(r"[ \t\n\r]+")
    return pre_tokenizers.Sequence([pre_tokenizers.Split(spaces, "removed"), pre_tokenizers.Split(alone, "isolated")])


def plain_normalizer(lowercase: bool) -> normalizers.Normalizer:
    """Equivalent to `ExactNormalizer` on printable ASCII, except for white space, which the pre-tokenizer removes."""
    return normalizers.Lowercase() if lowercase else normalizers.Sequence([])


def plain_pre_tokenizer() -> pre_tokenizers.PreTokenizer:
    """Equivalent to `exact_pre_tokenizer` on printable ASCII."""
    return pre_tokenizers.BertPreTokenizer()


def portable_normalizer(lowercase: bool) -> normalizers.Normalizer:
    """`ExactNormalizer` in steps that a file can hold: regular expressions and the library's tables for lower-casing
    and decomposition. They differ for 56 characters, all assigned after Unicode 14 of 2021, which the library's newer
    tables lower-case or decompose."""

    def replace(ranges, replacement):
        return normalizers.Replace(Regex(f"[{google_characters.character_class(ranges)}]"), replacement)

    steps = [replace(google_characters.DROPPED, ""), replace(google_characters.SPACES, " ")]
    if lowercase:
        # The library lower-cases each character for itself and knows no final sigma.
        before, after = google_characters.BEFORE_FINAL_SIGMA, google_characters.AFTER_FINAL_SIGMA
        steps.insert(0, normalizers.Replace(Regex(rf"{before}\KΣ(?={after})"), "ς"))
        steps += [normalizers.Lowercase(), normalizers.NFD(), replace(google_characters.NONSPACING_MARKS, "")]
    return normalizers.Sequence(steps)
