# ruff: noqa: RUF001
import pytest
from six_languages import BETWEEN, SENTENCES
from tiers import once

from keras_bert_impl.text.corpora import split_sentences

pytestmark = once


@pytest.mark.parametrize(
    "sentences",
    [
        ["Use a list, e.g. a tuple, i.e. a sequence.", "It works."],
        ["Mr. Reed met Mrs. Fairfax and Dr. Watson at St. Paul's.", "They left."],
        ["Pi is 3.14 and e is 2.718.", "Version 2.0 is out."],
        ["Call np.array(x) or tf.nn.relu(x).", "A 1-D tf.Tensor is a tf.data.Dataset.", "Then stop."],
        ["See https://www.tensorflow.org/api_docs/python/tf.html for details.", "It is long."],
        ["Well... I don't know.", "Maybe."],
        ["He works in Washington D.C. at 5 p.m. every day.", "She does not."],
        ["J. K. Rowling wrote it.", "A. Smith et al. disagree."],
        ["Is it true?", "Yes!", "No."],
        ['"Where are you?"', '"Here!" he said.'],
        ['He said, "Stop it. Now." and left.', "She stayed."],
        ["1. First item.", "2. Second item."],
        ["It rose by 5 @.@ 3 percent .", "He left ."],
    ],
)
def test_sentences_joined_by_spaces_are_split_again(sentences):
    assert split_sentences(" ".join(sentences)) == sentences


@pytest.mark.parametrize("language", sorted(set(SENTENCES) - {"th"}))
def test_sentences_of_other_languages_are_split_by_their_marks_and_abbreviations(language):
    text = BETWEEN[language].join(SENTENCES[language])
    assert split_sentences(text, language) == SENTENCES[language]


def test_language_decides_where_it_matters():
    text = "А. С. Пушкин родился здесь. Am 3. Oktober."
    assert split_sentences(text, "ru")[0] == "А. С. Пушкин родился здесь."
    assert split_sentences(text, "de")[-1] == "Am 3. Oktober."
    assert split_sentences(text) == ["А.", "С.", "Пушкин родился здесь.", "Am 3.", "Oktober."]


@pytest.mark.parametrize("language", ["german", "xx"])
def test_unknown_language_is_refused(language):
    with pytest.raises(ValueError, match="expected a code of two letters"):
        split_sentences("One. Two.", language)


def test_small_letter_of_any_alphabet_continues_a_sentence():
    assert split_sentences("Это было в V в. до н. э. на юге. Потом ушли.", "ru") == [
        "Это было в V в. до н. э. на юге.",
        "Потом ушли.",
    ]


def test_long_thai_paragraph_is_split_into_phrases_without_loss():
    text = " ".join(SENTENCES["th"])
    assert len(text) > 250
    assert " ".join(split_sentences(text, "th")) == text
    assert len(split_sentences(text, "th")) == text.count(" ") + 1
    assert split_sentences(text[:200], "th") == [text[:200].strip()]


def test_long_quotation_is_split_inside_and_a_short_one_is_not():
    sentence = "I have walked all day and I have seen nothing that is worth a word."
    assert split_sentences(f'"{sentence} {sentence}"') == [f'"{sentence} {sentence}"']
    assert split_sentences(f'"{" ".join([sentence] * 5)}"') == ['"' + sentence, *[sentence] * 3, sentence + '"']


def test_paragraph_longer_than_a_window_is_split_without_loss():
    sentences = [f'Number {index} is called "{index}" here.' for index in range(20_000)]
    assert split_sentences(" ".join(sentences)) == sentences


def test_sentence_longer_than_a_window_keeps_every_word():
    words = ["word"] * 100_000
    assert " ".join(split_sentences(" ".join(words))).split() == words


def test_initial_before_a_line_separator_does_not_end_the_process():
    assert split_sentences("A.\u2028 B. c") == ["A. B. c"]
