"""report.html: what it shows is the run's, and nothing of a user's data becomes HTML."""

import html
import json
import re
import shlex

import pytest
from made_runs import config_of, write_checkpoint
from made_tasks import write_lines
from tiers import once

from keras_bert_impl.checkpoints import CardFacts
from keras_bert_training import finetuning, report
from keras_bert_training.options.finetune import FinetuneConfig
from keras_bert_training.options.prepare_data import PrepareConfig
from keras_bert_training.options.pretrain import PretrainConfig
from keras_bert_training.runs import open_run, parse
from keras_bert_training.worst_errors import worst_errors

pytestmark = once
HOSTILE = "<script>alert(1)</script>"
TEXTS = [f"the cat sat {HOSTILE}", "a dog ran", "the mat is good", "it is bad", "red dogs sat"]


def page_of(directory):
    return (directory / "report.html").read_text(encoding="utf-8")


def test_a_fine_tuning_run_has_a_report_and_a_card_and_no_script(tmp_path):
    checkpoint, run = write_checkpoint(tmp_path / "checkpoint"), tmp_path / "run"
    rows = [json.dumps({"text": text, "label": ("b", HOSTILE)[place % 2]}) for place, text in enumerate(TEXTS * 2)]
    for split in ("train", "validation", "test"):
        write_lines(tmp_path / "data" / f"{split}.jsonl", rows)
    finetuning.run(config_of(checkpoint, tmp_path, "text_classification"))
    page = page_of(run)
    assert "<script" not in page and "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert not re.search(r'(src|href)="(?!data:)|url\(|@import|<link', page), "it needs no other file and no network"
    metrics = json.loads((run / "metrics.json").read_text())
    assert f"{metrics['splits']['test']['accuracy']:.4f}" in page and "always the most frequent class" in page
    assert f"keras-bert ask {run / 'model'}" in page and page.count("data:image/png;base64,") == 2
    assert f"keras-bert finetune --data {tmp_path / 'data'}" in page
    card = (run / "model" / "README.md").read_text(encoding="utf-8")
    assert "<script" not in card and "| training examples | 10 |" in card and "accuracy, test" in card


def predicted(text, label, answer, share):
    return {"text": text, "label": label, "predicted": answer, "probabilities": {answer: share}}


ENDINGS = {"text": "He", "endings": ["ran", "sat"], "label": 1, "predicted": 0, "probabilities": [0.8, 0.2]}
NUMBERS = [{"text": "t", "label": label, "predicted": answer} for label, answer in ((1.0, 1.5), (2.0, 5.0), (3.0, 3.0))]
LABELS = [predicted("right", "a", "a", 0.99), predicted("bad", "b", "a", 0.6), predicted("worse", "a", "b", 0.9)]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (LABELS, [["worse", "a", "b", "90.0%"], ["bad", "b", "a", "60.0%"]]),  # the surest first
        (NUMBERS, [["t", "2.0", "5.0", "3"], ["t", "1.0", "1.5", "0.5"]]),  # the furthest away first
        ([ENDINGS], [["He", "sat", "ran", "80.0%"]]),
    ],
)
def test_the_worst_errors_are_shown(rows, expected, tmp_path):
    write_lines(tmp_path / "predictions.jsonl", map(json.dumps, rows))
    errors = worst_errors(tmp_path)
    assert [row[-len(wanted) :] for row, wanted in zip(errors["rows"], expected, strict=True)] == expected
    assert (errors["wrong"], errors["count"]) == (len(expected), len(rows))


CONLL = """
Ann B-PER B-PER
Lee I-PER O
saw O O
Rome B-LOC B-LOC

all O O
right O O

Paris B-LOC B-PER
Hilton O I-PER
slept O O
in O O
May O B-LOC
"""


def test_of_entities_the_worst_errors_are_the_sentences_with_most_missed_or_invented(tmp_path):
    write_lines(tmp_path / "predictions.conll", CONLL.strip().replace(" ", "\t").split("\n"))
    errors = worst_errors(tmp_path)
    assert (errors["wrong"], errors["count"]) == (2, 3)
    first, second = errors["rows"]
    assert first[1:] == ["Paris (LOC)", "Paris Hilton (PER); May (LOC)"]
    assert first[0] == [("strong", "Paris"), ("del", " Hilton"), ("", " slept in "), ("del", "May")]
    assert second[1:] == ["Ann Lee (PER)", "Ann (PER)"]
    assert second[0] == [("strong", "Ann"), ("ins", " Lee"), ("", " saw Rome")]


def wrong_answer(question, context, expected, start, answer, probability, f1):
    given = {"text": answer, "probability": probability, "start": max(context.find(answer), 0)}
    given["end"] = given["start"] + len(answer)
    return json.dumps({"question": question, "context": context, "answer": given, "f1": f1,
                       "expected": [{"text": expected, "start": start}] if expected else []})  # fmt: skip


def test_of_questions_the_worst_errors_show_both_answers_in_their_context(tmp_path):
    context = f"In May 1998 Ann met Lee. {'So it went on. ' * 40}They left in 2003."
    lines = [
        wrong_answer("When?", context, "2003", context.index("2003"), "May 1998", 0.9, 0.0),
        wrong_answer("Who?", context, "Lee", 4, "met Lee", 0.8, 0.5),  # a position that is not the answer's
        wrong_answer("Why?", context, "", 0, "", 0.7, 0.0),
    ]
    write_lines(tmp_path / "wrong_answers.jsonl", lines)
    (tmp_path / "predictions.json").write_text(json.dumps(dict.fromkeys("abcdefg", "")))
    errors = worst_errors(tmp_path)
    assert (errors["wrong"], errors["count"]) == (3, 7)
    when, who, why = errors["rows"]
    assert when[2:] == ["2003", "May 1998", "90.0%"] and why[2:] == ["(no answer)", "(no answer)", "70.0%"]
    marked = [[(mark, text) for mark, text in row[1] if mark] for row in (when, who, why)]
    assert marked == [[("del", "May 1998"), ("ins", "2003")], [("del", "met "), ("strong", "Lee")], []]
    assert when[1][0] == ("", "In ") and when[1][-1] == ("", ".") and ("", " ... ") in when[1]
    assert len("".join(text for _, text in when[1])) < 300


def test_a_pre_training_has_a_report_before_it_ends(tmp_path):
    config = PretrainConfig(data="my data", output="runs/one", size="bert_tiny", masking_rate=0.2)
    history = [{"step": 40, "minutes": 1.5, "masked_lm_loss": 5.0, "val_masked_lm_loss": 5.25}]
    open_run(tmp_path, config)
    (tmp_path / "history.json").write_text(json.dumps(history))
    report.write(tmp_path, "pretraining", is_running=True, step=52, total_steps=100)
    page = page_of(tmp_path)
    assert "Training: step 52 of 100." in page and "5.2500" in page and "At step 40, after 1.5 minutes." in page
    (tmp_path / "history.json").unlink()
    report.write(tmp_path, "pretraining", is_running=False, step=7, total_steps=100)
    page = html.unescape(page_of(tmp_path))
    assert "Interrupted; the command below resumes it: step 7 of 100." in page
    _, _, *options = shlex.split(re.search("keras-bert pretrain [^<]*", page)[0])
    assert len(options) == 8 and parse(PretrainConfig, options) == config  # data, output, size and masking_rate


def test_masks_show_right_and_wrong_guesses(tmp_path):
    row = [{"truth": "the", "guess": None}, {"truth": "cat", "guess": "cat"}, {"truth": "<b>", "guess": "<i>"}]
    open_run(tmp_path, PretrainConfig(data="data", output="run"))
    report.write(tmp_path, "pretraining", CardFacts(), masks=[row])
    assert "the <ins>cat</ins> <del>&lt;i&gt;</del> (&lt;b&gt;)" in page_of(tmp_path)


def test_a_fine_tuning_without_errors_shows_its_trials_and_the_paper(tmp_path):
    open_run(tmp_path, FinetuneConfig(data="data", model="bert", output="run"))
    metrics = {"task": "rte", "main_metric": "accuracy", "trials": {"seed_0": 0.5}, "mean": 0.5, "deviation": 0.125}
    (tmp_path / "metrics.json").write_text(json.dumps(metrics))
    report.write(tmp_path, "finetuning", CardFacts(), paper={"BERT-base": {"accuracy": 66.4}}, has_checkpoint=False)
    page = page_of(tmp_path)
    assert "seed_0" in page and "0.1250" in page and "66.4" in page and "Worst errors" not in page


def test_the_report_of_prepared_data_has_its_counts(tmp_path):
    open_run(tmp_path, PrepareConfig(output="prepared", input="<b>"))
    counts = {"documents": 1200, "bytes": 90000}
    summary = {"corpus": {"train": counts}, "vocabulary_size": 800, "examples": {"64": {"train": 2276, "test": 9}}}
    summary["languages"] = {"de": {part: {**counts, "share": 0.25} for part in ("before", "after")}}
    (tmp_path / "summary.json").write_text(json.dumps(summary))
    report.write(tmp_path, "preparation")
    page = page_of(tmp_path)
    assert all(f"<span>{cell}</span>" in page for cell in ("1,200", "90,000", "2,276", "64", "25.0%"))
    assert "Read &lt;b&gt;; a vocabulary of 800 words." in page
