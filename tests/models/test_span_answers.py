import string

import numpy as np
import pytest
from tiers import once

from keras_bert_impl.models.span_answers import Answer, best_answers, choose
from keras_bert_impl.preprocessing.question_windows import Question, Windows

pytestmark = once

WORDS = string.ascii_letters


def answers_to_words(
    *logits, null=(0.0, 0.0), with_impossible=False, is_best=None, beyond=0.0, dtype="float32", **most
):
    """`best_answers` for one context, the words "a b c ...", all of which are in each window.

    `logits` are (starts, ends) of each window, one number per word; `null` are the logits of [CLS], and `beyond` is the
    logit of the question, of [SEP] and of padding. `is_best` tells for each word whether an answer may begin there.
    """
    count = len(logits[0][0])
    context = " ".join(WORDS[:count])
    offsets = np.array([[place, place + 1] for place in range(0, 2 * count, 2)]).reshape(-1, 2)
    rows = len(logits)
    windows = Windows(
        [[5, 6]] * rows, [[7] * count] * rows, [4] * rows, [0] * rows, [offsets] * rows,
        [np.ones(count, bool) if is_best is None else np.array(is_best)] * rows, *[[0] * rows] * 3,
    )  # fmt: skip
    outputs = [
        np.array([[null[kind], *[beyond] * 3, *window[kind], *[beyond] * 3] for kind in (0, 1)], dtype).T
        for window in logits
    ]
    answers, odds = best_answers([Question("q", "?", context, [])], windows, outputs, with_impossible, **most)
    return answers[0], odds and odds[0]


def texts_and_scores(answers):
    return [(found.text, found.score) for found in answers]


def test_answers_are_ranked_by_the_sum_of_start_and_end_logit():
    answers, _ = answers_to_words(([3, 0, 1], [0, 2.5, 1]))
    assert texts_and_scores(answers) == [("a b", 5.5), ("a b c", 4), ("a", 3), ("b", 2.5), ("c", 2), ("b c", 1)]


def test_probabilities_are_the_softmax_over_the_answers_kept():
    answers, _ = answers_to_words(([900, 0, 0], [0, 900, 900 + np.log(3)]), n_best=2, dtype="float64")
    assert [found.text for found in answers] == ["a b c", "a b"]
    assert [found.probability for found in answers] == pytest.approx([0.75, 0.25])


def test_only_the_n_best_starts_and_ends_of_a_window_make_answers():
    # The best start is c and the best end is a: together they are not an answer, although a b c would be one.
    logits = ([1, 0, 2], [2, 0, 1])
    assert answers_to_words(logits, n_best=1)[0] == [Answer("", 0.0, 1.0)]
    assert texts_and_scores(answers_to_words(logits, n_best=2)[0]) == [("c", 3), ("a", 3)]


def test_a_question_keeps_n_best_answers_of_all_its_windows_together():
    answers, _ = answers_to_words(([1, 0], [1, 0]), ([0, 5], [0, 4]), ([3, 0], [2, 0]), n_best=1)
    assert texts_and_scores(answers) == [("b", 9)]


def test_a_text_found_in_several_windows_counts_once_with_its_best_score():
    answers, _ = answers_to_words(([1], [1]), ([3], [2]), ([2], [2]))
    assert answers == [Answer("a", 5.0, 1.0, start=0, end=1)]


def test_by_default_an_answer_has_at_most_thirty_tokens_and_a_question_twenty_answers():
    ends = np.zeros(40)
    ends[[29, 30, 35]] = 4, 5, 6
    answers, _ = answers_to_words(([9, *[0] * 39], ends))
    assert answers[0].text == " ".join(WORDS[:30]) and len(answers) == 20


def test_equally_good_starts_and_ends_are_taken_in_the_order_of_the_text():
    # Every second word is as good as the others: first what begins with b, at most 30 words, then with d.
    answers, _ = answers_to_words(([0, 1] * 20, [0, 1] * 20))
    spans = [(1, end) for end in range(2, 32, 2)] + [(3, end) for end in range(4, 14, 2)]
    assert [found.text for found in answers] == [" ".join(WORDS[begin:end]) for begin, end in spans]


def test_a_token_that_another_window_shows_better_begins_no_answer_and_takes_no_place():
    answers, _ = answers_to_words(([9, -3], [0, 1]), is_best=[False, True], n_best=1)
    assert texts_and_scores(answers) == [("b", -2)]


def test_question_separator_and_padding_are_no_answers():
    answers, _ = answers_to_words(([1, 0], [0, 2]), beyond=50.0)
    assert texts_and_scores(answers) == [("a b", 3), ("b", 2), ("a", 1)]


def test_logits_of_half_precision_are_added_in_double_precision():
    # 2049 cannot be represented in float16.
    answers, odds = answers_to_words(([2048], [1]), null=(1, 2048), with_impossible=True, dtype="float16")
    assert texts_and_scores(answers) == [("a", 2049.0), ("", 2049.0)] and odds == 0.0


def test_no_answer_is_ranked_by_the_logits_of_cls():
    answers, odds = answers_to_words(([3, 0], [2, 0]), null=(1.0, 2.5), with_impossible=True)
    assert texts_and_scores(answers) == [("a", 5), ("", 3.5), ("a b", 3), ("b", 0)] and odds == 3.5 - 5
    assert answers_to_words(([3, 0], [2, 0]), null=(4.0, 2.0), with_impossible=True)[0][0].text == ""


def test_by_default_null_odds_above_zero_leave_a_question_unanswered():
    answers = [[Answer("", 1.0), Answer("cat", 0.5)]] * 3
    assert choose(answers, [-0.5, 0.0, 0.5]) == ["cat", "cat", ""]


def test_null_odds_of_a_context_without_tokens_are_the_score_of_cls():
    answers, odds = answers_to_words(([], []), null=(1.0, 2.5), with_impossible=True)
    assert answers == [Answer("", 3.5, 1.0, null_score=3.5)] and odds == 3.5


def test_an_answer_has_no_white_space_at_its_ends():
    # SentencePiece's lone sign for a space has no characters and lies behind the space.
    offsets = np.array([[0, 3], [4, 4], [4, 7]])
    windows = Windows([[5]], [[7, 8, 9]], [3], [0], [offsets], [np.ones(3, bool)], [0], [0], [0])
    logits = [np.array([[0.0, 0, 0, 3, 0, 0, 0], [0.0, 0, 0, 0, 3, 0, 0]]).T]
    answers, _ = best_answers([Question("q", "?", "the cat", [])], windows, logits, False)
    assert answers[0][0][:2] == ("the", 6.0) and (answers[0][0].start, answers[0][0].end) == (0, 3)
