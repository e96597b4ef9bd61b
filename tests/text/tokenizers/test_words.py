"""The words that pieces of a text belong to, by hand."""

import pytest
from tiers import once

from keras_bert_impl.text.tokenizers.words import end_with_marks, stripped_span, word_numbers

pytestmark = once


@pytest.mark.parametrize(
    ("text", "offsets", "expected"),
    [
        ("the cats ran", [(0, 3), (4, 7), (7, 8), (9, 12)], [0, 1, 1, 2]),
        ("the cats", [(0, 3), (3, 7), (7, 8)], [0, 1, 1]),  # with the space before a word in its piece
        ("a, b", [(0, 1), (1, 2), (3, 4)], [0, 1, 2]),
        ("U.S. is", [(0, 3), (3, 4), (5, 7)], [0, 1, 2]),  # a piece joins U . S
        ("a   b", [(0, 1), (2, 2), (3, 3), (4, 5)], [0, 0, 0, 1]),  # surplus spaces
        ("漢字", [(0, 0), (0, 1), (1, 2)], [0, 0, 1]),  # a sign for the space before the first word
        ("é 😀", [(0, 1), (0, 1), (2, 3), (2, 3)], [0, 0, 1, 1]),  # bytes of one character
        (" a", [(0, 0), (1, 2)], [0, 0]),
        ("", [], []),
    ],
)
def test_pieces_belong_to_words(text, offsets, expected):
    assert word_numbers(text, offsets).tolist() == expected


@pytest.mark.parametrize(
    ("text", "end", "expected"),
    [
        ("Cafe\u0301 x", 4, 5),
        ("Cafe\u0301\u0327", 4, 6),
        ("हिन्दी है", 5, 6),  # its last vowel sign
        ("Cafe x", 4, 4),
        ("Cafe", 4, 4),
    ],
)
def test_a_span_ends_behind_the_marks_of_its_last_character(text, end, expected):
    assert end_with_marks(text, end) == expected


def test_white_space_at_the_ends_of_a_span_is_left_out():
    assert stripped_span(" ab ", 0, 4) == (1, 3)
    assert stripped_span("a  b", 1, 3) == (3, 3)
