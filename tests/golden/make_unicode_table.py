"""Writes keras_bert_impl/text/tokenizers/unicode_table.txt from this Python's Unicode database.

    python tests/golden/make_unicode_table.py > keras_bert_impl/text/tokenizers/unicode_table.txt

The file has parts with a name in their first line, and empty lines between them. Ranges are hexadecimal and
inclusive. A line of FOLDED starts with a code point, then gives what it and each following code point become by
str.lower(), canonical decomposition and removal of nonspacing marks.

The table was made with Python 3.11 (Unicode 14). Making it again with a newer Python changes only the ids of text with
characters that were assigned since, none of which is in a published vocabulary.
"""

import textwrap
import unicodedata

CODE_POINTS = [code for code in range(0x110000) if not 0xD800 <= code <= 0xDFFF]
HANGUL_SYLLABLES = range(0xAC00, 0xD7A4)  # decomposed by arithmetic and therefore not in the table


def category(code):
    return unicodedata.category(chr(code))


def is_dropped(code):
    return code in (0, 0xFFFD) or (category(code) in ("Cc", "Cf") and chr(code) not in "\t\n\r")


def is_space(code):
    # str.split() also splits at U+2028 and U+2029, which _is_whitespace does not name.
    return not is_dropped(code) and (category(code) == "Zs" or chr(code).isspace())


def is_punctuation(code):
    ascii_symbol = 33 <= code <= 126 and not chr(code).isalnum()
    return ascii_symbol or category(code).startswith("P")


def is_nonspacing(code):
    return category(code) == "Mn"


def is_cased(code):
    """Whether Python writes a final sigma after the character: this asks Python's own rule for cased characters."""
    return (chr(code) + "Σ").lower().endswith("ς")


def is_case_ignorable(code):
    return not is_cased(code) and ("a" + chr(code) + "Σ").lower().endswith("ς")


def folded(code):
    decomposed = unicodedata.normalize("NFD", chr(code).lower())
    return "".join(character for character in decomposed if unicodedata.category(character) != "Mn")


def ranges(codes):
    """[1, 2, 3, 7] becomes [(1, 3), (7, 7)]."""
    found = []
    for code in codes:
        if found and code == found[-1][1] + 1:
            found[-1] = (found[-1][0], code)
        else:
            found.append((code, code))
    return found


def range_table(name, belongs):
    spans = ranges(filter(belongs, CODE_POINTS))
    words = " ".join(f"{first:x}" if first == last else f"{first:x}-{last:x}" for first, last in spans)
    return f"{name}\n{textwrap.fill(words, 118, break_on_hyphens=False)}\n"


def is_folded(code):
    """Spaces and marks have tables of their own."""
    skipped = code in HANGUL_SYLLABLES or is_nonspacing(code) or is_space(code)
    return not skipped and folded(code) != chr(code)


def folded_table():
    lines = []
    for first, last in ranges(filter(is_folded, CODE_POINTS)):
        for start in range(first, last + 1, 24):
            codes = range(start, min(start + 24, last + 1))
            lines.append(" ".join([f"{start:x}", *map(folded, codes)]))
    return "\n".join(["FOLDED", *lines])


def main():
    print(f"VERSION\n{unicodedata.unidata_version}\n")
    print(range_table("DROPPED", is_dropped))
    print(range_table("SPACES", is_space))
    print(range_table("PUNCTUATION", is_punctuation))
    print(range_table("NONSPACING_MARKS", is_nonspacing))
    print(range_table("CASED", is_cased))
    print(range_table("CASE_IGNORABLE", is_case_ignorable))
    print(folded_table())


if __name__ == "__main__":
    main()
