# ruff: noqa: RUF001
"""Texts on which BERT tokenizers are known to disagree, and vocabularies that reveal the disagreement."""

import functools
import random
import sys
import unicodedata

from google_tokenization import basic_tokenize, google_ids

from keras_bert_impl.text.tokenizers import WordPieceTokenizer, google_characters
from keras_bert_impl.text.tokenizers.vocabulary import SPECIAL_TOKENS

HOSTILE_TEXTS = [
    "",
    " \t\r\n ",
    "e\u0301 \u0301e a\u0308\u0323 \u0301 x\u20dd \u0915\u093f",  # combining marks, spacing and nonspacing
    "中文字a中b，。𠀀\u3400",
    "ＦＵＬＬ　Ｗｉｄｔｈ！１２",
    "ﬁne oﬃce ĳ Ǆ ŉ ½ ™ ª",
    "a\ufffdb \ufffd",
    "a\x00b a\x0bc a\x0cb a\x1bb a\x7fb a\x85b a\u2028b a\u2029b a\u00a0b",
    "a\u200bb a\u200db a\ufeffb a\u00adb a\u202eb a\u2060b",
    "😀 👩\u200d👩\u200d👧 🇫🇷 ❤\ufe0f a😀b",
    "ΟΔΟΣ ΟΔΟΣ. ΣΑΣ ΑΣΣ Σ ΑΣ' ΑΣ'Α Α'Σ Α\u00adΣ ΑΣ中 ΑΣ\u0301 1Σ Α.Σ.Α",
    "[SEP] [MASK] [CLS] [PAD] [UNK] a[SEP]b [sep] ##ing",
    "İstanbul ISTANBUL ıI İ\u0307",
    "한국어 한글a 각힣 ᄒ\u1161\u11ab",
    "ẞ ß ΐ K Å Ω Ⅷ ⓐ Ꭰ ꭰ Ა ა \u1fbc ᾼ",
    "\u1fef \u2260 \u226e a\u2260b \u037e \u0387",  # become ASCII punctuation when decomposed
    "\ue000 \U000f0000 \u0378 a\ue000b \ufdd0 \ufffe",  # private use, unassigned, noncharacters
    "don't stop-me_now $5+3=<8>^`|~ a.b,c;d",
    "“curly” ‘quotes’—and…dots",
    "a" * 200 + " " + "a" * 201,
    "é" * 200 + " " + "é" * 201 + " 😀" + "😀" * 199,
    "İ" * 150,
    "한" * 66 + " " + "한" * 67,
    "é" * 23 + "a" * 178 + "." + "ж" * 150,
    "a b" * 3_333 + "é",
    "ab" * 5_000,
]


def letters_between(step: int) -> list[str]:
    """Each `step`-th code point between two letters, without those on which Python's Unicode and the table's differ."""
    return [f"a{chr(code)}b" for code in range(0, sys.maxunicode + 1, step) if _is_comparable(code)]


def _is_comparable(code):
    if 0xD800 <= code <= 0xDFFF:
        return False
    # In a Python with another version of Unicode, only the characters of Unicode 3.2 are certain to be the same.
    is_same_unicode = unicodedata.unidata_version == google_characters.UNICODE_VERSION
    return is_same_unicode or unicodedata.ucd_3_2_0.category(chr(code)) != "Cn"


def mixed_texts(count: int) -> list[str]:
    """Random texts of characters of several scripts and of the hostile texts, the same in every run."""
    chance = random.Random(5)
    latin, greek, cyrillic, kana = "abcdEFGH éÉ'.-", "αβςσΣΑΒΆ", "жЖёЁ", "かガ。中"
    marks = "\u0301\u0308\u0345\u20dd\u00ad\u200d"
    hostile = "".join(HOSTILE_TEXTS[:20])
    pools = [latin, latin, greek, cyrillic, kana, marks, hostile]
    return [
        "".join(chance.choice(chance.choice(chosen)) for _ in range(40))
        for chosen in (chance.sample(pools, 3) for _ in range(count))
    ]


def revealing_vocabulary(texts: list[str], lowercase: bool) -> list[str]:
    """Every character that the reference keeps of the texts, at the start of a word and inside: no [UNK] is needed."""
    words = {word for text in texts for word in basic_tokenize(text, lowercase)}
    letters = sorted(set("".join(words)))
    return [*SPECIAL_TOKENS, *letters, *(f"##{letter}" for letter in letters)]


@functools.cache
def against_google(step: int, lowercase: bool):
    """Texts with every `step`-th code point, a tokenizer that knows all of their characters, and Google's ids."""
    lines = ["a\nb", "\n", " a  b ", "\0", "é\nΑΣ\nb \0"]
    texts = [*HOSTILE_TEXTS, *mixed_texts(150), *letters_between(step), *lines]
    tokenizer = WordPieceTokenizer(revealing_vocabulary(texts, lowercase), lowercase)
    return texts, tokenizer, google_ids(texts, tokenizer)


# The second step takes every code point.
STEPS = (499, 1)
