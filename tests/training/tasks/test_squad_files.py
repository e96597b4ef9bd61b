import json

import pytest
from tasks_data import DATA, needs_data
from tiers import once

from keras_bert_impl import WordPieceTokenizer
from keras_bert_impl.preprocessing.question_windows import make_windows
from keras_bert_training.tasks.squad_files import read_questions
from keras_bert_training.tasks.tables import BadRows

pytestmark = once

CONTEXT = "the cat sat on a mat in rain . the red dog ran ."


def labelled_text(windows, row, context):
    before = windows.before[row]
    begin, end = windows.start[row] - before, windows.end[row] - before
    return context[windows.offsets[row][begin, 0] : windows.offsets[row][end, 1]]


def test_an_answer_that_does_not_stand_there_is_malformed(tmp_path):
    rows = [
        {"id": "good", "question": "?", "answers": [{"text": "cat", "answer_start": 4}]},
        {"id": "bad", "question": "?", "answers": [{"text": "cat", "answer_start": 5}]},
    ]
    content = {"data": [{"paragraphs": [{"context": CONTEXT, "qas": rows}]}]}
    (tmp_path / "train.json").write_text(json.dumps(content))
    bad_rows = BadRows("skip")
    assert [q.id for q in read_questions(tmp_path / "train.json", bad_rows, training=True).questions] == ["good"]
    assert "question bad: answer 'cat' is not at character 5; found there: 'at'" in bad_rows.messages[0]
    assert len(read_questions(tmp_path / "train.json", BadRows(), training=False)) == 2


def test_a_file_whose_answers_are_all_empty_has_no_labels(tmp_path):
    """As TyDi's dev file in some mirrors: any prediction would score 0."""
    for row, has_labels in (
        ({"answers": [{"text": "", "answer_start": 0}]}, False),
        ({"answers": [{"text": "cat", "answer_start": 4}]}, True),
        ({"answers": [], "is_impossible": True}, True),
        ({"is_impossible": False}, False),
        ({}, False),
    ):
        content = {"data": [{"paragraphs": [{"context": CONTEXT, "qas": [{"id": "a", "question": "?", **row}]}]}]}
        (tmp_path / "dev.json").write_text(json.dumps(content))
        found = read_questions(tmp_path / "dev.json", BadRows(), training=False)
        assert (found.labels is not None) == has_labels, row


def test_equal_ids_are_refused_where_predictions_are_compared_by_them_but_not_in_training(tmp_path):
    answers = [{"text": "cat", "answer_start": 4}], [{"text": "dog", "answer_start": CONTEXT.index("dog")}]
    rows = [{"id": "0", "question": "?", "answers": answer} for answer in answers]
    path = tmp_path / "file.json"
    path.write_text(json.dumps({"data": [{"paragraphs": [{"context": CONTEXT, "qas": rows}]}]}))
    found = read_questions(path, BadRows(), training=True).questions
    assert [question.answers[0][0] for question in found] == ["cat", "dog"]
    with pytest.raises(ValueError, match=r"file\.json: 1 of 2 questions have the id of another one, first '0'"):
        read_questions(path, BadRows(), training=False)


@needs_data
def test_the_questions_of_tydi_can_be_trained_on():
    path = DATA / "squad" / "tydiqa.goldp.en.train.json"
    assert len(read_questions(path, BadRows("skip"), training=True)) > 3600


@needs_data
def test_every_answer_of_squad_lies_in_a_window_and_comes_back_as_text():
    tokenizer = WordPieceTokenizer(DATA / "vocab" / "bert-base-uncased-vocab.txt")
    questions = read_questions(DATA / "squad" / "dev-v1.1.json", BadRows(), training=True).questions[::10]
    windows = make_windows(tokenizer, questions)
    texts = [
        (labelled_text(windows, row, questions[number].context), questions[number].answers[0][0])
        for row, number in enumerate(windows.question)
        if windows.start[row]
    ]
    assert {number for row, number in enumerate(windows.question) if windows.start[row]} == set(range(len(questions)))
    # Some answers are parts of words: the labelled words then contain the answer.
    assert all(answer in text for text, answer in texts)
    assert sum(text == answer for text, answer in texts) > 0.99 * len(texts)
