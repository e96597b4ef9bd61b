"""Questions with contexts of any length, as rows that each show a window of the context (Devlin et al. 2019, sections
4.2 and 4.3)."""

import re
import typing

import keras
import numpy as np

from keras_bert_impl.batching import Rows
from keras_bert_impl.preprocessing.labels import checked_weights
from keras_bert_impl.preprocessing.long_texts import window_begins
from keras_bert_impl.preprocessing.preprocessors import Preprocessor
from keras_bert_impl.preprocessing.texts import texts_of, to_strings
from keras_bert_impl.text.rows import numpy_arrays
from keras_bert_impl.text.tokenizers.rows import best_windows, longest_question, sentence_of_cut_questions
from keras_bert_impl.user_warnings import warn_user


class Question(typing.NamedTuple):
    """One question. `answers` are pairs (text, position of its first character in the context); without any, the
    context does not answer it."""

    id: str
    question: str
    context: str
    answers: list


class Windows(typing.NamedTuple):
    """Rows `[CLS] question [SEP] piece of the context [SEP]`, several to a question.

    Each field has one entry for each row. `first`, `second`: lists of ids of the question and the piece; `before`: the
    tokens of the row before the piece; `question`: number of the question; `offsets`: (tokens, 2) characters of the
    context; `is_best`: bool (tokens,), whether no other window shows the token with more context around it; `start`,
    `end`: positions of the answer in the row, that of [CLS] for none; `cls_place`: that of [CLS], 0 for BERT. `num_cut`
    questions had more than `question_length` tokens and were truncated. `questions`: those that the rows were made of.
    """

    first: list
    second: list
    before: list
    question: list
    offsets: list
    is_best: list
    start: list
    end: list
    cls_place: list
    question_length: int = 0
    num_cut: int = 0
    questions: list = ()


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class QuestionPreprocessor(Preprocessor):
    """Makes a `QuestionAnswerer`'s inputs from questions and contexts of any length, in windows (Devlin et al. 2019,
    4.2).

    Labels are answers: (text, position of its first character), or a dict as in SQuAD, {"text": [...], "answer_start":
    [...]}, whose first answer is used; None or an empty list for no answer. In `tf.data`, labels are dicts, and each
    call is on one example: `dataset.map(preprocessor).unbatch().batch(32)`.

    Args:
        tokenizer (Tokenizer): tokenizer.
        sequence_length (int, optional): length of each window. Default: 384.
        stride (int, optional): number of tokens from the start of one window to the next, at most half a window.
            Default: 128.

    Returns: inputs (windows, sequence_length), and labels (windows, 2): positions of the answer's first and last token,
        those of [CLS] in a window without it. A weight applies to each window of its question.

    Example:
        >>> tokenizer = kbi.checkpoints.open_checkpoint("small_english").tokenizer
        >>> preprocessor = kbi.preprocessing.QuestionPreprocessor(tokenizer, 32, stride=8)
        >>> texts = ["Where is it?"], ["The library is in Leeds."]
        >>> inputs, labels = preprocessor(texts, [("Leeds", 18)])
        >>> labels.tolist(), tokenizer.decode(inputs["token_ids"][0, 10:12])
        ([[10, 11]], 'leeds')
    """

    arguments = ("sequence_length", "stride")
    columns, targets = ("question", "context"), ("answers",)
    has_windows = True

    def __init__(self, tokenizer, sequence_length=384, stride=128):
        super().__init__(tokenizer, sequence_length)
        self.stride = stride

    def rows(self, x, y=None, sample_weight=None, check=None):
        """The Rows of windows, if labels are answers in words; otherwise of questions that are cut with their contexts,
        whose labels may be positions of tokens."""
        return self.windows(x, y, sample_weight) if are_answers(y) else super().rows(x, y, sample_weight, check)

    def windows(self, x, y=None, sample_weight=None):
        """The Rows of windows, whose `source` are the Windows."""
        questions = questions_of(*texts_of(x), y)
        rows = question_rows(self.tokenizer, questions, self.sequence_length, self.stride)
        rows.labels = None if y is None else rows.labels
        if sample_weight is not None:
            rows.weights = checked_weights(sample_weight, np.zeros(len(questions)))[np.array(rows.source.question)]
        return rows

    def report_cut(self, rows):
        if rows.source is None:
            super().report_cut(rows)
        else:
            warn_of_cut_questions(rows.source, len(rows.source.questions))

    def _in_memory(self, x, y, sample_weight):
        rows = self.windows(x, y, sample_weight)
        self._num_cut += rows.num_cut
        return self.packed(rows, self.sequence_length)

    def _in_graph(self, x, y, sample_weight):
        if tuple(x[0].shape) != (1,):
            raise ValueError(
                "In a graph questions are mapped one by one: dataset.map(preprocessor).unbatch().batch(32)."
            )
        length, stride = self.sequence_length, min(self.stride, self.sequence_length // 2)
        answers = None if y is None else {name: y[name][0] for name in ("text", "answer_start")}
        return self._graph.rows_of_question(
            x[0][0], x[1][0], answers, sample_weight, length, stride, longest_question(length)
        )


def question_rows(tokenizer, questions, sequence_length, stride=128, question_length=64):
    """The Rows of the Windows that `make_windows` makes, which are their `source`, with (start, end) as labels.

    The stride is at most half of a row, and a question a quarter.
    """
    windows = make_windows(
        tokenizer,
        questions,
        sequence_length,
        min(stride, sequence_length // 2),
        longest_question(sequence_length, question_length),
    )
    labels = np.stack([windows.start, windows.end], axis=1).astype("int32")  # (windows, 2)
    return Rows(windows.first, windows.second, labels, source=windows, num_cut=windows.num_cut)


def warn_of_cut_questions(windows, count):
    """Warns, if any of `count` questions had to be cut; contexts never are."""
    if windows.num_cut:
        warn_user(sentence_of_cut_questions(windows.num_cut, count, windows.question_length))


def make_windows(tokenizer, questions, sequence_length=384, stride=128, question_length=64):
    """The Windows of a list of Question.

    Args:
        tokenizer: a Tokenizer.
        questions: a list of Question.
        sequence_length: the longest row; 384 in the original code.
        stride: number of tokens from the beginning of one window to that of the next; 128 in the original code.
            (Hugging Face calls the overlap stride.)
        question_length: longer questions are cut to this many tokens; 64 in the original code.

    The label is the first of a question's answers; in a window that does not hold the whole answer, and for a question
    without an answer, both positions are that of [CLS], as in the original code.

    Raises: ValueError if a row has no room for the context.
    """
    control = tokenizer.template.num_control(is_pair=True)
    room_least = sequence_length - control - question_length
    if room_least < 1 or stride < 1:
        raise ValueError(
            f"sequence_length {sequence_length} with question_length {question_length} leaves no room for the context, "
            f"or stride {stride} is below 1."
        )
    asked = tokenizer.ids_batch([question.question for question in questions])
    num_cut = sum(len(ids) > question_length for ids in asked)
    asked = [ids[:question_length] for ids in asked]
    contexts = {}
    windows = Windows([], [], [], [], [], [], [], [], [], question_length, num_cut, questions)
    for number, question in enumerate(questions):
        if question.context not in contexts:  # the questions of a paragraph follow one another
            contexts = {question.context: tokenizer.encode(question.context, add_special_tokens=False)}
        encoding = contexts[question.context]
        offsets = np.array(encoding.offsets, "int32").reshape(-1, 2)
        answer = answer_tokens(offsets, question.answers[0]) if question.answers else None
        room = sequence_length - control - len(asked[number])
        before = tokenizer.template.first_length(len(asked[number]), is_pair=True)
        begins, step = window_begins(len(offsets), room, stride), min(stride, room)
        best, _ = best_windows(np.arange(len(offsets)), len(offsets), room, numpy_arrays, step)
        for place, begin in enumerate(begins):
            end = min(begin + room, len(offsets))
            windows.first.append(asked[number])
            windows.second.append(encoding.ids[begin:end])
            windows.question.append(number)
            windows.offsets.append(offsets[begin:end])
            windows.is_best.append(best[begin:end] == place)
            windows.before.append(before)
            cls_place = tokenizer.template.cls_place(before + end - begin + len(tokenizer.template.after))
            windows.cls_place.append(cls_place)
            holds = answer is not None and begin <= answer[0] and answer[1] < end
            windows.start.append(answer[0] - begin + before if holds else cls_place)
            windows.end.append(answer[1] - begin + before if holds else cls_place)
    return windows


def answer_tokens(offsets, answer):
    """First and last token that share a character with an answer, (text, position of its first character); None if no
    token does."""
    text, start = answer
    shared = np.flatnonzero((offsets[:, 0] < start + len(text)) & (offsets[:, 1] > start))
    return (int(shared[0]), int(shared[-1])) if len(shared) else None


def questions_of(questions, contexts, answers=None):
    """A list of Question from columns.

    Args:
        questions: texts.
        contexts: a text for each question, of any length.
        answers: None, or for each question its answer: (text, position of its first character in the context); a dict
            of `text` and `answer_start`, each one value or a list of several, as in SQuAD and its copies: the first is
            trained, and each is right when answers are evaluated; or None, "", () or [] if the context does not answer
            it.

    Raises: ValueError naming the question whose answer is not in its context at this position.
    """
    questions, contexts = to_strings(questions), to_strings(contexts)
    answers = [None] * len(questions) if answers is None else list(answers)
    return [
        Question(str(row), question, context, _checked_answer(row, answer, context))
        for row, (question, context, answer) in enumerate(zip(questions, contexts, answers, strict=True))
    ]


def are_answers(labels):
    """Whether labels are answers in words, rather than positions of tokens."""
    if labels is None or keras.ops.is_tensor(labels) or getattr(getattr(labels, "dtype", None), "kind", "O") in "biuf":
        return False
    return any(answer is None or isinstance(answer, dict | str) or _has_text(answer) for answer in labels)


def _has_text(answer):
    return isinstance(answer, list | tuple) and (not answer or any(isinstance(part, str) for part in answer))


def _checked_answer(row, answer, context):
    """The answers of a Question, of which the first, which is trained, is checked."""
    others = []
    if isinstance(answer, dict):
        texts, starts = (
            value if isinstance(value, list | tuple | np.ndarray) else [value]
            for value in (answer["text"], answer["answer_start"])
        )
        answer = (texts[0], starts[0]) if len(texts) and texts[0] else None
        others = list(zip(texts, starts, strict=False))[1:]
    if answer is None or (isinstance(answer, str | list | tuple) and not answer):
        return []
    if isinstance(answer, str):
        # Also places that overlap, which str.count passes over.
        places = [found.start() for found in re.finditer(f"(?={re.escape(answer)})", context)]
        if len(places) != 1:
            raise ValueError(
                f"answers[{row}] is {answer[:60]!r}, which occurs {len(places)} times in the context: give the "
                "position of its first character as well, as (text, position)."
            )
        answer = answer, *places
    text, start = answer[0], int(answer[1])  # which pandas makes a float where one of a column is missing
    found = context[start : start + len(text)]
    if start < 0 or found != text:
        raise ValueError(f"answers[{row}] is {text[:60]!r} at character {start}, where the context has {found[:60]!r}.")
    return [(text, start), *others]
