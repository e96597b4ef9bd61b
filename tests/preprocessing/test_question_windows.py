import numpy as np
import pytest
from tiers import once

from keras_bert_impl.models.span_answers import best_answers
from keras_bert_impl.preprocessing.long_texts import window_begins
from keras_bert_impl.preprocessing.question_windows import Question, answer_tokens, make_windows
from keras_bert_impl.text.rows import numpy_arrays
from keras_bert_impl.text.tokenizers.rows import best_windows

pytestmark = once

CONTEXT = "the cat sat on a mat in rain . the red dog ran ."  # thirteen tokens


def question(answer="red dog", text="the dog", key="q"):
    return Question(key, text, CONTEXT, [(answer, CONTEXT.index(answer))] if answer else [])


def labelled_text(windows, row, context):
    before = windows.before[row]
    begin, end = windows.start[row] - before, windows.end[row] - before
    return context[windows.offsets[row][begin, 0] : windows.offsets[row][end, 1]]


def test_windows_step_by_the_stride_and_reach_the_end():
    assert window_begins(13, 6, 4) == [0, 4, 8]
    assert window_begins(6, 6, 4) == [0]
    assert window_begins(7, 6, 100) == [0, 6]  # a stride larger than the window would lose tokens


def test_labels_are_the_answer_in_windows_that_hold_it_and_0_in_others(small_tokenizer):
    # Room for 6 tokens of context: windows at tokens 0, 4, 8 of 13; "red dog" is tokens 10 and 11.
    windows = make_windows(small_tokenizer, [question()], sequence_length=11, stride=4, question_length=2)
    assert [len(ids) for ids in windows.second] == [6, 6, 6]
    assert (windows.start, windows.end) == ([0, 0, 6], [0, 0, 7])
    assert labelled_text(windows, 2, CONTEXT) == "red dog"


def test_an_answer_within_a_token_is_the_token():
    offsets = np.array([[0, 3], [4, 11], [11, 12]])
    assert answer_tokens(offsets, ("bcd", 5)) == (1, 1)
    assert answer_tokens(offsets, ("c, ", 1)) == (0, 0)
    assert answer_tokens(offsets, ("x", 40)) is None


def test_a_token_is_best_where_its_poorer_side_is_richest():
    # Windows 0-5 and 4-9: token 4 has 1 token after it in the first, 0 before it in the second.
    assert best_windows(np.arange(10), 10, 6, numpy_arrays, 4)[0].tolist() == [0, 0, 0, 0, 0, 1, 1, 1, 1, 1]


def logits_for(windows, **scores):
    """Logits that are 0 except where a keyword sets them: row_start_position=score."""
    logits = [np.zeros((11, 2)) for _ in windows.first]
    for name, score in scores.items():
        kind, row, place = name.split("_")
        logits[int(row)][int(place), ("start", "end").index(kind)] = score
    return logits


def test_answers_are_cut_from_the_original_text(small_tokenizer):
    context = "The  Cat\tSAT on a mat ."
    asked = [Question("q", "the dog", context, [])]
    windows = make_windows(small_tokenizer, asked, sequence_length=11, stride=4, question_length=2)
    answers, odds = best_answers(asked, windows, logits_for(windows, start_0_5=9.0, end_0_6=9.0), False)
    assert (answers[0][0].text, answers[0][0].score, odds) == ("Cat\tSAT", 18.0, None)
    assert sum(found.probability for found in answers[0]) == pytest.approx(1)


def test_rows_without_room_for_a_context_are_refused(small_tokenizer):
    with pytest.raises(ValueError, match="sequence_length 60 with question_length 64 leaves no room"):
        make_windows(small_tokenizer, [question()], sequence_length=60)
