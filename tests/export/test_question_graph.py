"""The exported graph returns the same best answers as the task."""

import numpy as np
import pytest
import tensorflow as tf
from conftest import WORDS, revealing_config
from made_exports import with_large_weights
from tiers import full_but, on

import keras_bert_impl as kbi
from keras_bert_impl.batching import LengthBatches, predict_rows
from keras_bert_impl.models.span_answers import best_answers
from keras_bert_impl.preprocessing.graphs.text_rows import windows_of
from keras_bert_impl.preprocessing.long_texts import window_begins
from keras_bert_impl.preprocessing.question_windows import Question
from keras_bert_impl.text.rows import numpy_arrays
from keras_bert_impl.text.tokenizers.rows import best_windows
from keras_bert_training.tasks import question_answering, squad_files

pytestmark = on("tensorflow")

CONTEXTS = [
    "The cat sat on a mat. The dogs ran in red rain, it is bad!",
    "the\tCafé dogs\n sat" * 9,
    "mat",
    "",
    "a 日 dog, unknownword\u200b cat rain",
    "the\u0301 cat\u0301\u0327 sat\u0301",  # every answer ends with an accent that the tokenizer drops
    "a\x00b the cat\x00 sat on",
    "\x7fdogs\x7f \u200bran\u200b in\u2028\u2028\u00a0red\u00adrain",
    "\u2060ﬁne \u200b한국 rain\u200bcat",
]
QUESTIONS = ["is it good", "the cat sat on a mat . " * 4, "red ?", "who", "", "who", "who", "a", "?"]


def answerer(sequence_length=None):
    tokenizer = kbi.WordPieceTokenizer(WORDS)
    encoder = kbi.BertEncoder(revealing_config(tokenizer, max_length=48))
    return with_large_weights(kbi.QuestionAnswerer(encoder, tokenizer, sequence_length))


@pytest.mark.parametrize(("count", "room", "stride"), [(3, 7, 2), (7, 7, 2), (8, 7, 2), (23, 7, 3), (20, 5, 5)])
def test_windows_are_those_of_the_task(count, room, stride):
    windows, is_best = windows_of(tf.constant(count), tf.constant(room), tf.constant(stride))
    begins = window_begins(count, room, stride)
    best, _ = best_windows(np.arange(count), count, room, numpy_arrays, min(stride, room))
    assert windows.to_list() == [list(range(begin, min(begin + room, count))) for begin in begins]
    assert is_best.to_list() == [[best[token] == n for token in row] for n, row in enumerate(windows.to_list())]


@pytest.mark.parametrize("sequence_length", full_but([20, 48], 20))
def test_answers_are_those_of_the_task(sequence_length, ask):
    model = answerer(sequence_length)
    served = ask(model, question=QUESTIONS, context=CONTEXTS)
    questions = [
        Question(str(n), question, context, [])
        for n, (question, context) in enumerate(zip(QUESTIONS, CONTEXTS, strict=True))
    ]
    task, tokenizer = question_answering.TASKS["question_answering"], model.tokenizer
    rows = task.featurize(tokenizer, squad_files.Questions(questions, {"data": []}, True), None, sequence_length)
    outputs = predict_rows(model, LengthBatches(tokenizer, rows, 3, sequence_length, shuffle=False))
    answers, odds = best_answers(questions, rows.source, outputs, with_impossible=True)
    for number, context in enumerate(CONTEXTS):
        with_text = [found for found in answers[number] if found.text]
        expected = with_text[0].text if with_text else ""
        assert served["answer"][number].decode() == expected, context
        found = context.encode()[served["begin"][number] : served["end"][number]]
        assert found == served["answer"][number]
    np.testing.assert_allclose(served["null_odds"], odds, atol=1e-4)
    asked = [found for (found,) in model.answer(QUESTIONS, CONTEXTS)]
    assert [found.text for found in asked] == [text.decode() for text in served["answer"]]
    np.testing.assert_allclose(served["score"], [found.score for found in asked], atol=1e-4)


def test_questions_beyond_the_threshold_are_left_unanswered(ask):
    model = answerer()
    odds = [found.null_score - found.score for (found,) in model.answer(QUESTIONS[:3], CONTEXTS[:3])]
    model.null_threshold = float(np.median(odds))
    served = ask(model, question=QUESTIONS[:3], context=CONTEXTS[:3])
    expected = [found.text for (found,) in model.answer(QUESTIONS[:3], CONTEXTS[:3])]
    assert sorted(text == "" for text in expected) == [False, False, True]
    assert [text.decode() for text in served["answer"]] == expected
    for text, begin, end in zip(CONTEXTS, served["begin"], served["end"], strict=False):
        assert text.encode()[begin:end].decode() in expected
