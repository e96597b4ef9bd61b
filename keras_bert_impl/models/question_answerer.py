"""Finds the answer to a question in a context."""

import keras
import numpy as np
from keras import ops

from keras_bert_impl.batching import predict_rows
from keras_bert_impl.distribution import in_scope_of_model
from keras_bert_impl.encoders.asked import SENTENCE, Asked
from keras_bert_impl.losses import cross_entropy
from keras_bert_impl.models.span_answers import (
    SCORE_OF_PADDING,
    best_answers,
    choose,
    chosen_first,
    shares_of_right_answers,
)
from keras_bert_impl.models.task_model import TaskModel, head_dense
from keras_bert_impl.preprocessing import QuestionPreprocessor, fit_inputs
from keras_bert_impl.preprocessing.labels import LabelRule
from keras_bert_impl.preprocessing.question_windows import question_rows, questions_of, warn_of_cut_questions
from keras_bert_impl.user_warnings import warn_user


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class QuestionAnswerer(TaskModel):
    """A start and an end vector over the tokens (Devlin et al. 2019, section 4.2). Compiled by default with AdamW at
    5e-5 and the mean of the two cross-entropies.

    `fit((questions, contexts), answers)` takes contexts of any length. An answer is (text, position of its first
    character in the context), the text alone if the context has it once, a dict as in SQuAD, {"text": [...],
    "answer_start": [...]}, or None if the context holds none. `answer` answers in words. Both divide a long context
    into windows, each of which is a row.

    Labels of rows of ids, and of texts that fit into one row each, may also be (batch, 2), int: the positions of the
    answer's first and last token; twice that of [CLS] for no answer, which is 0 in all families but XLNet.

    Args:
        encoder: a BertEncoder, or another family's.
        tokenizer: a Tokenizer; with it the model takes a pair of lists: questions and contexts.
        sequence_length: tokens of the longest row; None means the encoder's `max_length`.
        null_threshold: questions are left unanswered if the score for no answer minus that of the best answer is
            above this (section 4.3). None: every question is answered; `fit` on questions without an answer makes it
            0. `keras-bert finetune` chooses it on dev for such data; it is kept in checkpoints and exports.

    Input:  dict of the encoder's inputs, or (questions, contexts).
    Output: logits (batch, length, 2), float32: of a start and of an end at each token, and at padding -10,000: no
            answer begins or ends there, so that loss and gradients do not depend on how far a row is padded. The
            paper's code and transformers score padding as a position like any other, so that their loss is another
            for rows with padding. Decoding has to consider the context only.
    Raises: ValueError if the vocabulary is not the encoder's, or sequence_length is above its max_length.
    """

    preprocessor_class = QuestionPreprocessor
    asked = Asked("answer", {"serving_default": {"question": ["Where did it sit?"], "context": [SENTENCE]}}, "answer")
    pair_columns = ("questions", "contexts")
    own_losses = "leave loss out, for the mean cross-entropy of the answer's start and end"
    head_arguments = ("null_threshold",)
    counterpart = "ForQuestionAnswering"

    def __init__(
        self, encoder, tokenizer=None, sequence_length=None, null_threshold=None, name="bert_question_answerer"
    ):
        encoder = encoder.for_task("question")
        logits = head_dense(encoder, 2, "span_head")(encoder.answer_vectors(encoder.output))
        if (penalty := encoder.answer_penalty(encoder.input)) is not None:
            logits = logits - penalty
        is_token = ops.expand_dims(ops.not_equal(encoder.input["padding_mask"], 0), -1)
        logits = ops.where(is_token, logits, SCORE_OF_PADDING)
        super().__init__(encoder, tokenizer, sequence_length, logits, name, null_threshold=null_threshold)

    def usual_objective(self):
        return {"loss": span_loss}

    def named_outputs(self, logits, rows=None):
        """`start_logits` and `end_logits`, (batch, length)."""
        return {"start_logits": logits[:, :, 0], "end_logits": logits[:, :, 1]}

    @in_scope_of_model
    def answer(self, question, context, top_k=1, stride=128, longest=30, n_best=20, batch_size=32):
        """The answers to questions, found in contexts of any length.

        Args:
            question: a text, or several.
            context: a text, or as many. One text beside several belongs to each of them.
            top_k: how many candidates for each question; fewer if there are fewer.
            stride: tokens from the beginning of one window to that of the next.
            longest: tokens of the longest answer.
            n_best: starts and ends considered in a window, and candidates kept.
            batch_size: how many windows are computed at once.

        Returns: for one question and context a list of at most top_k `span_answers.Answer`, the answer first, then the
            other candidates by their score; for several a list of such lists. Each has `text`, `score`, `probability`,
            `start` and `end`, its characters in the context, and `null_score`. The text is "" if `null_threshold`
            leaves the question unanswered.
        """
        is_one = isinstance(question, str) and isinstance(context, str)
        questions = questions_of(*_equally_many(question, context))
        rows = question_rows(self.tokenizer, questions, self.sequence_length, stride)
        warn_of_cut_questions(rows.source, len(questions))
        rows.labels = None
        batches = fit_inputs.sorted_batches(self, rows, batch_size)
        logits = predict_rows(self, batches)  # (length, 2) for each window
        may_be_none = self.null_threshold is not None
        found, _ = best_answers(questions, rows.source, logits, may_be_none, n_best, longest)
        if may_be_none:
            found = [chosen_first(ranked, self.null_threshold) for ranked in found]
        found = [ranked[:top_k] for ranked in found]
        return found[0] if is_one else found

    def note_rows(self, rows):
        """A model that is trained on questions without an answer answers by its logits, not in any case."""
        if self.null_threshold is None and rows.source is not None:
            if not all(question.answers for question in rows.source.questions):
                self.null_threshold = 0.0

    def joined_windows(self, batches):
        """The windows of questions with answers in words, and how many questions are answered right."""
        rows = batches.rows
        questions, outputs = rows.source.questions, predict_rows(self, batches)  # (length, 2) for each window
        if self.null_threshold is None and (without := sum(not question.answers for question in questions)):
            warn_user(
                f"{without:,} of {len(questions):,} questions have no answer, but every question is answered where "
                "null_threshold is None: their exact match and F1 are 0. Train on such questions, too, or set "
                "null_threshold."
            )
        found, odds = best_answers(questions, rows.source, outputs, self.null_threshold is not None)
        figures = shares_of_right_answers(questions, choose(found, odds, self.null_threshold))
        whole = np.full((len(outputs), max(map(len, outputs)), 2), SCORE_OF_PADDING, "float32")
        for row, logits in zip(whole, outputs, strict=True):
            row[: len(logits)] = logits
        return whole, rows.labels, rows.weights, figures

    def label_rule(self, sizes):
        meaning = "the position in its row of the answer's first or last token; both are [CLS]'s if there is no answer"
        return LabelRule((len(sizes.tokens), 2), sizes.tokens[:, None], meaning)

    def takes_class_numbers(self, loss):
        return loss is span_loss


def _equally_many(questions, contexts):
    """Both as lists or columns: a text that stands alone is repeated for each of the others."""
    if isinstance(contexts, str):
        contexts = [contexts] * (1 if isinstance(questions, str) else len(questions))
    return [questions] * len(contexts) if isinstance(questions, str) else questions, contexts


@keras.saving.register_keras_serializable(package="keras_bert_impl")
def span_loss(positions, logits):
    """Mean cross-entropy of start and end over the length; positions (batch, 2), logits (batch, length, 2)."""
    return ops.mean(cross_entropy(positions, ops.transpose(logits, (0, 2, 1))), axis=-1)
