"""Reads SQuAD's files, 1.1 and 2.0 (Devlin et al. 2019, sections 4.2 and 4.3)."""

import typing

from keras_bert_impl.json_files import read_json
from keras_bert_impl.preprocessing.question_windows import Question
from keras_bert_training.tasks.squad_metrics import has_impossible_questions, questions_in, refuse_equal_ids
from keras_bert_training.tasks.tables import BadRows


class Questions(typing.NamedTuple):
    """The questions of a file. `dataset` is its content, for the official figures; `labels` is None without answers, or
    where all of them are empty texts, as in some test files: any prediction would score 0."""

    questions: list[Question]
    dataset: dict
    with_impossible: bool

    @property
    def labels(self):
        rows = [row for _, row in questions_in(self.dataset)]
        has_answers = any(answer["text"] for row in rows for answer in row.get("answers", ()))
        return self.dataset if has_answers or any("answers" in row and "is_impossible" in row for row in rows) else None

    def by_id(self, values):
        """A dict from the ids of the questions to values, one for each."""
        return {question.id: value for question, value in zip(self.questions, values, strict=True)}

    def __len__(self):
        return len(self.questions)


def read_questions(path, bad_rows, training):
    """The Questions of a SQuAD file, 1.1 or 2.0.

    Args:
        path: JSON in SQuAD's layout.
        bad_rows: a BadRows; a question is malformed if an answer is not in the context at the position given.
        training: whether to check the answers; those of dev sets are only compared as text, by the ids of questions.

    Raises: ValueError if the file is not JSON or of another layout, or if questions of a file that is not for
        training have the same id.
    """
    dataset = read_json(path, largest=None)
    try:
        questions = [
            Question(row["id"], row["question"], paragraph["context"], _answers(row, training))
            for paragraph, row in questions_in(dataset)
        ]
    except (KeyError, TypeError) as error:
        raise ValueError(f"{path} is not in SQuAD's layout: {error!r} is missing.") from None
    if training:  # where nothing is compared by ids: TyDi's file has 89 for 3,696 questions
        questions = [question for question in questions if _is_sound(question, path, bad_rows)]
    else:
        refuse_equal_ids([question.id for question in questions], f"{path}: ")
    return Questions(questions, dataset, has_impossible_questions(dataset))


def read_squad(path):
    """A SQuAD file as `QuestionAnswerer.fit` takes it: `model.fit(*read_squad("train-v2.0.json"))`.

    Args:
        path: JSON in SQuAD's layout, 1.1 or 2.0, with answers.

    Returns: ((questions, contexts), answers), lists; an answer is the first of its question, (text, position of its
        first character in the context), or None if there is none.
    Raises: ValueError as `read_questions` does.
    """
    questions = read_questions(path, BadRows(), training=True).questions
    answers = [question.answers[0] if question.answers else None for question in questions]
    return ([question.question for question in questions], [question.context for question in questions]), answers


def _answers(row, training):
    if row.get("is_impossible"):
        return []
    answers = row["answers"] if training else row.get("answers", ())
    return [(answer["text"], answer["answer_start"]) for answer in answers]


def _is_sound(question, path, bad_rows):
    for text, start in question.answers:
        found = question.context[start : start + len(text)]
        if found != text or not text:
            place = f"{path} question {question.id}"
            bad_rows.add(place, f"answer {text!r:.60} is not at character {start}; found there", found or "nothing")
            return False
    return True
