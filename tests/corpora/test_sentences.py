import pytest

from keras_bert_impl.corpora import split_sentences


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


def test_white_space_of_any_kind_becomes_one_space():
    assert split_sentences("  One\n two.\t\tThree\u2028four.\r\n") == ["One two.", "Three four."]


def test_nothing_gives_no_sentence():
    assert split_sentences("") == [] == split_sentences(" \n ")


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
