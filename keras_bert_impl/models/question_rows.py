"""Rows of questions with contexts of any length, and answers in words."""

import dataclasses

import numpy as np

from keras_bert_impl.batching import predict_rows
from keras_bert_impl.models.span_answers import SCORE_OF_PADDING, best_answers, choose, shares_of_right_answers
from keras_bert_impl.preprocessing.labels import checked_weights
from keras_bert_impl.preprocessing.question_windows import (
    are_answers,
    question_rows,
    questions_of,
    warn_of_cut_questions,
)
from keras_bert_impl.preprocessing.row_maker import RowMaker
from keras_bert_impl.user_warnings import warn_user


class QuestionRows(RowMaker):
    """A row for each window over the context of a question."""

    def judged(self, batches):
        """The windows of questions with answers in words, and how many questions are answered right."""
        rows = batches.rows
        if rows.source is None:
            return None
        questions, outputs = rows.source.questions, predict_rows(self.head, batches)  # (length, 2) for each window
        if self.head.null_threshold is None and (without := sum(not question.answers for question in questions)):
            warn_user(
                f"{without:,} of {len(questions):,} questions have no answer, but every question is answered where "
                "null_threshold is None: their exact match and F1 are 0. Train on such questions, too, or set "
                "null_threshold."
            )
        starts, ends = ([logits[:, column] for logits in outputs] for column in (0, 1))
        found, odds = best_answers(questions, rows.source, starts, ends, self.head.null_threshold is not None)
        figures = shares_of_right_answers(questions, choose(found, odds, self.head.null_threshold))
        whole = np.full((len(outputs), max(map(len, outputs)), 2), SCORE_OF_PADDING, "float32")
        for row, logits in zip(whole, outputs, strict=True):
            row[: len(logits)] = logits
        return whole, rows.labels, rows.weights, figures

    def to_train(self, texts, labels, weights, batch_size, shuffle):
        self._learn_none(texts, labels)
        return super().to_train(texts, labels, weights, batch_size, shuffle)

    def rows_of_source(self, source, arrange, class_weight):
        def noted(batch):
            if self.head.null_threshold is None:
                arranged = arrange(batch)
                if isinstance(arranged, tuple) and not self.is_natural(arranged):
                    self._learn_none(*arranged[:2])
            return batch

        return dataclasses.replace(source, open=lambda: map(noted, source.open()))

    def _learn_none(self, texts, labels):
        """A head that is trained on questions without an answer answers by its logits, not in any case."""
        if self.head.null_threshold is None and are_answers(labels):
            if not all(question.answers for question in questions_of(*self.columns_of(texts), labels)):
                self.head.null_threshold = 0.0

    def warn_of_cut(self, rows):
        if rows.source is None:
            super().warn_of_cut(rows)

    def labelled(self, texts, labels, weights):
        """Rows of windows if the labels are answers in words; a weight of a question is that of each of its windows."""
        if not are_answers(labels):
            return super().labelled(texts, labels, weights)
        questions = questions_of(*self.columns_of(texts), labels)
        rows = question_rows(self.tokenizer, questions, self.sequence_length)
        warn_of_cut_questions(rows.source, len(questions))
        if weights is not None:
            weights = checked_weights(weights, np.zeros(len(questions)))
            rows.weights = weights[np.array(rows.source.question)]
        return rows
