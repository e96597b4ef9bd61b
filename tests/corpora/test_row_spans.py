"""Phrases of .jsonl rows are followed into the sentences of their text, or refused."""

import json
import random

import pytest
from hostile_texts import HOSTILE_TEXTS, mixed_texts
from tiers import once

from keras_bert_impl.corpora import TextCorpus, open_corpus
from keras_bert_impl.corpora.row_spans import spans_in_sentences
from keras_bert_impl.corpora.text_formats import TEXT_FORMATS, sentences_of_row

pytestmark = once


def phrases_in(text, spans, text_format="auto"):
    """The sentences of a text joined by "|", with its phrases in brackets."""
    sentences = sentences_of_row(text, text_format)
    shown = list("|".join(sentences))
    for start, end in spans_in_sentences({"entities": spans}, "entities", text, sentences):
        shown[start], shown[end - 1] = f"[{shown[start]}", f"{shown[end - 1]}]"
    return "".join(shown)


def test_phrases_keep_their_words_where_white_space_is_normalised_and_sentences_are_split():
    text = "  In  New\u2003York it\train. He saw\n Who.\n"
    assert [text[6:14], text[24:30], text[32:36]] == ["New\u2003York", "He saw", "Who."]
    assert phrases_in(text, [[6, 14], [24, 30], [32, 36]]) == "In [New York] it rain.|[He saw]|[Who.]"
    assert phrases_in(text, [[5, 15], [27, 35]]) == "In [New York] it rain.|He [saw|Who]."


def test_objects_and_pairs_are_the_same_and_other_keys_are_left():
    row = {"ents": [{"start": 4, "end": 7, "label": "X", "score": 0.5}, [0, 3]]}
    assert spans_in_sentences(row, "ents", "The cat sat.", ["The cat sat."]) == [(4, 7), (0, 3)]


def test_a_wrapped_compound_is_joined_with_its_phrase():
    assert phrases_in("On the window-\nseat he sat.", [[7, 19]], "running") == "On the [window-seat] he sat."


def test_a_phrase_of_white_space_holds_nothing():
    assert spans_in_sentences({"x": [[1, 2], [0, 3]]}, "x", "a b", ["a b"]) == [(0, 0), (0, 3)]


@pytest.mark.parametrize("text_format", ["auto", *TEXT_FORMATS])
def test_no_character_but_white_space_is_lost_on_the_way(text_format):
    chance = random.Random(0)
    pool = [text for text in HOSTILE_TEXTS if len(text) < 1000] + mixed_texts(200)
    pool += ["Mr. A. B-\nC said: “Go. Now!”", "= Title =", "1. x", "中文。北京！", "สวัสดี ครับ"]  # noqa: RUF001
    for _ in range(300):
        ends = ("\n", "\n\n", " ", "\u2028", "-\n", "\x0b", "\u3000", ". ", "\x85")
        text = "".join(chance.choice(pool) + chance.choice(ends) for _ in range(6))
        sentences = sentences_of_row(text, text_format)
        spans = sorted(chance.sample(range(len(text)), 2))
        ((start, end),) = spans_in_sentences({"x": [spans]}, "x", text, sentences)
        assert "".join("\n".join(sentences)[start:end].split()) == "".join(text[slice(*spans)].split())


def test_sentences_of_other_characters_are_refused():
    with pytest.raises(ValueError, match="sentences do not hold the characters of the text"):
        spans_in_sentences({"x": [[0, 3]]}, "x", "The cat", ["The", "hat"])


BAD = [
    ({}, 'no field "entities"; the row has text. Set phrase_field'),
    ({"entities": None}, 'field "entities" is a NoneType, expected a list of objects with start and end'),
    ({"entities": [[0, 3], [4, 13]]}, "entities[1] is [4, 13], expected integers start < end within the 12 characters"),
    ({"entities": [[3, 3]]}, "entities[0] is [3, 3], expected"),
    ({"entities": [[-1, 3]]}, "entities[0] is [-1, 3], expected"),
    ({"entities": [[0.0, 3]]}, "entities[0] is [0.0, 3], expected"),
    ({"entities": [[False, 3]]}, "entities[0] is [false, 3], expected"),
    ({"entities": [[0, 3, "X"]]}, 'entities[0] is [0, 3, "X"], expected'),
    ({"entities": [{"start": None, "end": 3}]}, 'entities[0] is {"start": null, "end": 3}, expected'),
    ({"entities": [{"begin": 0, "end": 3}]}, 'entities[0] is {"begin": 0, "end": 3}, expected'),
    ({"entities": ["The"]}, 'entities[0] is "The", expected'),
    ({"text": " \n", "entities": [[0, 1]]}, 'field "entities" marks phrases in a text that is white space'),
]


def test_malformed_phrases_are_reported_with_file_and_line(tmp_path):
    rows = [{"text": "The cat sat.", **row} for row in ({"entities": [[4, 7]]}, *(row for row, _ in BAD))]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    corpus = TextCorpus(tmp_path, phrase_field="entities")
    assert [(document.name, document.spans) for document in corpus] == [("a.jsonl#1", [(4, 7)])]
    assert [problem.place for problem in corpus.problems] == [
        f"{tmp_path / 'a.jsonl'}:{number}" for number in range(2, len(BAD) + 2)
    ]
    for problem, (_, message) in zip(corpus.problems, BAD, strict=True):
        assert message in problem.reason
    with pytest.raises(ValueError, match=r'a\.jsonl:2: no field "entities"'):
        list(TextCorpus(tmp_path, "raise", phrase_field="entities"))


def test_files_without_fields_are_refused(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "Good.", "entities": []}\n')
    (tmp_path / "b.txt").write_text("Good.\n")
    with pytest.raises(ValueError, match=r'phrase_field is "entities", but .*b\.txt is not \.jsonl'):
        open_corpus(tmp_path, phrase_field="entities")
    with pytest.raises(ValueError, match='phrase_field is "entities", but there are no text files'):
        open_corpus(phrase_field="entities")


def test_documents_have_no_phrases_unless_they_are_asked_for(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "Good.", "entities": [[0, 4]]}\n')
    assert [document.spans for document in TextCorpus(tmp_path)] == [()]
