"""report.html: what it shows is the run's, and nothing of a user's data becomes HTML."""

import html
import json
import re
import shlex

import matplotlib.figure
import pytest
from made_runs import config_of, write_checkpoint
from made_tasks import write_lines
from tiers import once

from keras_bert_impl.checkpoints import Figure
from keras_bert_impl.options.pretrain import PretrainConfig
from keras_bert_impl.training import finetuning, run_documents, run_page
from keras_bert_impl.training.run_page import Page
from keras_bert_impl.training.runs import parse
from keras_bert_impl.training.worst_errors import worst_errors

pytestmark = once
HOSTILE = "<script>alert(1)</script>"
TEXTS = [f"the cat sat {HOSTILE}", "a dog ran", "the mat is good", "it is bad", "red dogs sat"]


@pytest.fixture
def run(tmp_path):
    """The directory of a fine-tuning run on texts and labels that hold a script."""
    checkpoint = write_checkpoint(tmp_path / "checkpoint")
    rows = [json.dumps({"text": text, "label": ("b", HOSTILE)[place % 2]}) for place, text in enumerate(TEXTS * 2)]
    for split in ("train", "validation", "test"):
        write_lines(tmp_path / "data" / f"{split}.jsonl", rows)
    finetuning.run(config_of(checkpoint, tmp_path, "text_classification"))
    return tmp_path / "run"


def page_of(directory):
    return (directory / "report.html").read_text(encoding="utf-8")


def test_a_fine_tuning_run_has_a_report_and_a_card_and_no_script(run):
    page = page_of(run)
    assert "<script" not in page and "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    metrics = json.loads((run / "metrics.json").read_text())
    assert f"{metrics['splits']['test']['accuracy']:.4f}" in page and "always the most frequent class" in page
    assert f"keras-bert ask {run / 'model'}" in page and page.count("data:image/png;base64,") == 2
    card = (run / "model" / "README.md").read_text(encoding="utf-8")
    assert "<script" not in card and "| training rows | 10 |" in card and "accuracy, test" in card


def test_a_report_needs_no_other_file_and_no_network(run):
    page = page_of(run)
    assert not re.search(r'(src|href)="(?!data:)|url\(|@import|<link', page)


def test_the_worst_errors_are_the_surest_wrong_predictions(tmp_path):
    rows = [("right", "a", "a", 0.99), ("worse", "a", "b", 0.9), ("bad", "b", "a", 0.6)]
    lines = [
        json.dumps({"text": text, "label": label, "predicted": predicted, "probabilities": {predicted: share}})
        for text, label, predicted, share in rows
    ]
    write_lines(tmp_path / "predictions.jsonl", lines)
    errors = worst_errors(tmp_path)
    assert errors.rows == [["worse", "a", "b", "90.0%"], ["bad", "b", "a", "60.0%"]]
    assert errors.note.startswith("2 of 3 predictions are wrong") and errors.head[-1] == ("probability", "number")


def test_of_numbers_the_worst_errors_are_those_furthest_away(tmp_path):
    rows = [(1.0, 1.5), (2.0, 5.0), (3.0, 3.0)]
    write_lines(
        tmp_path / "predictions.jsonl", [json.dumps({"text": "t", "label": a, "predicted": b}) for a, b in rows]
    )
    errors = worst_errors(tmp_path)
    assert [row[-1] for row in errors.rows] == ["3", "0.5"] and errors.head[-1] == ("difference", "number")


def test_of_endings_the_worst_errors_show_the_endings(tmp_path):
    row = {"text": "He", "endings": ["ran", "sat"], "label": 1, "predicted": 0, "probabilities": [0.8, 0.2]}
    write_lines(tmp_path / "predictions.jsonl", [json.dumps(row)])
    assert worst_errors(tmp_path).rows == [["He", "sat", "ran", "80.0%"]]


def test_among_many_errors_the_worst_are_kept(tmp_path):
    lines = [
        json.dumps({"text": f"text {n}", "label": "a", "predicted": "b", "probabilities": {"b": 0.5 + n / 2000}})
        for n in range(900)
    ]
    write_lines(tmp_path / "predictions.jsonl", lines)
    errors = worst_errors(tmp_path)
    assert [text for text, *_ in errors.rows] == [f"text {n}" for n in range(899, 879, -1)]
    assert "900 of 900" in errors.note


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
    assert errors.note.startswith("2 of 3 sentences have errors")
    first, second = errors.rows
    assert first[1:] == ["Paris (LOC)", "Paris Hilton (PER); May (LOC)"]
    assert first[0] == [("strong", "Paris"), ("", " "), ("del", "Hilton"), ("", " "), ("", "slept in"), ("", " "),
                        ("del", "May")]  # fmt: skip
    assert second[1:] == ["Ann Lee (PER)", "Ann (PER)"]
    assert second[0][:3] == [("strong", "Ann"), ("", " "), ("ins", "Lee")]


def test_of_labels_without_prefixes_the_worst_errors_are_words(tmp_path):
    write_lines(tmp_path / "predictions.conll", ["the\tDT\tDT", "cat\tNN\tVB", "sat\tVB\tVB"])
    assert worst_errors(tmp_path).rows[0][1:] == ["cat (NN)", "cat (VB)"]


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
        wrong_answer("Why?", context, "", 0, "Ann", 0.7, 0.0),
        wrong_answer("Where?", context, "Lee", 20, "", 0.6, 0.0),
    ]
    write_lines(tmp_path / "wrong_answers.jsonl", lines)
    (tmp_path / "predictions.json").write_text(json.dumps(dict.fromkeys("abcdefg", "")))
    errors = worst_errors(tmp_path)
    assert errors.note.startswith("4 of 7 answers")
    when, _, why, where = errors.rows
    assert [row[2:] for row in (when, why, where)] == [
        ["2003", "May 1998", "90.0%"],
        ["(no answer)", "Ann", "70.0%"],
        ["Lee", "(no answer)", "60.0%"],
    ]
    marked = [[(mark, text) for mark, text in row[1] if mark] for row in errors.rows]
    assert marked == [
        [("del", "May 1998"), ("ins", "2003")],
        [("del", "met "), ("strong", "Lee")],
        [("del", "Ann")],
        [("ins", "Lee")],
    ]
    assert when[1][0] == ("", "In ") and when[1][-1] == ("", ".") and ("", " ... ") in when[1]
    assert len("".join(text for _, text in when[1])) < 300


def test_a_figure_has_its_deviation_and_its_baselines_beside_it():
    baselines = (("most frequent word", 0.0692),)
    table = run_page.figures_table([Figure("masked_lm_accuracy", 0.391, "test", 0.0049, "9,900 words", baselines)])
    assert table.head[-1] == "most frequent word"
    assert table.rows == [["masked lm accuracy, test", "0.3910", "± 0.0049 (9,900 words)", "0.0692"]]


def test_a_table_without_any_deviation_has_no_column_for_it():
    table = run_page.figures_table([Figure("f1", 0.5, "dev", None, "", (("always O", 0.0),))])
    assert (table.head, table.rows) == (["figure", "this model", "always O"], [["f1, dev", "0.5000", "0.0000"]])


def test_masks_show_right_and_wrong_guesses(tmp_path):
    row = [{"truth": "the", "guess": None}, {"truth": "cat", "guess": "cat"}, {"truth": "<b>", "guess": "<i>"}]
    run_page.write(tmp_path, Page("Pre-training", "Finished.", masks=[row]))
    page = page_of(tmp_path)
    assert "<ins>cat</ins>" in page and "<del>&lt;i&gt;</del> (&lt;b&gt;)" in page and "the " in page


def test_a_pre_training_has_a_report_before_it_ends(tmp_path):
    history = [{"step": 40, "minutes": 1.5, "masked_lm_loss": 5.0, "val_masked_lm_loss": 5.25}]
    config = PretrainConfig(data="my data", output="runs/one", size="bert_tiny", masking_rate=0.2)
    picture = matplotlib.figure.Figure()
    run_documents.write_pretraining_so_far(tmp_path, config, history, 52, 100, picture)
    page = page_of(tmp_path)
    assert "Training: step 52 of 100." in page and "5.2500" in page and "base64" in page
    assert "At step 40, after 1.5 minutes." in page
    run_documents.write_pretraining_so_far(tmp_path, config, [], 7, 100, is_running=False)
    page = html.unescape(page_of(tmp_path))
    assert "Interrupted; the command below resumes it: step 7 of 100." in page
    _, _, *options = shlex.split(re.search("keras-bert pretrain [^<]*", page)[0])
    assert len(options) == 8 and parse(PretrainConfig, options) == config  # data, output, size and masking_rate
