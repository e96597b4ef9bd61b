"""Characters of strings are replaced in one operation, by a table of our own in the file that the operation reads."""

import sys

import tensorflow as tf
from tiers import on

from keras_bert_impl.preprocessing.graphs.characters import character_strings

pytestmark = on("tensorflow")


def test_characters_of_every_size_are_replaced_dropped_or_kept_wherever_they_stand():
    table = character_strings({"a": "", "\0": "nul", "é": "e\u0301", "中": " 中 ", "😀": "x" * 63, "z": "é"})
    found = table.normalize(tf.constant(["aéb\0a", "", "aa", "x中😀z", "йaé"]))
    assert [text.decode() for text in found.numpy()] == ["e\u0301bnul", "", "", "x 中 " + "x" * 63 + "é", "йe\u0301"]


def test_of_all_characters_those_in_the_table_are_replaced_and_no_others():
    characters = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code <= 0xDFFF]
    replacements = {character: f"<{ord(character)}>" for character in characters[::997]}
    found = character_strings(replacements).normalize(tf.constant(characters)).numpy()
    assert [text.decode() for text in found] == [replacements.get(character, character) for character in characters]
