"""From start and end scores to answers: spans of the context, or none (Devlin et al. 2019, sections 4.2 and 4.3)."""

import collections
import itertools
import re
import string
import typing

import numpy as np

from keras_bert_impl.models.answers import finite, softmax
from keras_bert_impl.text.tokenizers.words import end_with_marks, stripped_span

SCORE_OF_PADDING = -1e4  # whose share is exactly 0; float16 holds it
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")


class Answer(typing.NamedTuple):
    """A candidate for the answer to a question, as `QuestionAnswerer.answer` returns it.

    Fields:
        text (str): the answer as written in the context, `context[start:end]`; "" for no answer.
        score (float): sum of the logits of start and end.
        probability (float): probability among the candidates.
        start (int): position of its first character in the context.
        end (int): position after its last character.
        null_score (float): score for no answer, the same for all candidates of a question.
    """

    text: str
    score: float
    probability: float = 0.0
    start: int = 0
    end: int = 0
    null_score: float = 0.0


def best_answers(questions, windows, logits, with_impossible, n_best=20, longest=30):
    """The n-best answers of each question and, for data with unanswerable questions, the null odds.

    Args:
        questions: list of Question.
        windows: their Windows.
        logits: a list of (length, 2) arrays, of starts and ends, one for each window; those beyond the row belong to
            padding.
        with_impossible: whether "" is a candidate.
        n_best: number of starts and ends considered in a window, and of answers kept; 20 in the original code.
        longest: number of tokens in the longest answer; 30 in the original code.

    Raises: ValueError if a logit is NaN or infinite.
    Returns: (list of lists of Answer, best first; list of null odds, the score of [CLS] minus that of the best
        answer with text, or None).
    """
    by_question = [[] for _ in questions]
    null_scores = np.full(len(questions), np.inf)
    for row, number in enumerate(windows.question):
        starts, ends = finite(logits[row]).T
        # The window with the lowest score for no answer decides.
        none = windows.cls_place[row]
        null_scores[number] = min(null_scores[number], starts[none] + ends[none])
        by_question[number] += _spans(questions[number].context, windows, row, starts, ends, n_best, longest)
    answers, odds = [], []
    for number, spans in enumerate(by_question):
        ranked = _distinct(spans, n_best)
        odds.append(float(null_scores[number] - (ranked[0].score if ranked else 0.0)))
        if with_impossible:
            ranked = sorted([*ranked, Answer("", float(null_scores[number]))], key=lambda found: -found.score)
        answers.append(_with_probabilities(ranked or [Answer("", 0.0)], float(null_scores[number])))
    return answers, odds if with_impossible else None


def _spans(context, windows, row, starts, ends, n_best, longest):
    """The candidates of one window."""
    before, count = windows.before[row], len(windows.second[row])
    starts, ends, offsets = starts[before : before + count], ends[before : before + count], windows.offsets[row]
    # An answer cannot begin here at a token that another window shows with more context.
    starts = np.where(windows.is_best[row], starts, -np.inf)
    top_starts, top_ends = (np.argsort(-scores, kind="stable")[:n_best] for scores in (starts, ends))
    first, last = (grid.ravel() for grid in np.meshgrid(top_starts, top_ends, indexing="ij"))
    sound = (first <= last) & (last < first + longest) & np.isfinite(starts[first])
    first, last = first[sound], last[sound]
    scores = starts[first] + ends[last]
    order = np.argsort(-scores, kind="stable")
    begins, stops = offsets[first[order], 0].tolist(), offsets[last[order], 1].tolist()
    found = (
        Answer(context[begin:stop], score, start=begin, end=stop)
        for begin, stop, score in zip(begins, stops, scores[order].tolist(), strict=True)
        for begin, stop in [stripped_span(context, begin, end_with_marks(context, stop))]
    )
    return list(itertools.islice((answer for answer in found if answer.text), n_best))


def _distinct(spans, n_best):
    """The best candidate for each distinct text, best first."""
    seen = {}
    for found in sorted(spans, key=lambda found: -found.score):
        seen.setdefault(found.text, found)
    return list(seen.values())[:n_best]


def _with_probabilities(ranked, null_score):
    shares = softmax([found.score for found in ranked])
    return [
        found._replace(probability=float(share), null_score=null_score)
        for found, share in zip(ranked, shares, strict=True)
    ]


def chosen_first(ranked, threshold):
    """The candidates of one question with the answer to it first: "" if its null odds are above the threshold.

    Args:
        ranked: list of Answer, best first, as `best_answers` returns it with `with_impossible`.
        threshold: of the null odds, the score for no answer minus that of the best answer with text.
    """
    with_text = next((found for found in ranked if found.text), None)
    is_answered = with_text is not None and with_text.null_score - with_text.score <= threshold
    first = with_text if is_answered else next(found for found in ranked if not found.text)
    return [first, *(found for found in ranked if found is not first)]


def choose(answers, odds, threshold=0.0):
    """The answer to each question: its best candidate with text, or "" if the null odds are above the threshold."""
    texts = []
    for number, ranked in enumerate(answers):
        with_text = next((found.text for found in ranked if found.text), "")
        texts.append("" if odds is not None and odds[number] > threshold else with_text)
    return texts


def normalize_answer(text):
    """The text in lower case, without ASCII punctuation and without a, an, the, its words separated by one space."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def exact_match(answer, predicted):
    """1.0 if both texts are equal after normalization, else 0.0."""
    return float(normalize_answer(answer) == normalize_answer(predicted))


def token_f1(answer, predicted, both_empty=1.0):
    """F1 over the words that both texts have; 0.0 if one is empty after normalization, `both_empty` if both are:
    1.0 in evaluate-v2.0.py, where "" is the answer to an impossible question, 0.0 in evaluate-v1.1.py."""
    wanted, found = normalize_answer(answer).split(), normalize_answer(predicted).split()
    if not wanted or not found:
        return both_empty if wanted == found else 0.0
    common = sum((collections.Counter(wanted) & collections.Counter(found)).values())
    if common == 0:
        return 0.0
    precision, recall = common / len(found), common / len(wanted)
    return 2 * precision * recall / (precision + recall)


def shares_of_right_answers(questions, texts):
    """The mean exact match and F1, 0 to 1, of one answer to each Question, as SQuAD's official scripts count them:
    against the accepted answer that fits best; without any, "" is right."""
    figures = np.zeros((len(questions), 2))
    for row, (question, text) in enumerate(zip(questions, texts, strict=True)):
        accepted = [answer for answer, _ in question.answers] or [""]
        both_empty = float(not question.answers)
        scores = [(exact_match(answer, text), token_f1(answer, text, both_empty)) for answer in accepted]
        figures[row] = np.max(scores, axis=0)
    exact, f1 = figures.mean(axis=0).tolist()
    return {"exact": exact, "f1": f1}
