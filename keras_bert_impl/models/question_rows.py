"""Rows of questions with contexts of any length, and answers in words."""

import numpy as np

from keras_bert_impl.batching import predict_rows
from keras_bert_impl.models.span_answers import best_answers, choose, shares_of_right_answers
from keras_bert_impl.natural_data.labels import to_array
from keras_bert_impl.natural_data.question_windows import (
    are_answers,
    question_rows,
    questions_of,
    warn_of_cut_questions,
)
from keras_bert_impl.natural_data.row_maker import RowMaker
from keras_bert_impl.user_warnings import warn_user


class QuestionRows(RowMaker):
    """A row for each window over the context of a question."""

    def judged(self, batches):
        """The windows of questions with answers in words, and how many questions are answered right."""
        rows = batches.rows
        if rows.source is None:
            return None
        questions, outputs = rows.source.questions, predict_rows(self.head, batches)  # (length, 2) for each window
        starts, ends = ([logits[:, column] for logits in outputs] for column in (0, 1))
        found, odds = best_answers(questions, rows.source, starts, ends, self.head.null_threshold is not None)
        figures = shares_of_right_answers(questions, choose(found, odds, self.head.null_threshold))
        # What is beyond a row's batch has no share in the softmax over its length.
        whole = np.full((len(outputs), max(map(len, outputs)), 2), -1e9, "float32")
        for row, logits in zip(whole, outputs, strict=True):
            row[: len(logits)] = logits
        return whole, rows.labels, rows.weights, figures

    def are_in_words(self, texts, labels):
        return are_answers(labels)

    def labelled(self, texts, labels, weights):
        """Rows of windows if the labels are answers in words; a weight of a question is that of each of its windows."""
        if not are_answers(labels):
            return super().labelled(texts, labels, weights)
        questions = questions_of(*self.columns_of(texts), labels)
        rows = question_rows(self.tokenizer, questions, self.sequence_length)
        warn_of_cut_questions(rows.source, len(questions))
        if self.head.null_threshold is None and not any(question.answers for question in questions):
            warn_user(
                f"None of the {len(questions):,} questions has an answer, and null_threshold is None, by which every "
                "question is answered: their exact match and F1 are 0."
            )
        if weights is not None:
            weights = to_array(weights, "sample_weight")
            if weights.shape != (len(questions),):
                raise ValueError(
                    f"sample_weight has shape {weights.shape}, expected ({len(questions)},), one for each question."
                )
            rows.weights = weights[np.array(rows.source.question)].astype("float32")
        return rows
