"""Answers as spans of a text: SQuAD 1.1 and 2.0 and files in their layout (Devlin et al. 2019, sections 4.2, 4.3)."""

import dataclasses
import pathlib

import numpy as np

from keras_bert_impl.json_files import write_json, write_json_lines
from keras_bert_impl.models.question_answerer import QuestionAnswerer, span_loss
from keras_bert_impl.models.span_answers import best_answers, choose
from keras_bert_impl.preprocessing.question_windows import question_rows
from keras_bert_training.tasks import Task, squad_metrics
from keras_bert_training.tasks.scores import refuse_nan
from keras_bert_training.tasks.squad_files import read_questions


@dataclasses.dataclass(frozen=True)
class QuestionAnswering(Task):
    """A task of finding the answer in a text; `keras_bert_training/tasks/__init__.py` explains its parts.

    Args:
        of Task: see there; each split is a file name.
        main_metric: a key of `squad_metrics.evaluate`; "best_f1" is F1 with the threshold tuned on dev.
        stride, question_length: see `question_windows.question_rows`.
        n_best, longest_answer: see `span_answers.best_answers`.
        null_threshold: for SQuAD 2.0, questions with higher null odds are left unanswered. None: 0 while training, then
            the value with the best F1 on dev, for all splits (section 4.3).
    """

    main_metric: str = "f1"
    stride: int = 128
    question_length: int = 64
    n_best: int = 20
    longest_answer: int = 30
    null_threshold: float | None = None

    def read(self, directory, split, bad_rows):
        """The Questions of a split. Raises ValueError as `read_questions` does."""
        return read_questions(pathlib.Path(directory) / self.splits[split], bad_rows, training=split == "train")

    def build(self, encoder, tokenizer, class_names, sequence_length):
        """The model: a start and an end score for every token."""
        return QuestionAnswerer(encoder, tokenizer=tokenizer, sequence_length=sequence_length)

    def loss(self):
        """Cross-entropy over the positions, the mean of that of the start and that of the end, as in the original
        code."""
        return span_loss

    def featurize(self, tokenizer, examples, class_names, sequence_length):
        """One row for each window; labels are the answer's first and last position, [CLS]'s if it is not there."""
        return question_rows(tokenizer, examples.questions, sequence_length, self.stride, self.question_length)

    def score(self, examples, rows, outputs, class_names):
        """The official figures, as shares like the figures of all tasks.

        For 2.0 `exact` and `f1` are those at `null_threshold`, and `best_*` those of the best thresholds on this split.
        """
        answers, odds = self._answers(examples, rows, outputs)
        if odds is None:
            return _shares(_official_figures(examples, choose(answers, None)))
        threshold = self.null_threshold or 0.0
        figures = _official_figures(examples, choose(answers, odds, threshold))
        return _shares({**figures, **_best_thresholds(examples, answers, odds), "null_threshold": threshold})

    def tuned_on_dev(self, examples, rows, outputs):
        """The task with the null threshold that gives the best F1 on these examples, unless a threshold was given."""
        if self.null_threshold is not None or not examples.with_impossible:
            return self
        answers, odds = self._answers(examples, rows, outputs)
        best = _best_thresholds(examples, answers, odds)
        threshold = best["best_f1_thresh"]
        if _official_figures(examples, choose(answers, odds, threshold))["f1"] < best["best_f1"] - 1e-9:
            # Answering nothing is best here. The official script reports threshold 0 for that, which would answer some.
            threshold = min(odds) - 1.0
        return dataclasses.replace(self, null_threshold=float(threshold))

    def pass_on(self, model):
        """Gives the model the threshold by which `answer` leaves questions unanswered; None answers every question."""
        model.null_threshold = self.null_threshold

    def write_predictions(self, directory, suffix, examples, rows, outputs, class_names):
        """Writes predictions.json, nbest.json and for SQuAD 2.0 null_odds.json, as the official scripts read them, and
        wrong_answers.jsonl for people, if the answers are known.

        predictions.json leaves a question unanswered where the null odds are above `null_threshold`.
        """
        answers, odds = self._answers(examples, rows, outputs)
        texts = choose(answers, odds, self.null_threshold or 0.0)
        write_json(directory / f"predictions{suffix}.json", examples.by_id(texts))
        n_best = [[found._asdict() for found in ranked] for ranked in answers]
        write_json(directory / f"nbest{suffix}.json", examples.by_id(n_best))
        if odds is not None:
            write_json(directory / f"null_odds{suffix}.json", examples.by_id(odds))
        if examples.labels is not None:
            write_json_lines(directory / f"wrong_answers{suffix}.jsonl", _wrong(examples, answers, texts))

    def _answers(self, examples, rows, outputs):
        refuse_nan(outputs, "The logits of window")
        # A test file without answers does not show whether questions can be unanswerable; a threshold implies it.
        with_impossible = examples.with_impossible or self.null_threshold is not None
        return best_answers(examples.questions, rows.source, outputs, with_impossible, self.n_best, self.longest_answer)


def _wrong(examples, answers, texts):
    """The questions whose answer is not exactly an accepted one, as dicts with the context and what was expected; those
    that share the fewest words with it first, and of these the surest."""
    exact, f1 = squad_metrics.scores_of_questions(examples.dataset, examples.by_id(texts))
    rows = []
    for question, ranked, text in zip(examples.questions, answers, texts, strict=True):
        if not exact[question.id]:
            given = next(found for found in ranked if found.text == text)
            expected = [{"text": answer, "start": start} for answer, start in question.answers]
            row = {"id": question.id, "question": question.question, "context": question.context, "expected": expected}
            rows.append({**row, "answer": given._asdict(), "f1": f1[question.id]})
    return sorted(rows, key=lambda row: (row["f1"], -row["answer"]["probability"]))


def _official_figures(examples, texts, odds=None):
    """The figures of `squad_metrics.evaluate` for one text for each question; with null odds, none of the questions
    counts as unanswered."""
    odds = None if odds is None else examples.by_id(odds)
    return squad_metrics.evaluate(examples.dataset, examples.by_id(texts), odds, np.inf)


def _best_thresholds(examples, answers, odds):
    """`best_exact`, `best_f1` and their thresholds, in percent."""
    # Answers and odds are passed separately: the threshold decides which questions are left unanswered.
    figures = _official_figures(examples, choose(answers, odds, np.inf), odds)
    return {name: value for name, value in figures.items() if name.startswith("best_")}


def _shares(figures):
    """Turns percentages into shares; counts, thresholds and names are kept."""
    percents = ("exact", "f1")
    return {
        name: value / 100 if name.split("_")[-1] in percents and isinstance(value, float) else value
        for name, value in figures.items()
    }


# Tables 2 and 3: dev, single models; appendix A.3 and section 4: batches of 32, three epochs at 5e-5 for 1.1, as usual;
# batches of 48, two epochs at 5e-5 for 2.0. 384 tokens as in the original code.
PAPER_1_1 = {"BERT-base": {"exact": 80.8, "f1": 88.5}, "BERT-large": {"exact": 84.1, "f1": 90.9}}
PAPER_2_0 = {"BERT-large": {"exact": 78.7, "f1": 81.9}}


def _task(name, train, dev, **more):
    options = {"defaults": {"sequence_length": 384}, **more}
    return QuestionAnswering(name, {"train": train, "dev": dev, "test": "test.json"}, **options)


TASKS = {
    "squad1.1": _task("squad1.1", "train-v1.1.json", "dev-v1.1.json", paper=PAPER_1_1),
    "squad2.0": _task(
        "squad2.0",
        "train-v2.0.json",
        "dev-v2.0.json",
        main_metric="best_f1",
        paper=PAPER_2_0,
        defaults={"sequence_length": 384, "epochs": 2, "batch_size": 48},
    ),
    "tydiqa": _task("tydiqa", "tydiqa.goldp.en.train.json", "tydiqa.goldp.en.dev.json"),
    "question_answering": _task("question_answering", "train.json", "dev.json"),
}
