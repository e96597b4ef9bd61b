# ruff: noqa: RUF001
"""One sentence per line is told from running text in any script, whether or not every line ends with a full stop."""

import json
import textwrap
import unicodedata

import pytest
from six_languages import BETWEEN, SENTENCES
from tiers import once

from keras_bert_impl.text.corpora import TextCorpus, open_corpus
from keras_bert_impl.text.corpora.sentences import SENTENCE_END
from keras_bert_impl.text.corpora.text_formats import has_document_per_line, has_sentence_per_line

pytestmark = once

TITLED = """The black cat
A black cat lived in the old house by the river.
It slept
On Sundays it went out to look for mice.

The red dog
Nobody knew where the dog had come from!
It barked at the postman, the neighbours and the moon

The rain
It rained for three days.
"""


def sentences_of(path, **arguments):
    return [document.sentences for document in TextCorpus(path, **arguments)]


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("language", SENTENCES)
def test_one_sentence_a_line_is_documents_of_lines_in_every_script(tmp_path, language):
    documents = [SENTENCES[language][:5], SENTENCES[language][5:], SENTENCES[language][::2]]
    write(tmp_path / "a.txt", "\n\n".join("\n".join(document) for document in documents))
    assert sentences_of(tmp_path) == documents  # the language need not be given


@pytest.mark.parametrize("language", sorted(set(SENTENCES) - {"th"}))
def test_wrapped_text_is_joined_and_split_into_its_sentences(tmp_path, language):
    text = BETWEEN[language].join(SENTENCES[language])
    lines = textwrap.wrap(text, 19 if language == "zh" else 50)
    write(tmp_path / "a.txt", "\n".join(lines) + "\n\n" + "\n".join(lines))
    assert sentences_of(tmp_path, language=language) == [SENTENCES[language] * 2]


def test_thai_lines_of_one_width_are_running_text(tmp_path):
    text = " ".join(SENTENCES["th"])
    lines = [text[start : start + 40].strip() for start in range(0, len(text), 40)]
    write(tmp_path / "a.txt", "\n".join(lines))
    corpus = TextCorpus(tmp_path)
    (document,) = corpus
    assert corpus.formats == {"running text": 1}
    assert "".join(document.sentences).replace(" ", "") == text.replace(" ", "")
    assert max(map(len, document.sentences)) < 70  # phrases: a whole paragraph would not fit into a row


def test_lines_without_full_stop_are_sentences_where_blank_lines_part_documents(tmp_path):
    write(tmp_path / "a.txt", TITLED)
    assert sentences_of(tmp_path) == [block.split("\n") for block in TITLED.strip().split("\n\n")]


def test_wrapped_paragraphs_with_headings_stay_running_text():
    prose = "He woke early. The house was quiet. Nobody had lit the fire, and so he went out. " * 3
    lines = [line for number in range(5) for line in (f"CHAPTER {number}", "", *textwrap.wrap(prose, 60), "")]
    assert not has_sentence_per_line(lines)


@pytest.mark.parametrize("text_format", ["auto", "paragraphs"])
@pytest.mark.parametrize("width", [121, 130, 200])
def test_text_that_is_wrapped_at_a_great_width_is_joined(tmp_path, width, text_format):
    sentences = ["He woke early, for the house was quiet.", "Nobody had lit the fire that morning, and so he went out."]
    paragraph = textwrap.fill(" ".join(sentences * 6), width)
    assert paragraph.count("\n") > 1
    write(tmp_path / "a.txt", f"{paragraph}\n\n{paragraph}\n")
    documents = sentences_of(tmp_path, text_format=text_format)
    assert [sentence for document in documents for sentence in document] == sentences * 12


def test_lines_that_go_on_in_small_letters_are_running_text_whatever_their_widths():
    first = "The house was quiet\nand cold.\nIt rained\nall day."
    second = "She had\ngone to the town by the sea\nin spring.\nHe slept."
    assert not has_sentence_per_line(f"{first}\n\n{second}".split("\n"))


def test_blank_lines_part_documents_of_running_text_if_asked_to(tmp_path):
    write(tmp_path / "a.txt", "One is wrapped\nhere. Two.\n\nThree. Four.\n")
    assert sentences_of(tmp_path, text_format="paragraphs") == [["One is wrapped here.", "Two."], ["Three.", "Four."]]
    assert sentences_of(tmp_path, text_format="running") == [["One is wrapped here.", "Two.", "Three.", "Four."]]


ABSTRACT = (
    "We measured how a cat sleeps in the house by the river. Number {} slept for three hours. The others went out, "
    "for reasons that are discussed below."
)


@pytest.mark.parametrize("text_format", ["auto", "documents"])
def test_one_document_a_line_is_seen(tmp_path, text_format):
    write(
        tmp_path / "a.txt",
        "".join(ABSTRACT.format(number) + " It rained." * (number % 5) + "\n" for number in range(30)),
    )
    corpus = TextCorpus(tmp_path, text_format=text_format)
    documents = list(corpus)
    assert corpus.formats == {"one document a line": 1} and len(documents) == 30
    assert documents[7].name == "a.txt#8" and documents[7].sentences[1] == "Number 7 slept for three hours."
    assert len(list(corpus.cut(150))) == 48


@pytest.mark.parametrize(
    "lines",
    [
        [ABSTRACT] * 5,  # few lines may be the paragraphs of one document
        [ABSTRACT, ""] * 30,
        [ABSTRACT, ABSTRACT, ABSTRACT, "He nodded."] * 10,  # a novel
        textwrap.wrap(" ".join([ABSTRACT] * 30), 200),
    ],
    ids=["few", "blank lines", "dialogue", "wrapped"],
)
def test_paragraphs_of_one_document_are_not_taken_for_documents(lines):
    assert not has_document_per_line(lines)


@pytest.mark.parametrize(
    ("text_format", "sentences"),
    [
        ("auto", ["One is wrapped", "here.", "Two."]),
        ("lines", ["One is wrapped", "here. Two."]),
        ("running", ["One is wrapped here.", "Two."]),
    ],
)
def test_the_format_says_what_the_lines_of_a_row_are(tmp_path, text_format, sentences):
    write(tmp_path / "a.jsonl", json.dumps({"text": "One is wrapped\nhere. Two."}))
    assert sentences_of(tmp_path, text_format=text_format) == [sentences]


def test_the_language_reaches_files_and_rows(tmp_path):
    sentence = "Er kam am 3. Oktober."
    write(tmp_path / "a.txt", f"{sentence} {sentence}")
    write(tmp_path / "b.jsonl", json.dumps({"text": f"{sentence} {sentence}"}))
    assert sentences_of(tmp_path, language="de") == [[sentence, sentence]] * 2
    assert sentences_of(tmp_path) == [["Er kam am 3.", "Oktober."] * 2] * 2


ENDS = ["FULL STOP", "IDEOGRAPHIC FULL STOP", "FULLWIDTH QUESTION MARK", "ARABIC FULL STOP", "DEVANAGARI DANDA"]
ENDS += ["ETHIOPIC FULL STOP", "KHMER SIGN KHAN", "ARMENIAN FULL STOP", "MYANMAR SIGN SECTION", "HORIZONTAL ELLIPSIS"]


def test_the_marks_of_every_script_end_a_sentence_and_others_do_not():
    for name in (*ENDS, "COMMA", "IDEOGRAPHIC COMMA", "ARABIC COMMA", "SEMICOLON", "DIGIT ONE"):
        assert (SENTENCE_END.search(f"word{unicodedata.lookup(name)}") is not None) is (name in ENDS), name


@pytest.mark.parametrize("closing", ["”", "」", "»", "’", "）", '"', ")"])
def test_a_closing_mark_may_follow_the_end_of_a_sentence(closing):
    assert SENTENCE_END.search(f"。{closing}")


def test_what_cannot_be_honoured_is_refused(tmp_path):
    write(tmp_path / "a.txt", "A sentence.")
    with pytest.raises(ValueError, match="text_format 'words' is unknown; known are auto, lines, documents, "):
        open_corpus(tmp_path, text_format="words")


@pytest.mark.parametrize(
    ("wrapped", "sentence"),
    [
        ("ねこはいえの\nなかにいる。", "ねこはいえのなかにいる。"),  # hiragana
        ("コンピュー\nタ。", "コンピュータ。"),  # katakana
        ("「今日は、\n雨」", "「今日は、雨」"),  # behind punctuation
        ("我们在\n家里。", "我们在家里。"),
        ("안녕하세요\n여러분.", "안녕하세요 여러분."),  # Korean has spaces
    ],
)
def test_a_line_that_was_wrapped_within_a_script_without_spaces_is_joined_without_one(wrapped, sentence, tmp_path):
    (tmp_path / "text.txt").write_text(wrapped, encoding="utf-8")
    assert sentences_of(tmp_path, text_format="running") == [[sentence]]
