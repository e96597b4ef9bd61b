"""SQuAD's files, and questions with long contexts as windows of tokens (Devlin et al. 2019, sections 4.2 and 4.3)."""

import json
import pathlib
import typing

import numpy as np

from keras_bert_impl.tasks.squad_metrics import has_impossible_questions, read_answers


class Question(typing.NamedTuple):
    """One question. `answers` are pairs (text, first character) in the context; without any it cannot be answered."""

    id: str
    question: str
    context: str
    answers: list


class Questions(typing.NamedTuple):
    """The questions of a file. `dataset` is its content, for the official figures; `labels` is None without answers."""

    questions: list[Question]
    dataset: dict
    with_impossible: bool

    @property
    def labels(self):
        return self.dataset if any("answers" in row for _, row in _rows(self.dataset)) else None

    def __len__(self):
        return len(self.questions)


class Windows(typing.NamedTuple):
    """Rows `[CLS] question [SEP] piece of the context [SEP]`, several to a question.

    Each field has one entry for each row. `first`, `second`: lists of ids of the question and the piece; `question`:
    number of the question; `offsets`: (tokens, 2) characters of the context; `is_best`: bool (tokens,), whether no
    other window shows the token with more context around it; `start`, `end`: positions of the answer in the row, 0
    ([CLS]) for none.
    """

    first: list
    second: list
    question: list
    offsets: list
    is_best: list
    start: list
    end: list


def read_questions(path, bad_rows, training):
    """The Questions of a SQuAD file, 1.1 or 2.0.

    Args:
        path: JSON in SQuAD's layout.
        bad_rows: a BadRows; a question is malformed if an answer is not in the context at the position given.
        training: whether to check the answers; those of dev sets are only compared as text.

    Raises: ValueError if the file is missing, not JSON or of another layout.
    """
    path = pathlib.Path(path)
    if not path.is_file():
        raise ValueError(f"{path} not found: expected a file in SQuAD's layout.")
    try:
        dataset = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} line {error.lineno}: not valid JSON ({error.msg}).") from None
    try:
        questions = [
            Question(row["id"], row["question"], context, _answers(row, context)) for context, row in _rows(dataset)
        ]
    except (KeyError, TypeError) as error:
        raise ValueError(f"{path} is not in SQuAD's layout: {error!r} is missing.") from None
    if not questions:
        raise ValueError(f"{path} holds no question.")
    if training:
        read_answers(dataset)
        questions = [question for question in questions if _is_sound(question, path, bad_rows)]
    return Questions(questions, dataset, has_impossible_questions(dataset))


def _rows(dataset):
    for article in dataset["data"]:
        for paragraph in article["paragraphs"]:
            for row in paragraph["qas"]:
                yield paragraph["context"], row


def _answers(row, context):
    if row.get("is_impossible"):
        return []
    return [(answer["text"], answer["answer_start"]) for answer in row.get("answers", ())]


def _is_sound(question, path, bad_rows):
    for text, start in question.answers:
        found = question.context[start : start + len(text)]
        if found != text or not text:
            place = f"{path} question {question.id}"
            bad_rows.add(place, f"answer {text!r:.60} is not at character {start}; found there", found or "nothing")
            return False
    return True


def make_windows(tokenizer, questions, sequence_length=384, stride=128, question_length=64):
    """The Windows of a list of Question.

    Args:
        tokenizer: a WordPieceTokenizer.
        questions: a list of Question.
        sequence_length: the longest row; 384 in the original code.
        stride: number of tokens from the beginning of one window to that of the next; 128 in the original code.
            (Hugging Face calls the overlap stride.)
        question_length: longer questions are cut to this many tokens; 64 in the original code.

    The label is the first of a question's answers; in a window that does not hold the whole answer, and for a question
    without an answer, both positions are 0, as in the original code.

    Raises: ValueError if a row has no room for the context.
    """
    room_least = sequence_length - 3 - question_length
    if room_least < 1 or stride < 1:
        raise ValueError(
            f"sequence_length {sequence_length} with question_length {question_length} leaves no room for the context, "
            f"or stride {stride} is below 1: give a larger sequence_length, a smaller question_length, or a stride of "
            "at least 1."
        )
    asked = [encoding.ids[:question_length] for encoding in _encode(tokenizer, [q.question for q in questions])]
    contexts = {}
    windows = Windows([], [], [], [], [], [], [])
    for number, question in enumerate(questions):
        if question.context not in contexts:  # the questions of a paragraph follow one another
            contexts = {question.context: _encode(tokenizer, [question.context])[0]}
        encoding = contexts[question.context]
        offsets = np.array(encoding.offsets, "int32").reshape(-1, 2)
        answer = answer_tokens(offsets, question.answers[0]) if question.answers else None
        room = sequence_length - 3 - len(asked[number])
        begins = window_begins(len(offsets), room, stride)
        best = best_windows(len(offsets), begins, room)
        for place, begin in enumerate(begins):
            end = min(begin + room, len(offsets))
            windows.first.append(asked[number])
            windows.second.append(encoding.ids[begin:end])
            windows.question.append(number)
            windows.offsets.append(offsets[begin:end])
            windows.is_best.append(best[begin:end] == place)
            before = len(asked[number]) + 2 - begin
            holds = answer is not None and begin <= answer[0] and answer[1] < end
            windows.start.append(answer[0] + before if holds else 0)
            windows.end.append(answer[1] + before if holds else 0)
    return windows


def _encode(tokenizer, texts):
    return tokenizer.encode_batch(texts, add_special_tokens=False)


def answer_tokens(offsets, answer):
    """First and last token that share a character with an answer (text, first character); None if none does."""
    text, start = answer
    shared = np.flatnonzero((offsets[:, 0] < start + len(text)) & (offsets[:, 1] > start))
    return (int(shared[0]), int(shared[-1])) if len(shared) else None


def window_begins(count, room, stride):
    """The first token of each window over `count` tokens, `room` at a time; the last window reaches the end."""
    begins = [0]
    # A step larger than a window would skip tokens.
    while begins[-1] + room < count:
        begins.append(begins[-1] + min(stride, room))
    return begins


def best_windows(count, begins, room):
    """For each token the number of the window that shows it with the most context, on the side that has less of it.

    Ties go to the longer window, as in the original code's `_check_is_max_context`, then to the earlier one.
    """
    token = np.arange(count)
    scores = np.full((len(begins), count), -1.0)
    for place, begin in enumerate(begins):
        end = min(begin + room, count)
        inside = slice(begin, end)
        left, right = token[inside] - begin, end - 1 - token[inside]
        scores[place, inside] = np.minimum(left, right) + 0.01 * (end - begin)
    return scores.argmax(axis=0) if count else np.zeros(0, int)
