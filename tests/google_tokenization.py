"""Google's tokenizer as google-research/bert's tokenization.py defines it, as the reference in tests.

Written from the algorithm's description: slow, plain Python, and independent of the library's code.
"""

import unicodedata

MAX_INPUT_CHARS_PER_WORD = 200


def google_ids(texts, tokenizer) -> list[list[int]]:
    """Ids of texts with the vocabulary and case of one of our tokenizers."""
    vocabulary = {token: index for index, token in enumerate(tokenizer.vocabulary)}
    return [tokenize(text, vocabulary, tokenizer.lowercase) for text in texts]


def tokenize(text: str | bytes, vocabulary: dict[str, int], lowercase: bool) -> list[int]:
    """Ids of `text` by FullTokenizer, without [CLS] and [SEP]."""
    words = basic_tokenize(convert_to_unicode(text), lowercase)
    return [vocabulary[piece] for word in words for piece in wordpiece(word, vocabulary)]


def convert_to_unicode(text: str | bytes) -> str:
    return text.decode("utf-8", "ignore") if isinstance(text, bytes) else text


def basic_tokenize(text: str, lowercase: bool) -> list[str]:
    words = []
    for word in space_chinese_characters(clean(text)).split():
        if lowercase:
            word = strip_accents(word.lower())
        words.extend(split_on_punctuation(word))
    return " ".join(words).split()


def clean(text: str) -> str:
    kept = [c for c in text if ord(c) not in (0, 0xFFFD) and not is_control(c)]
    return "".join(" " if is_whitespace(c) else c for c in kept)


def space_chinese_characters(text: str) -> str:
    return "".join(f" {c} " if is_chinese(ord(c)) else c for c in text)


def strip_accents(text: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c) != "Mn")


def split_on_punctuation(word: str) -> list[str]:
    parts, starts_new_part = [], True
    for c in word:
        if is_punctuation(c):
            parts.append(c)
            starts_new_part = True
        elif starts_new_part:
            parts.append(c)
            starts_new_part = False
        else:
            parts[-1] += c
    return parts


def wordpiece(word: str, vocabulary: dict[str, int]) -> list[str]:
    """Greedy, longest piece first; one [UNK] if any part of the word cannot be matched."""
    if len(word) > MAX_INPUT_CHARS_PER_WORD:
        return ["[UNK]"]
    pieces, start = [], 0
    while start < len(word):
        prefix = "##" if start else ""
        ends = range(len(word), start, -1)
        end = next((end for end in ends if prefix + word[start:end] in vocabulary), None)
        if end is None:
            return ["[UNK]"]
        pieces.append(prefix + word[start:end])
        start = end
    return pieces


def is_whitespace(c: str) -> bool:
    return c in " \t\n\r" or unicodedata.category(c) == "Zs"


def is_control(c: str) -> bool:
    return c not in "\t\n\r" and unicodedata.category(c) in ("Cc", "Cf")


def is_punctuation(c: str) -> bool:
    code = ord(c)
    is_ascii = 33 <= code <= 47 or 58 <= code <= 64 or 91 <= code <= 96 or 123 <= code <= 126
    return is_ascii or unicodedata.category(c).startswith("P")


def is_chinese(code: int) -> bool:
    return (
        0x4E00 <= code <= 0x9FFF
        or 0x3400 <= code <= 0x4DBF
        or 0x20000 <= code <= 0x2A6DF
        or 0x2A700 <= code <= 0x2B73F
        or 0x2B740 <= code <= 0x2B81F
        or 0x2B820 <= code <= 0x2CEAF
        or 0xF900 <= code <= 0xFAFF
        or 0x2F800 <= code <= 0x2FA1F
    )
