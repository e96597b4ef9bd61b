import json
import random

import pytest
from tasks_data import DATA, needs_data
from tiers import once

from keras_bert_training.commands import evaluate as script
from keras_bert_training.tasks import squad_metrics
from keras_bert_training.tasks.squad_metrics import evaluate, exact_match, normalize_answer, token_f1

pytestmark = once

PUBLISHED = [
    ("dev-v1.1", "v1.1-bert-ensemble-google", 86.20624, 92.19558),
    ("dev-v1.1", "v1.1-logreg-baseline-stanford", 40.14191, 50.98154),
    ("dev-v2.0", "v2.0-bert-single-google", 78.74168, 81.77528),
]


def dataset_of(questions, impossible=None):
    """A SQuAD file of {id: answers}; of version 2.0 if `impossible`, a set of ids, is given."""
    rows = [
        {"id": key, "question": "?", "answers": [{"text": text, "answer_start": 0} for text in texts]}
        for key, texts in questions.items()
    ]
    for row in rows:
        if impossible is not None:
            row["is_impossible"] = row["id"] in impossible
    return {"data": [{"paragraphs": [{"context": "", "qas": rows}]}]}


@needs_data
@pytest.mark.parametrize(("dataset", "predictions", "exact", "f1"), PUBLISHED)
def test_published_predictions_get_the_official_figures(dataset, predictions, exact, f1, capsys):
    squad = DATA / "squad"
    config = script.EvaluateConfig(
        "squad", str(squad / f"{dataset}.json"), str(squad / "predictions" / f"{predictions}.json")
    )
    script.run(config)
    printed = capsys.readouterr()
    figures = json.loads(printed.out)
    assert (round(figures["exact"], 5), round(figures["f1"], 5)) == (exact, f1)
    assert ("13 questions have no prediction" in printed.err) == ("logreg" in predictions)


def test_answers_are_compared_without_case_articles_and_punctuation():
    assert normalize_answer(" The  U.S.\tArmy, an a-team") == "us army ateam"
    assert exact_match("the cat.", "Cat") == 1.0
    # precision 2/3, recall 2/4
    assert token_f1("big red cat sat", "red cat ran") == pytest.approx(4 / 7)
    assert token_f1("cat cat dog", "cat bird cat cat") == pytest.approx(2 * (2 / 4) * (2 / 3) / (2 / 4 + 2 / 3))
    assert (token_f1("red cat", "blue dog"), exact_match("a cat", "dog"), exact_match("dog", "a cat")) == (0, 0, 0)
    assert (token_f1("", ""), token_f1("", "cat"), token_f1("cat", "the")) == (1.0, 0.0, 0.0)


def test_an_answer_of_an_article_alone_scores_as_in_the_official_script_of_each_version():
    """evaluate-v1.1.py gives an F1 of 0 where no word is common, evaluate-v2.0.py drops such an answer."""
    first = evaluate(dataset_of({"q": ["The."]}), {"q": "a"})
    assert (first["exact"], first["f1"]) == (100, 0)
    second = evaluate(dataset_of({"q": ["The."]}, {"q"}), {"q": "a"})
    assert (second["exact"], second["f1"]) == (100, 100)


def test_the_best_answer_counts_and_a_question_without_prediction_is_wrong_and_named():
    figures = evaluate(dataset_of({"q1": ["red cat", "cat"], "q2": ["dog"]}), {"q1": "a cat"})
    assert (figures["exact"], figures["total"], figures["missing"]) == (50.0, 2, ["q2"])
    second = evaluate(dataset_of({"q1": ["cat"], "q2": []}, {"q2"}), {"q1": "cat"})
    assert (second["exact"], second["NoAns_exact"], second["missing"]) == (50.0, 0.0, ["q2"])


def test_a_question_without_prediction_is_wrong_whatever_its_null_odds():
    # One unanswerable question of three has no prediction: at best the two others are right, unanswered or answered.
    data = dataset_of({"q1": ["cat"], "q2": [], "q3": []}, {"q2", "q3"})
    for odds in ({"q1": 0.5, "q2": 3.0, "q3": 3.0}, {"q1": 0.5, "q2": 3.0}):
        found = evaluate(data, {"q1": "cat", "q2": "dog"}, odds, null_threshold=-1.0)
        assert found["exact"] == pytest.approx(100 / 3)  # all odds are above -1: only q2 is right to be unanswered
        assert (found["HasAns_exact"], found["NoAns_exact"], found["missing"]) == (0.0, 50.0, ["q3"])
        assert found["best_exact"] == pytest.approx(200 / 3)
        assert (found["total"], found["HasAns_total"], found["NoAns_total"]) == (3, 1, 2)


def test_null_odds_without_a_place_in_an_order_are_refused():
    question = {"id": "q0", "question": "?", "answers": [], "is_impossible": True}
    dataset = {"data": [{"paragraphs": [{"context": "a", "qas": [question]}]}]}
    with pytest.raises(ValueError, match="null odds of question q0 are nan"):
        squad_metrics.evaluate(dataset, {"q0": "a"}, {"q0": float("nan")})


def test_without_null_odds_every_question_has_odds_of_zero():
    data = dataset_of({"q1": ["cat"], "q2": []}, {"q2"})
    answered, unanswered = (
        evaluate(data, {"q1": "cat", "q2": "dog"}, null_threshold=threshold) for threshold in (0.0, -0.5)
    )
    assert (answered["HasAns_exact"], answered["NoAns_exact"]) == (100.0, 0.0)
    assert (unanswered["HasAns_exact"], unanswered["NoAns_exact"]) == (0.0, 100.0)


def test_the_best_threshold_weighs_what_is_won_against_what_is_lost():
    # Answering in the order of the odds: nothing 3, q1 +1, q2 -1, q3 0 (it predicts nothing), q4 +1, q5 +1, q6 -1.
    truth = {"q1": ["cat"], "q2": [], "q3": [], "q4": ["dog"], "q5": ["mat"], "q6": []}
    predictions = {"q1": "cat", "q2": "dog", "q3": "", "q4": "dog", "q5": "mat", "q6": "cat"}
    odds = {key: float(place) for place, key in enumerate(truth, start=1)}
    found = evaluate(dataset_of(truth, {"q2", "q3", "q6"}), predictions, odds)
    assert (found["best_exact"], found["best_exact_thresh"]) == (pytest.approx(500 / 6), 5.0)


def test_of_equally_good_thresholds_the_lowest_is_taken():
    # Right are 2 questions unanswered, 3 with q1 answered, 2 with q2 too, and 3 again with q3.
    truth = {"q1": ["cat"], "q2": [], "q3": ["dog"], "q4": []}
    predictions = {"q1": "cat", "q2": "dog", "q3": "dog", "q4": "cat"}
    odds = {"q1": 1.0, "q2": 2.0, "q3": 3.0, "q4": 4.0}
    found = evaluate(dataset_of(truth, {"q2", "q4"}), predictions, odds)
    assert (found["best_exact"], found["best_exact_thresh"]) == (75.0, 1.0)


def test_null_odds_above_the_threshold_count_as_no_answer():
    data = dataset_of({"q1": ["cat"], "q2": []}, {"q2"})
    found = evaluate(data, {"q1": "cat", "q2": "dog"}, {"q1": 0.5, "q2": 3.0})
    assert (found["exact"], found["HasAns_exact"], found["NoAns_exact"]) == (100.0, 100.0, 100.0)
    assert (found["best_exact"], found["best_exact_thresh"]) == (100.0, 0.5)


def test_figures_of_squad_2_are_those_of_the_official_code_on_random_predictions():
    numbers = random.Random(5)
    words = "a the cat dog sat, on . mat red".split()
    text = lambda most: " ".join(numbers.choices(words, k=numbers.randrange(most)))  # noqa: E731
    impossible = {f"q{n}" for n in range(300) if numbers.random() < 0.4}
    questions = {f"q{n}": [] if f"q{n}" in impossible else [text(4), text(3)] for n in range(300)}
    predictions = {key: text(3) for key in questions}
    odds = {key: round(numbers.gauss(1, 2), 1) for key in questions}  # many ties
    answers = squad_metrics.read_answers(dataset_of(questions, impossible))
    found = evaluate(dataset_of(questions, impossible), predictions, odds)
    raw = {
        name: {key: max(score(gold, predictions[key]) for gold in answers[key]) for key in questions}
        for name, score in (("exact", exact_match), ("f1", token_f1))
    }
    has_answer = {key: bool(texts) for key, texts in questions.items()}
    for name, scores in raw.items():
        # apply_no_ans_threshold and make_eval_dict of evaluate-v2.0.py
        cut = {key: float(not has_answer[key]) if odds[key] > 1.0 else scores[key] for key in questions}
        assert found[name] == pytest.approx(100.0 * sum(cut.values()) / len(cut))
        with_answer = [cut[key] for key in questions if has_answer[key]]
        assert found[f"HasAns_{name}"] == pytest.approx(100.0 * sum(with_answer) / len(with_answer))
        best, threshold = official_best_threshold(predictions, scores, odds, has_answer)
        assert found[f"best_{name}"] == pytest.approx(best)
        assert found[f"best_{name}_thresh"] == threshold


def official_best_threshold(preds, scores, na_probs, qid_to_has_ans):
    """find_best_thresh of evaluate-v2.0.py, as it stands there."""
    num_no_ans = sum(1 for k in qid_to_has_ans if not qid_to_has_ans[k])
    cur_score = num_no_ans
    best_score = cur_score
    best_thresh = 0.0
    qid_list = sorted(na_probs, key=lambda k: na_probs[k])
    for qid in qid_list:
        if qid not in scores:
            continue
        if qid_to_has_ans[qid]:
            diff = scores[qid]
        else:
            if preds[qid]:
                diff = -1
            else:
                diff = 0
        cur_score += diff
        if cur_score > best_score:
            best_score = cur_score
            best_thresh = na_probs[qid]
    return 100.0 * best_score / len(scores), best_thresh


def test_two_questions_of_one_id_are_refused():
    """One prediction would answer both, and the other would vanish from the count."""
    questions = [{"id": key, "question": "?", "answers": [{"text": "a"}]} for key in ("1", "2", "1", "1")]
    dataset = {"data": [{"paragraphs": [{"context": "a", "qas": questions}]}]}
    with pytest.raises(ValueError, match="2 of 4 questions have the id of another one, first '1'"):
        evaluate(dataset, {"1": "a", "2": "a"})


def test_a_question_has_an_answer_even_if_it_is_an_article_alone():
    """evaluate-v2.0.py: `bool(qa["answers"])`. Left unanswered by its null odds, it is wrong."""
    data = dataset_of({"q1": ["A"], "q2": ["cat"]}, impossible=set())
    figures = evaluate(data, {"q1": "", "q2": "cat"}, {"q1": 2.0, "q2": 0.0})
    assert (figures["HasAns_total"], figures["HasAns_exact"], figures["exact"]) == (2, 50.0, 50.0)
    assert "NoAns_total" not in figures
    assert evaluate(data, {"q1": "", "q2": "cat"})["exact"] == 100.0
