"""How a question answering task uses thresholds: figures and answers from logits that the tests set."""

import json

import numpy as np
import pytest
from tiers import once

from keras_bert_training.tasks.question_answering import TASKS
from keras_bert_training.tasks.squad_files import read_questions
from keras_bert_training.tasks.tables import BadRows

pytestmark = once

CONTEXT = "the cat sat on a mat"
# The null odds of each question, and whether it has an answer. With the threshold 0, "b" and "e" are left unanswered
# and "c" is answered, all of them wrongly; with 3.5, only "c" is wrong.
ODDS = {"a": (-4.0, True), "b": (3.0, True), "c": (-1.0, False), "d": (5.0, False), "e": (3.5, True)}


def write_questions(path, answered, answer="cat"):
    """Writes the questions of ODDS; if `answered`, with answers and is_impossible, as in train and dev."""
    rows = []
    for key, (_, has_answer) in ODDS.items():
        row = {"id": key, "question": "the dog"}
        if answered:
            row["answers"] = [{"text": answer, "answer_start": CONTEXT.index(answer)}] if has_answer else []
            row["is_impossible"] = not has_answer
        rows.append(row)
    path.write_text(json.dumps({"data": [{"paragraphs": [{"context": CONTEXT, "qas": rows}]}]}))
    return read_questions(path, BadRows(), training=False)


def rows_and_logits(tokenizer, questions, odds):
    """Rows, and logits by which each question's best answer is "cat", with these null odds."""
    rows = TASKS["squad2.0"].featurize(tokenizer, questions, None, 20)
    outputs = []
    for key in odds:
        logits = np.zeros((20, 2))
        logits[5] = 10.0  # [CLS] the dog [SEP] the cat
        logits[0] = 10.0 + odds[key] / 2
        outputs.append(logits)
    return rows, outputs


@pytest.fixture
def dev(tmp_path, small_tokenizer):
    questions = write_questions(tmp_path / "dev.json", answered=True)
    return questions, *rows_and_logits(small_tokenizer, questions, {key: odds for key, (odds, _) in ODDS.items()})


def test_the_threshold_is_the_best_on_dev(dev):
    task = TASKS["squad2.0"]
    assert task.score(*dev, None)["f1"] == pytest.approx(2 / 5)  # at 0: "a" and "d" are right
    tuned = task.tuned_on_dev(*dev)
    assert tuned.null_threshold == 3.5
    figures = tuned.score(*dev, None)
    assert figures["f1"] == figures["best_f1"] == pytest.approx(4 / 5)
    assert figures["null_threshold"] == 3.5


def test_answers_for_a_test_file_use_the_threshold_tuned_on_dev(dev, tmp_path, small_tokenizer):
    test = write_questions(tmp_path / "test.json", answered=False)
    assert test.labels is None
    odds = {"a": 3.4, "b": 3.6, "c": -9.0, "d": 9.0, "e": 0.1}
    TASKS["squad2.0"].tuned_on_dev(*dev).write_predictions(
        tmp_path, "_test", test, *rows_and_logits(small_tokenizer, test, odds), None
    )
    wanted = {"a": "cat", "b": "", "c": "cat", "d": "", "e": "cat"}
    assert json.loads((tmp_path / "predictions_test.json").read_text()) == wanted
    assert json.loads((tmp_path / "null_odds_test.json").read_text()) == pytest.approx(odds)


def test_where_nothing_answered_is_best_nothing_is_answered(tmp_path, small_tokenizer):
    questions = write_questions(tmp_path / "dev.json", answered=True, answer="mat")
    # All null odds are below 0 and every answer would be wrong: the official script's threshold stays at 0.
    rows, outputs = rows_and_logits(small_tokenizer, questions, {"a": -1.0, "b": -2.0, "c": -4.0, "d": -3.5, "e": -7.0})
    tuned = TASKS["squad2.0"].tuned_on_dev(questions, rows, outputs)
    figures = tuned.score(questions, rows, outputs, None)
    assert (figures["best_f1_thresh"], figures["best_f1"], figures["f1"]) == (0.0, 0.4, 0.4)


def test_a_given_threshold_is_kept_and_squad_1_has_none(dev, tmp_path, small_tokenizer):
    given = TASKS["squad2.0"].__class__("mine", {}, null_threshold=-4.5)
    assert given.tuned_on_dev(*dev).null_threshold == -4.5
    assert given.score(*dev, None)["f1"] == 0.4  # nothing answered: "c" and "d" are right
    without = write_questions(tmp_path / "test.json", answered=False)
    assert TASKS["squad1.1"].tuned_on_dev(without, *dev[1:]).null_threshold is None


def test_wrong_answers_are_written_the_surest_first_and_none_without_labels(dev, tmp_path, small_tokenizer):
    TASKS["squad2.0"].write_predictions(tmp_path, "", *dev, None)
    rows = [json.loads(line) for line in (tmp_path / "wrong_answers.jsonl").read_text().splitlines()]
    # "b" and "e" have null odds above 0, "c" has no answer; the answer "" is the surer, the higher the null odds.
    assert [(row["id"], row["answer"]["text"], row["expected"]) for row in rows] == [
        ("e", "", [{"text": "cat", "start": 4}]),
        ("b", "", [{"text": "cat", "start": 4}]),
        ("c", "cat", []),
    ]
    assert rows[0]["context"] == CONTEXT and rows[2]["answer"]["start"] == 4
    test = write_questions(tmp_path / "test.json", answered=False)
    outputs = rows_and_logits(small_tokenizer, test, dict.fromkeys(ODDS, -1.0))
    TASKS["squad2.0"].write_predictions(tmp_path, "_test", test, *outputs, None)
    assert not (tmp_path / "wrong_answers_test.jsonl").exists()
