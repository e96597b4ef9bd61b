"""Runs `finetune.run` with a small model for every family of tasks, and tests the options of training."""

import dataclasses
import json

import numpy as np
import pytest
import scipy.special
import seqeval.metrics
import sklearn.metrics
from made_runs import arrays_of, config_of, write_checkpoint
from made_tasks import (
    SENTENCES,
    write_codah,
    write_cola,
    write_lines,
    write_mrpc,
    write_ner,
    write_parts_of_speech,
    write_squad,
    write_stsb,
)
from tiers import full_but, once

import keras_bert_impl as kbi
from keras_bert_training import finetuning, finetuning_trial
from keras_bert_training.tasks import squad_metrics
from keras_bert_training.tasks.conll import read_conll
from keras_bert_training.tasks.labelled_texts import LabelledTexts
from keras_bert_training.tasks.named_entities import LabelledSentences
from keras_bert_training.tasks.own_data import own_task
from keras_bert_training.tasks.squad_files import read_squad

pytestmark = once


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    return write_checkpoint(tmp_path_factory.mktemp("checkpoint"))


WRITERS = {
    "mrpc": (write_mrpc, ["MRPC.tsv", "confusion.png", "predictions.jsonl", "predictions_test.jsonl"]),
    "cola": (write_cola, ["CoLA.tsv", "confusion.png", "predictions.jsonl"]),
    "sts-b": (write_stsb, ["STS-B.tsv", "predictions.jsonl"]),
    "squad1.1": (write_squad, ["predictions.json", "nbest.json"]),
    "squad2.0": (lambda folder: write_squad(folder, "v2.0"), ["predictions.json", "null_odds.json"]),
    "codah": (write_codah, ["confusion.png", "predictions.jsonl", "predictions_dev.jsonl"]),
    "ner": (write_ner, ["predictions.conll", "predictions_dev.conll", "f1_by_label.png"]),
    "words": (write_parts_of_speech, ["predictions.conll", "predictions_dev.conll", "f1_by_label.png"]),
}


def json_lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def read_columns(path):
    """The labels and the predictions of a .conll file, each a list for each sentence."""
    sentences = [part.split("\n") for part in path.read_text().strip().split("\n\n")]
    return ([[line.split("\t")[column] for line in sentence] for sentence in sentences] for column in (1, 2))


def figures_of_files(task, run, data):
    """(figure, value) of the predictions that a run has written, computed from these files alone."""
    if task.startswith("squad"):
        version = "v" + task.removeprefix("squad")
        dataset, predictions = (
            json.loads(path.read_text()) for path in (data / f"dev-{version}.json", run / "predictions.json")
        )
        return "f1", squad_metrics.evaluate(dataset, predictions)["f1"] / 100
    if task in ("ner", "words"):
        wanted, found = read_columns(run / "predictions.conll")
        if task == "ner":
            return "f1", seqeval.metrics.f1_score(wanted, found)
        return "accuracy", np.mean(np.concatenate(wanted) == np.concatenate(found))
    rows = json_lines(run / "predictions.jsonl")
    wanted, found = ([row[name] for row in rows] for name in ("label", "predicted"))
    if task == "sts-b":
        return "mean_squared_error", np.mean((np.array(wanted, float) - np.array(found)) ** 2)
    if task == "mrpc":
        return "f1", sklearn.metrics.f1_score(wanted, found, pos_label="equivalent")
    if task == "cola":
        return "matthews_correlation", sklearn.metrics.matthews_corrcoef(wanted, found)
    return "accuracy", sklearn.metrics.accuracy_score(wanted, found)


def assert_names_of_classes(run):
    written = json.loads((run / "model" / "config.json").read_text())
    assert written["id2label"] == {"0": "not_equivalent", "1": "equivalent"}
    head, *lines = (run / "MRPC.tsv").read_text().splitlines()
    assert head == "index\tprediction" and len(lines) == 10
    assert all(line.split("\t") in ([str(n), "0"], [str(n), "1"]) for n, line in enumerate(lines))
    assert "f1 of class equivalent, dev" in (run / "report.html").read_text()
    assert "| f1 of class equivalent, dev |" in (run / "model" / "README.md").read_text()


# Without two that differ from others in their figures alone.
@pytest.mark.parametrize("task", full_but(WRITERS, *(WRITERS.keys() - {"cola", "squad1.1"})))
def test_a_task_goes_from_its_files_to_figures_and_checkpoint(checkpoint, tmp_path, task):
    write, files = WRITERS[task]
    write(tmp_path / "data")
    config = config_of(checkpoint, tmp_path, "ner" if task == "words" else task, learning_rate=2e-3, dropout_rate=0.0)
    figures = finetuning.run(config)
    run = tmp_path / "run"
    losses = [row["loss"] for row in figures["history"]]
    assert len(losses) == 2 and losses[1] < losses[0]
    if task == "mrpc":
        assert_names_of_classes(run)
    name, value = figures_of_files(task, run, tmp_path / "data")
    # A file holds four decimals of a number of up to 5: its square has an error of 2 * 5 * 0.00005 at most.
    assert figures[name] == pytest.approx(value, abs=5e-4)
    for name in ("run.json", "metrics.json", "model/model.safetensors", "model/vocab.txt", *files):
        assert (run / name).is_file(), name
    assert not (run / "training_state").exists()
    assert json.loads((run / "metrics.json").read_text()) == figures
    assert finetuning.run(config) == figures


def test_a_test_file_without_answers_is_answered_with_the_threshold_of_dev(checkpoint, tmp_path):
    write_squad(tmp_path / "data", "v2.0")
    content = json.loads((tmp_path / "data" / "dev-v2.0.json").read_text())
    for question in content["data"][0]["paragraphs"][0]["qas"]:
        del question["answers"], question["is_impossible"]
    write_lines(tmp_path / "data" / "test.json", [json.dumps(content)])
    figures = finetuning.run(config_of(checkpoint, tmp_path, "squad2.0", epochs=1))["splits"]["dev"]
    assert figures["null_threshold"] != 0.0 and figures["f1"] == pytest.approx(figures["best_f1"])
    odds = json.loads((tmp_path / "run" / "null_odds_test.json").read_text())
    answers = json.loads((tmp_path / "run" / "predictions_test.json").read_text())
    assert {key: text == "" for key, text in answers.items()} == {
        key: value > figures["null_threshold"] for key, value in odds.items()
    }
    model = kbi.QuestionAnswerer.from_pretrained(tmp_path / "run" / "model")
    assert model.null_threshold == figures["null_threshold"]
    paragraph = content["data"][0]["paragraphs"][0]
    for question in paragraph["qas"]:
        assert model.answer(question["question"], paragraph["context"])[0].text == answers[question["id"]]


def test_the_best_epoch_is_restored(checkpoint, tmp_path):
    write_ner(tmp_path / "data")
    figures = finetuning.run(config_of(checkpoint, tmp_path, "ner", epochs=4, learning_rate=2e-2))
    assert figures["splits"]["dev"]["f1"] == max(row["value"] for row in figures["history"]) > 0


NOT_GIVEN = dict.fromkeys(("epochs", "batch_size", "learning_rate"))


def test_seeds_and_search_report_best_mean_and_deviation(checkpoint, tmp_path):
    write_mrpc(tmp_path / "data", count=4)
    options = {"search_learning_rates": [1e-3, 1e-2], "search_batch_sizes": [4], "search_epochs": [1]}
    config = config_of(checkpoint, tmp_path, "mrpc", seeds=2, search=True, **NOT_GIVEN, **options)
    figures = finetuning.run(config)
    values = figures["trials"]
    assert list(values) == [f"rate{rate}_batch4_epochs1_seed{seed}" for rate in ("0.001", "0.01") for seed in (0, 1)]
    assert values[figures["best_trial"]] == max(values.values()) == figures["splits"]["dev"]["f1"]
    assert figures["mean"] == pytest.approx(np.mean(list(values.values())))
    assert figures["deviation"] == pytest.approx(np.std(list(values.values()), ddof=1))
    for name in ("model/model.safetensors", "MRPC.tsv", "confusion.png"):
        assert (tmp_path / "run" / name).read_bytes() == (
            tmp_path / "run" / "trials" / figures["best_trial"] / name
        ).read_bytes()


def test_patience_stops_a_run_that_gets_no_better(checkpoint, tmp_path):
    write_mrpc(tmp_path / "data")
    figures = finetuning.run(config_of(checkpoint, tmp_path, "mrpc", epochs=9, learning_rate=1e-12, patience=2))
    assert len(figures["history"]) == 3


def test_lora_changes_kernels_and_leaves_a_plain_checkpoint(checkpoint, tmp_path):
    write_mrpc(tmp_path / "data")
    figures = finetuning.run(config_of(checkpoint, tmp_path, "mrpc", epochs=1, learning_rate=1e-2, lora_rank=2))
    weights, before = arrays_of(tmp_path / "run" / "model"), arrays_of(checkpoint)
    changed = {path for path in before if not np.array_equal(before[path], weights[path])}
    assert changed == {path for path in before if path.startswith("block_") and "kernel" in path} | {
        "pooler/kernel",
        "pooler/bias",
    }
    # The saved model predicts what the run scored.
    model = kbi.TextClassifier.from_pretrained(tmp_path / "run" / "model")
    lines = json_lines(tmp_path / "run" / "predictions.jsonl")
    logits = model.predict(([row["text"] for row in lines], [row["text_pair"] for row in lines]), verbose=0)
    assert [model.class_names[place] for place in logits.argmax(-1)] == [row["predicted"] for row in lines]
    written = [list(row["probabilities"].values()) for row in lines]
    np.testing.assert_allclose(written, scipy.special.softmax(logits, axis=-1), atol=1e-5)
    assert np.ptp(written, axis=0).max() > 1e-4  # in another order they would differ
    assert figures["examples"] == len(lines)


LONG_ROWS = [
    {"text": f" {' . '.join(SENTENCES)} " * (number % 4) + SENTENCES[number % 5], "label": str(number % 5 % 2)}
    for number in range(9)
]


@pytest.mark.filterwarnings("ignore:.*texts have more than 12 tokens")
@pytest.mark.parametrize("how", ["windows", "head_and_tail"])
def test_long_texts_are_trained_on_and_scored_as_they_are_predicted(checkpoint, tmp_path, how):
    for split in ("train", "validation"):
        write_lines(tmp_path / "data" / f"{split}.jsonl", map(json.dumps, LONG_ROWS))
    options = {"sequence_length": 12, "task_options": {"long_texts": how}, "learning_rate": 1e-2, "epochs": 1}
    figures = finetuning.run(config_of(checkpoint, tmp_path, "text_classification", **options))
    assert figures["examples"] == len(LONG_ROWS)
    assert (figures["training_rows"] > len(LONG_ROWS)) == (how == "windows")
    model = kbi.TextClassifier.from_pretrained(tmp_path / "run" / "model")
    assert model.long_texts == how and model.sequence_length == 12
    texts, lines = [row["text"] for row in LONG_ROWS], json_lines(tmp_path / "run" / "predictions.jsonl")
    expected = scipy.special.softmax(model.predict(texts, verbose=0), axis=-1)
    np.testing.assert_allclose([list(line["probabilities"].values()) for line in lines], expected, atol=1e-5)
    assert [line["text"] for line in lines] == texts
    assert figures["accuracy"] == pytest.approx(np.mean([line["predicted"] == line["label"] for line in lines]))
    model.long_texts = "cut"  # a model that reads the beginnings alone says something else
    assert np.abs(scipy.special.softmax(model.predict(texts, verbose=0), axis=-1) - expected).max() > 1e-4


def test_windows_are_for_single_texts(checkpoint, tmp_path):
    write_mrpc(tmp_path / "data")
    with pytest.raises(ValueError, match="these are pairs"):
        finetuning.run(config_of(checkpoint, tmp_path, "mrpc", task_options={"long_texts": "windows"}))


def test_balanced_classes_are_counted_by_texts_and_not_by_windows(checkpoint, tmp_path):
    task = dataclasses.replace(own_task("text_classification", tmp_path), long_texts="windows")
    examples = LabelledTexts([SENTENCES[0], " ".join(SENTENCES * 2), SENTENCES[1]], None, ["0", "1", "0"])
    config = config_of(checkpoint, tmp_path, "text_classification", class_weights="balanced", sequence_length=12)
    model = kbi.TextClassifier.from_pretrained(checkpoint, num_classes=2, sequence_length=12)
    rows = finetuning_trial.featurize(config, task, {"train": examples}, ["0", "1"], model)["train"]
    assert rows.windows.tolist()[0] == 1 and rows.windows[1] > 3
    # Of three texts two have class 0: each class weighs one and a half.
    sums = np.array([rows.weights[rows.labels == number].sum() for number in (0, 1)])
    np.testing.assert_allclose(sums * 3 / len(rows), 1.5, rtol=1e-6)


@pytest.mark.parametrize(("task", "write"), [("mrpc", write_mrpc), ("sts-b", write_stsb)])
def test_weights_of_what_is_no_class_are_refused(task, write, checkpoint, tmp_path):
    write(tmp_path / "data")
    with pytest.raises(ValueError, match=r"'similar', which is not one of the classes|only to tasks with classes"):
        finetuning.run(config_of(checkpoint, tmp_path, task, class_weights={"similar": 2.0}))
    assert not (tmp_path / "run").exists()


def test_what_is_cut_and_what_is_in_two_splits_is_counted(checkpoint, tmp_path, capsys):
    task = own_task("text_classification", tmp_path)
    splits = {"train": ["the cat sat", "a dog ran", "is it bad ? " * 9, "mats"], "dev": ["a dog ran", "the", "mats"]}
    examples = {split: LabelledTexts(texts, None, ["0"] * len(texts)) for split, texts in splits.items()}
    config = config_of(checkpoint, tmp_path, "text_classification", sequence_length=12)
    model = kbi.TextClassifier.from_pretrained(checkpoint, num_classes=2, sequence_length=12)
    finetuning_trial.featurize(config, task, examples, ["0"], model)
    printed = capsys.readouterr().out
    assert "train: 1 of 4 examples had more than 12" in printed and "dev: 2 of 3 examples are also in train" in printed


def test_frozen_layers_do_not_change(checkpoint, tmp_path):
    write_cola(tmp_path / "data")
    finetuning.run(config_of(checkpoint, tmp_path, "cola", epochs=1, frozen_layers=1))
    weights, before = arrays_of(tmp_path / "run" / "model"), arrays_of(checkpoint)
    changed = {path.split("/")[0] for path in before if not np.array_equal(before[path], weights[path])}
    assert changed == {"block_1", "pooler"}


def test_features_of_a_frozen_encoder_are_trained_on(checkpoint, tmp_path):
    write_ner(tmp_path / "data")
    options = {"features": "weighted_sum_all", "units": 5}
    figures = finetuning.run(config_of(checkpoint, tmp_path, "ner", epochs=2, learning_rate=3e-2, task_options=options))
    losses = [row["loss"] for row in figures["history"]]
    assert losses[1] < losses[0]
    assert (tmp_path / "run" / "model" / "model.keras").is_file()


def test_a_set_of_the_hub_needs_no_validation_split_and_may_have_rows_without_labels(checkpoint, tmp_path, capsys):
    datasets = pytest.importorskip("datasets")
    tags = datasets.Sequence(datasets.ClassLabel(names=["DT", "NN", "VB"]))
    values = {"tokens": [["the", "cat", "sat"]] * 11, "pos_tags": [[0, 1, 2]] * 10 + [[0, 1, -1]]}
    rows = datasets.Dataset.from_dict(values).cast_column("pos_tags", tags)
    rows.to_parquet(tmp_path / "set" / "train.parquet")
    config = dataclasses.replace(config_of(checkpoint, tmp_path, "ner", epochs=1), data=f"datasets:{tmp_path / 'set'}")
    figures = finetuning.run(config)
    assert (figures["training_rows"], figures["sentences"], figures["words"]) == (9, 1, 3)
    assert figures["accuracy"] in (0, pytest.approx(1 / 3), pytest.approx(2 / 3), 1) and "f1" not in figures
    printed = capsys.readouterr().out
    assert "train: 1 of 11 examples have no label" in printed and "1 of the 10 training examples become dev" in printed


PLAIN_TASK = """
import types
from keras_bert_training.tasks.glue import TASKS
MRPC = TASKS["mrpc"]
TASK = types.SimpleNamespace(**{part: getattr(MRPC, part) for part in dir(MRPC) if part[0] != "_"})
"""


def test_a_task_may_be_a_plain_object(checkpoint, tmp_path):
    write_mrpc(tmp_path / "data")
    file = tmp_path / "plain.py"
    file.write_text(PLAIN_TASK)
    assert finetuning.run(config_of(checkpoint, tmp_path, str(file), epochs=1))["task"] == "mrpc"


def test_a_task_that_lacks_parts_is_refused_before_it_trains(checkpoint, tmp_path):
    (tmp_path / "part.py").write_text("class Part:\n    name = 'part'\n    splits = {}\n\nTASK = Part()\n")
    with pytest.raises(ValueError, match=r"part\.py lacks dev, test, main_metric"):
        finetuning.run(config_of(checkpoint, tmp_path, str(tmp_path / "part.py")))


SMS_TASK = """
import pathlib

from keras_bert_training.tasks.labelled_texts import examples_of
from keras_bert_training.tasks.tables import read_table
from keras_bert_training.tasks.text_classification import TextClassification


def read_sms(directory, splits, split, bad_rows):
    rows = list(read_table(pathlib.Path(directory) / splits[split], {"label": 0, "text": 1}, bad_rows))
    cut = len(rows) * 9 // 10
    return examples_of(rows[:cut] if split == "train" else rows[cut:])


TASK = TextClassification(
    "sms_spam",
    splits={"train": "SMSSpamCollection", "dev": "SMSSpamCollection"},
    test=(),
    main_metric="f1",
    class_names={"ham": "ham", "spam": "spam"},
    read_labelled=read_sms,
)
"""


def test_a_task_of_a_file_without_a_header_divides_it_itself(checkpoint, tmp_path):
    (tmp_path / "sms_spam.py").write_text(SMS_TASK)
    lines = [f"{'spam' if n % 2 else 'ham'}\t{SENTENCES[n % 5]}" for n in range(20)]
    write_lines(tmp_path / "data" / "SMSSpamCollection", lines)
    figures = finetuning.run(config_of(checkpoint, tmp_path, str(tmp_path / "sms_spam.py"), epochs=1))
    assert figures["training_rows"] == 18 and figures["examples"] == 2


def test_glue_runs_what_is_there_and_prints_the_table(checkpoint, tmp_path, capsys):
    write_mrpc(tmp_path / "data" / "MRPC")
    write_cola(tmp_path / "data" / "CoLA")
    finetuning.run(config_of(checkpoint, tmp_path, "glue", epochs=1))
    table = (tmp_path / "run" / "table.txt").read_text()
    assert "2 of 9" in table and "79.6" in table and table.splitlines()[1] in capsys.readouterr().out
    assert sorted(path.name for path in (tmp_path / "run" / "submission").iterdir()) == ["CoLA.tsv", "MRPC.tsv"]


def test_malformed_rows_are_skipped_and_counted_or_stop(checkpoint, tmp_path, command, capsys):
    write_mrpc(tmp_path / "data")
    with (tmp_path / "data" / "train.tsv").open("a") as file:
        file.write("1\tonly three\tcolumns\n")
    arguments = ("--task", "mrpc", "--data", tmp_path / "data", "--model", checkpoint, "--output", tmp_path / "run")
    quick = ("--epochs", "1", "--jit-compile", "off", "--sequence-length", "40")
    message = command(finetuning.FinetuneConfig, finetuning.run, *arguments, *quick)
    assert "train.tsv line 12" in message
    assert not (tmp_path / "run").exists()
    assert command(finetuning.FinetuneConfig, finetuning.run, *arguments, *quick, "--bad-rows", "skip") is None
    printed = capsys.readouterr().out
    assert "train: 1 malformed rows left out" in printed and "train.tsv line 12" in printed


def texts_and_classes(folder):
    rows = [line.split("\t") for line in (folder / "train.tsv").read_text().splitlines()[1:]]
    names = {"0": "not_equivalent", "1": "equivalent"}
    return ([row[3] for row in rows], [row[4] for row in rows]), [names[row[0]] for row in rows]


def words_and_labels(folder):
    sentences = LabelledSentences(read_conll(folder / "train.txt", None)).sentences
    return [sentence.words for sentence in sentences], [sentence.labels for sentence in sentences]


NATURAL = {
    "mrpc": (kbi.TextClassifier, write_mrpc, texts_and_classes),
    "ner": (kbi.TokenClassifier, write_ner, words_and_labels),
    "squad1.1": (kbi.QuestionAnswerer, WRITERS["squad1.1"][0], lambda folder: read_squad(folder / "train-v1.1.json")),
}


NOT_LEARNT = ("span_head/bias", *(f"block_{index}/attention/query_key_value/bias" for index in (0, 1)))


@pytest.mark.parametrize("task", NATURAL)
def test_fit_on_natural_data_trains_the_model_of_finetune(checkpoint, tmp_path, task):
    """One step over all rows, so that their order does not count; the same new head, from a run that learns nothing."""
    kind, write, read = NATURAL[task]
    write(tmp_path / "data")
    options = {"epochs": 1, "batch_size": 100, "dropout_rate": 0.0, "warmup_share": 0.0}
    finetuning.run(config_of(checkpoint, tmp_path, task, output="start", learning_rate=1e-30, **options))
    finetuning.run(config_of(checkpoint, tmp_path, task, learning_rate=1e-2, **options))
    model = kind.from_pretrained(tmp_path / "start" / "model", sequence_length=40)
    model.compile(kbi.optimization.BertAdamW(1e-2), loss=model.loss)
    model.fit(*read(tmp_path / "data"), batch_size=100, verbose=0)
    expected = kind.from_pretrained(tmp_path / "run" / "model")
    start = kind.from_pretrained(tmp_path / "start" / "model")
    for weight, wanted in zip(model.weights, expected.weights, strict=True):
        # AdamW divides each gradient by its size; that of a constant that softmax removes is nothing but rounding.
        if weight.path not in NOT_LEARNT:
            np.testing.assert_allclose(weight, wanted, atol=1e-4, err_msg=weight.path)  # a hundredth of a step
    assert max(np.abs(a - b).max() for a, b in zip(model.get_weights(), start.get_weights(), strict=True)) > 5e-3


def test_an_interrupted_run_is_not_resumed_with_other_files(checkpoint, tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    write_cola(tmp_path / "data")
    config = config_of(checkpoint, tmp_path, "cola", epochs=1, seeds=2)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(finetuning_trial, "fit", interrupt)
        finetuning.run(config)
    for name in ("train.tsv", "dev.tsv", "test.tsv"):
        first = (tmp_path / "data" / name).read_text()
        (tmp_path / "data" / name).write_text(first.replace("a", "o", 1))
        with pytest.raises(ValueError, match=f"started with a different {name}"):
            finetuning.run(config)
        (tmp_path / "data" / name).write_text(first)
    finetuning.run(config)


def test_a_finished_run_knows_its_data_elsewhere_and_no_other(checkpoint, tmp_path):
    write_cola(tmp_path / "data")
    figures = finetuning.run(config_of(checkpoint, tmp_path, "cola", epochs=1))
    (tmp_path / "data").rename(tmp_path / "moved")
    assert finetuning.run(config_of(checkpoint, tmp_path, "cola", epochs=1, data="moved")) == figures
    train = tmp_path / "moved/train.tsv"
    train.write_text(train.read_text().replace("a", "o", 1))
    with pytest.raises(ValueError, match=r"started with a different train.tsv"):
        finetuning.run(config_of(checkpoint, tmp_path, "cola", epochs=1, data="moved"))
