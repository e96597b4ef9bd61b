"""The marks that end a sentence in the scripts of the world, and the scripts that put no spaces between words."""

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
