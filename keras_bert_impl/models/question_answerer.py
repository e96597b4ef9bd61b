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
    """Answers questions from a context: extractive question answering, as in SQuAD.

    Open a checkpoint with `from_pretrained`, train with `fit((questions, contexts), answers)`, and use `answer` for
    answers in words. Contexts can have any length: long ones are read in overlapping windows. The head scores each
    token as the start and as the end of the answer (Devlin et al. 2019, section 4.2). The model is compiled with AdamW
    at 5e-5 and the mean of both cross-entropies.

    Args:
        encoder (keras.Model): encoder of any family, such as a `BertEncoder`.
        tokenizer (Tokenizer, optional): tokenizer, needed for texts. Default: None, for token IDs only.
        sequence_length (int, optional): largest number of tokens in an input. Default: the encoder's `max_length`.
        null_threshold (float, optional): a question stays unanswered if the score for no answer exceeds that of the
            best answer by more than this (section 4.3); kept in checkpoints and exports. `keras-bert finetune` chooses
            it on the development set. Default: None, every question is answered; `fit` on data with unanswered
            questions sets 0.

    Input:  dict of the encoder's inputs, or (questions, contexts).
    Output: logits (batch, length, 2), float32, for the start and the end; -10,000 for padding.
    Labels: for each question an answer: (text, position of its first character in the context); the text alone, if the
            context has it once; a dict as in SQuAD, {"text": [...], "answer_start": [...]}; or None for no answer. For
            token IDs, int (batch, 2), the positions of the first and last token; both those of [CLS] for no answer.
    Raises: ValueError if the tokenizer does not fit the encoder, or sequence_length is above its max_length.

    Example:
        >>> model = kbi.QuestionAnswerer.from_pretrained("small_english")
        >>> question, context = "Where does Ada live?", "Ada lives in London with a cat."
        >>> history = model.fit(([question], [context]), ["London"], epochs=20, verbose=0)
        >>> model.answer(question, context)
        [Answer(text='London', score=..., probability=0..., start=13, end=19, null_score=...)]
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
        """Returns the answers to questions, found in contexts of any length.

        Args:
            question (str or list): a question, or several.
            context (str or list): a context for each question. One str is the context of all questions.
            top_k (int, optional): number of candidates for each question, fewer if there are fewer. Default: 1.
            stride (int, optional): number of tokens from the start of one window to the next, at most half of
                `sequence_length`. Default: 128.
            longest (int, optional): largest number of tokens in an answer. Default: 30.
            n_best (int, optional): number of starts and of ends considered in a window, and of candidates kept.
                Default: 20.
            batch_size (int, optional): number of windows in a batch. Default: 32.

        Returns: a list of at most top_k `Answer` (`text`, `score`, `probability`, `start`, `end`, `null_score`) for one
            question and context, best first; a list of such lists for several. The text is "" if `null_threshold`
            leaves the question unanswered.
        """
        is_one = isinstance(question, str) and isinstance(context, str)
        questions = questions_of(*_equally_many(question, context))
        if not questions:
            return []
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
                f"{without:,} of {len(questions):,} questions have no answer, but with null_threshold=None the model "
                "always gives one: their exact match and F1 are 0. Train on such questions as well, or set "
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
