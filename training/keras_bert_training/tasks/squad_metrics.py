"""Exact match and F1 as SQuAD's official scripts define them (Rajpurkar et al. 2016 and 2018).

The figures are those of evaluate-v1.1.py or evaluate-v2.0.py, depending on the dataset's layout. One thing differs:
evaluate-v2.0.py leaves a question without a prediction out of the mean, evaluate-v1.1.py counts it as wrong. Here it
counts as wrong in both cases, whatever its null odds, and is reported.
"""

import collections
import functools
import math

from keras_bert_impl.models.span_answers import exact_match, normalize_answer, token_f1


def questions_in(dataset):
    """The questions of a SQuAD file's content, each with its paragraph, as dicts."""
    paragraphs = [paragraph for article in dataset["data"] for paragraph in article["paragraphs"]]
    return [(paragraph, question) for paragraph in paragraphs for question in paragraph["qas"]]


def read_answers(dataset):
    """The accepted answers of each question of a SQuAD file's content, by id; [""] if it has none.

    Raises: ValueError if two questions have the same id.
    """
    questions = [question for _, question in questions_in(dataset)]
    answers = {question["id"]: [answer["text"] for answer in question["answers"]] for question in questions}
    refuse_equal_ids([question["id"] for question in questions])
    if not has_impossible_questions(dataset):
        return answers
    # evaluate-v2.0.py ignores answers that are empty after normalization.
    return {key: [text for text in texts if normalize_answer(text)] or [""] for key, texts in answers.items()}


def refuse_equal_ids(ids, place=""):
    """Raises ValueError if some questions have the same id; `place` begins the message."""
    counts = collections.Counter(ids)
    if len(counts) < len(ids):
        raise ValueError(
            f"{place}{len(ids) - len(counts):,} of {len(ids):,} questions have the id of another one, first "
            f"{counts.most_common(1)[0][0]!r}: predictions are compared by ids, so give each question one of its own."
        )


def has_impossible_questions(dataset):
    """Whether the file has the layout of SQuAD 2.0: some question has `is_impossible`, true or false."""
    return any("is_impossible" in question for _, question in questions_in(dataset))


def evaluate(dataset, predictions, null_odds=None, null_threshold=1.0):
    """The official figures, in percent.

    Args:
        dataset: content of a SQuAD file, 1.1 or 2.0.
        predictions: question id -> answer text, "" for no answer.
        null_odds: question id -> number, higher if no answer is likelier; SQuAD 2.0 only.
        null_threshold: answers to questions with higher null odds count as "". 1.0 in evaluate-v2.0.py.

    Returns: dict of `exact`, `f1`, `total`, `missing`; for 2.0 also `HasAns_*` and `NoAns_*`, and with null odds
        `best_exact`, `best_f1` and their thresholds.
    """
    answers = read_answers(dataset)
    missing = [key for key in answers if key not in predictions]
    scores = dict(zip(("exact", "f1"), scores_of_questions(dataset, predictions), strict=True))
    if not has_impossible_questions(dataset):
        return {**summary(scores, answers), "missing": missing}
    # Also where no answer is left after normalization, such as "A".
    has_answer = {question["id"]: bool(question["answers"]) for _, question in questions_in(dataset)}
    odds = _odds_of(answers, predictions, null_odds)
    unanswered = {key: float(not has_answer[key]) for key, value in odds.items() if value > null_threshold}
    final = {name: {**found, **unanswered} for name, found in scores.items()}
    figures = summary(final, answers)
    for part, wanted in (("HasAns", True), ("NoAns", False)):
        if keys := [key for key in answers if has_answer[key] == wanted]:
            figures |= {f"{part}_{name}": value for name, value in summary(final, keys).items()}
    for name, found in scores.items() if null_odds is not None else ():
        best, threshold = best_threshold(predictions, found, odds, has_answer)
        figures |= {f"best_{name}": best, f"best_{name}_thresh": threshold}
    return {**figures, "missing": missing}


def scores_of_questions(dataset, predictions):
    """Exact match and F1 of each question, 0 to 1: two dicts by id; see `evaluate`."""
    score_f1 = token_f1 if has_impossible_questions(dataset) else functools.partial(token_f1, both_empty=0.0)
    answers = read_answers(dataset)

    def best(score, key):
        """Of a prediction, against the accepted answers; 0.0 for a question without a prediction."""
        return max((score(text, predictions[key]) for text in answers[key] if key in predictions), default=0.0)

    return tuple({key: best(score, key) for key in answers} for score in (exact_match, score_f1))


def _odds_of(answers, predictions, null_odds):
    """The null odds of the predicted questions; a question without a prediction does not count as answered by ""."""
    predicted = [key for key in answers if key in predictions]
    if null_odds is None:
        return dict.fromkeys(predicted, 0.0)
    for key in predicted:
        if not math.isfinite(null_odds[key]):
            raise ValueError(f"The null odds of question {key} are {null_odds[key]}, expected a finite number.")
    return {key: null_odds[key] for key in predicted}


def summary(scores, keys):
    """Means in percent of the scores of these questions, and their number."""
    means = {name: 100.0 * sum(found[key] for key in keys) / len(keys) for name, found in scores.items()}
    return {**means, "total": len(keys)}


def best_threshold(predictions, scores, odds, has_answer):
    """The best mean score in percent that a threshold on the odds gives, and the threshold.

    As evaluate-v2.0.py's: begin with nothing answered, then let questions be answered in the order of their odds.
    """
    best = current = sum(1 for key in odds if not has_answer[key])
    threshold = 0.0
    for key in sorted(odds, key=odds.get):
        if has_answer[key]:
            current += scores[key]
        else:
            current += -1 if predictions[key] else 0
        if current > best:
            best, threshold = current, odds[key]
    return 100.0 * best / len(scores), threshold
