"""Every family through `finetune.run` with a small model, and the options of training."""

import dataclasses
import json
import pathlib

import keras
import numpy as np
import pytest
import tensorflow as tf
from conftest import WORDS
from made_tasks import SENTENCES, write_lines, write_ner

import finetune
import finetune_trial
import keras_bert_impl as kbi


@pytest.fixture(autouse=True)
def quick_steps():
    """Steps as Python runs them: tracing a graph takes longer than the few steps here."""
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """A checkpoint of 64 positions with its tokenizer."""
    path = tmp_path_factory.mktemp("checkpoint")
    config = kbi.BertConfig(len(WORDS), hidden_size=12, num_layers=2, num_heads=3, intermediate_size=21, max_length=64)
    kbi.BertPretrainer(kbi.BertEncoder(config)).save_pretrained(path)
    kbi.WordPieceTokenizer(WORDS).save_pretrained(path)
    return path


def config_of(checkpoint, tmp_path, task, data="data", output="run", **options):
    usual = {"epochs": 2, "batch_size": 4, "learning_rate": 1e-3, "sequence_length": 40, "jit_compile": "off"}
    return finetune.FinetuneConfig(
        str(tmp_path / data), str(checkpoint), str(tmp_path / output), task, **{**usual, **options}
    )


def write_mrpc(folder, count=10):
    head = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String"
    pairs = [f"{n}\t{n}\t{SENTENCES[n % 5]}\t{SENTENCES[n % 3]}" for n in range(count)]
    for split in ("train", "dev"):
        write_lines(folder / f"{split}.tsv", [head, *(f"{n % 2}\t{pair}" for n, pair in enumerate(pairs))])
    write_lines(folder / "test.tsv", ["index" + head[7:], *(f"{n}\t{pair}" for n, pair in enumerate(pairs))])


def write_cola(folder):
    for split in ("train", "dev"):
        write_lines(folder / f"{split}.tsv", [f"gj04\t{n % 2}\t*\t{SENTENCES[n % 5]}" for n in range(9)])
    write_lines(folder / "test.tsv", ["index\tsentence", *(f"{n}\t{text}" for n, text in enumerate(SENTENCES))])


def write_stsb(folder):
    head = "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2"
    rows = [f"{n}\tg\tf\ty\t{n}\tnone\tnone\t{SENTENCES[n % 5]}\t{SENTENCES[n % 3]}" for n in range(9)]
    for split in ("train", "dev"):
        write_lines(folder / f"{split}.tsv", [f"{head}\tscore", *(f"{row}\t{n / 2}" for n, row in enumerate(rows))])
    write_lines(folder / "test.tsv", [head, *rows])


def write_squad(folder, version):
    context = "the cat sat on a mat . the dog ran in red rain . " * 3
    questions = [
        {"id": f"q{n}", "question": "is it good", "answers": [{"text": text, "answer_start": context.index(text)}]}
        for n, text in enumerate(["cat", "a mat", "red rain", "dog ran"])
    ]
    if version == "v2.0":
        for question in questions:
            question["is_impossible"] = False
        questions.append({"id": "none", "question": "is it bad", "answers": [], "is_impossible": True})
    content = {"version": version, "data": [{"title": "t", "paragraphs": [{"context": context, "qas": questions}]}]}
    for split in ("train", "dev"):
        write_lines(folder / f"{split}-{version}.json", [json.dumps(content)])


def write_codah(folder):
    for split in ("train", "dev", "test"):
        rows = ["\t".join(["o", SENTENCES[n % 5], *SENTENCES[:4], str(n % 4)]) for n in range(7)]
        write_lines(folder / f"{split}.tsv", rows)


WRITERS = {
    "mrpc": (write_mrpc, "f1", ["MRPC.tsv", "confusion.png", "predictions.jsonl", "predictions_test.jsonl"]),
    "cola": (write_cola, "matthews_correlation", ["CoLA.tsv", "confusion.png", "predictions.jsonl"]),
    "sts-b": (write_stsb, "spearman", ["STS-B.tsv", "predictions.jsonl"]),
    "squad1.1": (lambda folder: write_squad(folder, "v1.1"), "f1", ["predictions.json", "nbest.json"]),
    "squad2.0": (lambda folder: write_squad(folder, "v2.0"), "best_f1", ["predictions.json", "null_odds.json"]),
    "codah": (write_codah, "accuracy", ["confusion.png", "predictions.jsonl", "predictions_dev.jsonl"]),
    "ner": (write_ner, "f1", ["predictions.conll", "predictions_dev.conll"]),
}


@pytest.mark.parametrize("task", WRITERS)
def test_a_task_goes_from_its_files_to_figures_and_checkpoint(checkpoint, tmp_path, task):
    write, metric, files = WRITERS[task]
    write(tmp_path / "data")
    figures = finetune.run(config_of(checkpoint, tmp_path, task))
    run = tmp_path / "run"
    assert -1 <= figures["splits"]["dev"][metric] <= 1 and len(figures["history"]) == 2
    for name in ("run.json", "metrics.json", "model/model.safetensors", "model/vocab.txt", *files):
        assert (run / name).is_file(), name
    assert not (run / "training_state").exists()
    assert json.loads((run / "metrics.json").read_text()) == figures
    assert finetune.run(config_of(checkpoint, tmp_path, task)) == figures


def test_the_checkpoint_bears_the_names_of_the_classes(checkpoint, tmp_path):
    write_mrpc(tmp_path / "data")
    finetune.run(config_of(checkpoint, tmp_path, "mrpc", epochs=1))
    written = json.loads((tmp_path / "run" / "model" / "config.json").read_text())
    assert written["id2label"] == {"0": "not_equivalent", "1": "equivalent"}
    submission = (tmp_path / "run" / "MRPC.tsv").read_text().splitlines()
    assert submission[0] == "index\tprediction" and len(submission) == 11
    assert all(line.split("\t") in ([str(n), "0"], [str(n), "1"]) for n, line in enumerate(submission[1:]))


def test_the_best_epoch_is_restored(checkpoint, tmp_path):
    write_ner(tmp_path / "data")
    figures = finetune.run(config_of(checkpoint, tmp_path, "ner", epochs=4, learning_rate=2e-2))
    assert figures["splits"]["dev"]["f1"] == max(row["value"] for row in figures["history"]) > 0


def test_an_interrupted_run_ends_as_an_uninterrupted_one(checkpoint, tmp_path, monkeypatch):
    write_mrpc(tmp_path / "data")
    whole = finetune.run(config_of(checkpoint, tmp_path, "mrpc", output="whole", epochs=3))

    class Interrupt(finetune_trial.DevScores):
        def on_epoch_end(self, epoch, logs=None):
            super().on_epoch_end(epoch, logs)
            if epoch == 1:
                raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(finetune_trial, "DevScores", Interrupt)
        with pytest.raises(KeyboardInterrupt):
            finetune.run(config_of(checkpoint, tmp_path, "mrpc", output="broken", epochs=3))
    broken = finetune.run(config_of(checkpoint, tmp_path, "mrpc", output="broken", epochs=3))
    assert [row["loss"] for row in broken["history"]] == [row["loss"] for row in whole["history"]]
    models = [(tmp_path / name / "model" / "model.safetensors").read_bytes() for name in ("whole", "broken")]
    assert models[0] == models[1]


def test_seeds_and_search_report_best_mean_and_deviation(checkpoint, tmp_path):
    write_mrpc(tmp_path / "data")
    options = {"search_learning_rates": [1e-3, 1e-2], "search_batch_sizes": [4], "search_epochs": [1]}
    config = config_of(checkpoint, tmp_path, "mrpc", seeds=2, search=True, **options)
    figures = finetune.run(config)
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
    figures = finetune.run(config_of(checkpoint, tmp_path, "mrpc", epochs=9, learning_rate=1e-12, patience=2))
    assert len(figures["history"]) == 3


def test_lora_changes_kernels_and_leaves_a_plain_checkpoint(checkpoint, tmp_path):
    write_mrpc(tmp_path / "data")
    figures = finetune.run(config_of(checkpoint, tmp_path, "mrpc", epochs=1, learning_rate=1e-1, lora_rank=2))
    weights = {w.path: w.numpy() for w in kbi.BertEncoder.from_pretrained(tmp_path / "run" / "model").weights}
    before = {w.path: w.numpy() for w in kbi.BertEncoder.from_pretrained(checkpoint).weights}
    changed = {path for path in before if not np.array_equal(before[path], weights[path])}
    assert changed == {path for path in before if path.startswith("block_") and "kernel" in path} | {
        "pooler/kernel",
        "pooler/bias",
    }
    # The saved model predicts what the run scored.
    model = kbi.BertTextClassifier.from_pretrained(tmp_path / "run" / "model")
    lines = [json.loads(line) for line in (tmp_path / "run" / "predictions.jsonl").read_text().splitlines()]
    logits = model.predict(([row["text"] for row in lines], [row["text_pair"] for row in lines]), verbose=0)
    assert [model.class_names[place] for place in logits.argmax(-1)] == [row["predicted"] for row in lines]
    assert figures["examples"] == len(lines)


def test_frozen_layers_do_not_change(checkpoint, tmp_path):
    write_cola(tmp_path / "data")
    finetune.run(config_of(checkpoint, tmp_path, "cola", epochs=1, frozen_layers=1))
    weights = {w.path: w.numpy() for w in kbi.BertEncoder.from_pretrained(tmp_path / "run" / "model").weights}
    before = {w.path: w.numpy() for w in kbi.BertEncoder.from_pretrained(checkpoint).weights}
    changed = {path.split("/")[0] for path in before if not np.array_equal(before[path], weights[path])}
    assert changed == {"block_1", "pooler"}


def test_training_with_the_words_in_use_gives_the_whole_model(checkpoint, tmp_path):
    write_cola(tmp_path / "data")
    weights = []
    for name, trimmed in (("trimmed", True), ("whole", False)):
        options = {"output": name, "trim_vocabulary": trimmed, "learning_rate": 0.05, "epochs": 2}
        finetune.run(config_of(checkpoint, tmp_path, "cola", **options))
        weights.append(kbi.BertTextClassifier.from_pretrained(tmp_path / name / "model").weights)
    before = keras.ops.convert_to_numpy(kbi.BertEncoder.from_pretrained(checkpoint).token_embedding.embeddings)
    for one, other in zip(*weights, strict=True):
        values = [keras.ops.convert_to_numpy(weight) for weight in (one, other)]
        np.testing.assert_allclose(*values, atol=1e-5, err_msg=one.path)
    table = keras.ops.convert_to_numpy(weights[0][0])
    assert table.shape == before.shape and (table != before).all()


def test_class_weights_and_layer_decay_are_taken(checkpoint, tmp_path):
    write_ner(tmp_path / "data")
    options = {"class_weights": "balanced", "layer_decay": 0.8, "epochs": 1}
    assert finetune.run(config_of(checkpoint, tmp_path, "ner", **options))["sentences"] == 10


def test_features_of_a_frozen_encoder_are_trained_on(checkpoint, tmp_path):
    write_ner(tmp_path / "data")
    options = {"features": "weighted_sum_all", "units": 5}
    figures = finetune.run(config_of(checkpoint, tmp_path, "ner", epochs=3, learning_rate=3e-2, task_options=options))
    losses = [row["loss"] for row in figures["history"]]
    assert losses[2] < losses[1] < losses[0]
    assert (tmp_path / "run" / "model" / "model.keras").is_file()
    with pytest.raises(ValueError, match="has no SavedModel"):
        finetune.run(config_of(checkpoint, tmp_path, "ner", output="other", task_options=options, export=True))


@pytest.mark.parametrize("task", ["text_classification", "question_answering", "ner"])
def test_data_sets_of_the_hub_become_the_files_of_a_task(checkpoint, tmp_path, task):
    datasets = pytest.importorskip("datasets")
    labels = datasets.ClassLabel(names=["bad", "good"])
    tags = datasets.Sequence(datasets.ClassLabel(names=["O", "B-cat"]))
    answers = {"text": ["cat"], "answer_start": [4]}
    columns = {
        "text_classification": ({"text": SENTENCES, "label": [0, 1, 0, 1, 1]}, {"label": labels}),
        "question_answering": (
            {"id": list("abcde"), "question": SENTENCES, "context": [SENTENCES[0]] * 5, "answers": [answers] * 5},
            {},
        ),
        "ner": ({"tokens": [["the", "cat", "sat"]] * 5, "ner_tags": [[0, 1, 0]] * 5}, {"ner_tags": tags}),
    }
    values, features = columns[task]
    rows = datasets.Dataset.from_dict(values)
    for name, feature in features.items():
        rows = rows.cast_column(name, feature)
    for split in ("train", "validation"):
        rows.to_parquet(tmp_path / "set" / f"{split}.parquet")
    config = dataclasses.replace(config_of(checkpoint, tmp_path, task, epochs=1), data=f"datasets:{tmp_path / 'set'}")
    figures = finetune.run(config)
    assert figures["training_rows"] == 5 and figures["split"] == "dev"


def test_a_data_set_that_cannot_be_had_says_why(checkpoint, tmp_path):
    pytest.importorskip("datasets")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=r"datasets:.*empty cannot be had"):
        finetune.run(dataclasses.replace(config_of(checkpoint, tmp_path, "ner"), data=f"datasets:{tmp_path / 'empty'}"))


def test_a_set_of_the_hub_needs_no_validation_split_and_may_have_rows_without_labels(checkpoint, tmp_path, capsys):
    datasets = pytest.importorskip("datasets")
    tags = datasets.Sequence(datasets.ClassLabel(names=["DT", "NN", "VB"]))
    values = {"tokens": [["the", "cat", "sat"]] * 11, "pos_tags": [[0, 1, 2]] * 10 + [[0, 1, -1]]}
    rows = datasets.Dataset.from_dict(values).cast_column("pos_tags", tags)
    rows.to_parquet(tmp_path / "set" / "train.parquet")
    config = dataclasses.replace(config_of(checkpoint, tmp_path, "ner", epochs=1), data=f"datasets:{tmp_path / 'set'}")
    figures = finetune.run(config)
    assert (figures["training_rows"], figures["sentences"], figures["words"]) == (9, 1, 3)
    assert figures["accuracy"] in (0, pytest.approx(1 / 3), pytest.approx(2 / 3), 1) and "f1" not in figures
    printed = capsys.readouterr().out
    assert "train: 1 of 11 rows have no label" in printed and "1 of the 10 training rows become dev" in printed


def test_a_file_with_a_task_is_a_task(checkpoint, tmp_path):
    write_mrpc(tmp_path / "data")
    (tmp_path / "mine.py").write_text(
        "import dataclasses\nfrom keras_bert_impl.tasks import glue\n"
        "TASK = dataclasses.replace(glue.TASKS['mrpc'], name='mine', main_metric='accuracy')\n"
    )
    figures = finetune.run(config_of(checkpoint, tmp_path, str(tmp_path / "mine.py"), epochs=1))
    assert figures["task"] == "mine"


PLAIN_TASK = """
from keras_bert_impl.tasks import glue

class Plain:
    def __init__(self, task):
        self.task = task

    def __getattr__(self, part):
        if part == "task":
            raise AttributeError(part)
        return getattr(self.task, part)

TASK = Plain(glue.TASKS["mrpc"])
"""


def test_a_task_may_be_a_plain_object(checkpoint, tmp_path):
    write_mrpc(tmp_path / "data")
    file = tmp_path / "plain.py"
    file.write_text(PLAIN_TASK)
    assert finetune.run(config_of(checkpoint, tmp_path, str(file), epochs=1))["task"] == "mrpc"
    with pytest.raises(ValueError, match=r"plain\.py is no dataclass: it takes no task_options"):
        finetune.run(config_of(checkpoint, tmp_path, str(file), task_options={"main_metric": "accuracy"}))


def test_a_task_that_lacks_parts_is_refused_before_it_trains(checkpoint, tmp_path):
    (tmp_path / "part.py").write_text("class Part:\n    name = 'part'\n    splits = {}\n\nTASK = Part()\n")
    with pytest.raises(ValueError, match=r"TASK in .*part\.py lacks dev, test, main_metric.* submissions"):
        finetune.run(config_of(checkpoint, tmp_path, str(tmp_path / "part.py")))


def test_the_task_that_the_readme_shows_runs(checkpoint, tmp_path):
    readme = (pathlib.Path(finetune.__file__).parents[1] / "README.md").read_text()
    (code,) = [part.split("```")[0] for part in readme.split("```python\n")[1:] if part.startswith("# sms_spam.py")]
    (tmp_path / "sms_spam.py").write_text(code)
    lines = [f"{'spam' if n % 2 else 'ham'}\t{SENTENCES[n % 5]}" for n in range(20)]
    write_lines(tmp_path / "data" / "SMSSpamCollection", lines)
    figures = finetune.run(config_of(checkpoint, tmp_path, str(tmp_path / "sms_spam.py"), epochs=1))
    assert figures["training_rows"] == 18 and figures["examples"] == 2


def test_glue_runs_what_is_there_and_prints_the_table(checkpoint, tmp_path, capsys):
    write_mrpc(tmp_path / "data" / "MRPC")
    write_cola(tmp_path / "data" / "CoLA")
    finetune.run(config_of(checkpoint, tmp_path, "glue", epochs=1))
    table = (tmp_path / "run" / "table.txt").read_text()
    assert "2 of 9" in table and "79.6" in table and table.splitlines()[1] in capsys.readouterr().out
    assert sorted(path.name for path in (tmp_path / "run" / "submission").iterdir()) == ["CoLA.tsv", "MRPC.tsv"]


def test_malformed_rows_are_skipped_and_counted_or_stop(checkpoint, tmp_path, command, capsys):
    write_mrpc(tmp_path / "data")
    with (tmp_path / "data" / "train.tsv").open("a") as file:
        file.write("1\tonly three\tcolumns\n")
    arguments = ("--task", "mrpc", "--data", tmp_path / "data", "--model", checkpoint, "--output", tmp_path / "run")
    quick = ("--epochs", "1", "--jit-compile", "off", "--sequence-length", "40")
    message = command(finetune.FinetuneConfig, finetune.run, *arguments, *quick)
    assert "train.tsv line 12: 3 columns, expected 5: '1\\tonly three\\tcolumns'" in message
    assert not (tmp_path / "run").exists()
    assert command(finetune.FinetuneConfig, finetune.run, *arguments, *quick, "--bad-rows", "skip") is None
    printed = capsys.readouterr().out
    assert "train: 1 malformed rows left out" in printed and "train.tsv line 12" in printed


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"task": "mrcp"}, "no task 'mrcp'; known are .*mrpc"),
        ({"task": "mrpc", "task_options": {"stride": 3}}, "no option 'stride'"),
        ({"task": "mrpc", "class_weights": {"similar": 2.0}}, "'similar', none of the classes not_equivalent"),
        ({"task": "mrpc", "frozen_layers": 3}, "the encoder has 2"),
        ({"task": "mrpc", "text_column": "sentence"}, "text_column 'sentence' is for tables of your own"),
    ],
)
def test_what_a_task_does_not_have_is_refused(checkpoint, tmp_path, options, complaint):
    write_mrpc(tmp_path / "data")
    with pytest.raises(ValueError, match=complaint):
        finetune.run(config_of(checkpoint, tmp_path, **options))
    assert not (tmp_path / "run").exists()


def test_a_main_figure_that_there_is_not_is_named(checkpoint, tmp_path):
    write_mrpc(tmp_path / "data")
    with pytest.raises(ValueError, match="main_metric 'f2' is no figure of mrpc: it has examples, accuracy, f1"):
        finetune.run(config_of(checkpoint, tmp_path, "mrpc", epochs=1, task_options={"main_metric": "f2"}))


def test_layer_rates_fall_from_the_top_block_to_the_embeddings():
    paths = ["token_embedding/embeddings", "block_0/output/kernel", "block_1/output/bias", "pooler/kernel", "x/kernel"]
    assert kbi.optimization.layer_rates(paths, 0.5) == [0.25, 0.5, 1.0, 1.0, 1.0]


def test_a_lower_layer_takes_smaller_steps():
    inputs = keras.Input((1,))
    layers = [keras.layers.Dense(1, kernel_initializer="zeros", name=name) for name in ("block_0", "block_1")]
    model = keras.Model(inputs, layers[0](inputs) + layers[1](inputs))
    optimizer = kbi.optimization.BertAdamW(0.1, weight_decay=0.0, layer_decay=0.25)
    model.compile(optimizer=optimizer, loss="mse")
    model.fit(np.ones((4, 1)), np.ones((4, 1)), verbose=0)
    kernels = [float(keras.ops.convert_to_numpy(layer.kernel)[0, 0]) for layer in layers]
    assert kernels == pytest.approx([0.025, 0.1], rel=1e-3)


def test_a_run_may_go_on_on_other_devices(tmp_path):
    config = finetune.FinetuneConfig("data", "model", str(tmp_path / "run"), epochs=2)
    finetune.open_run(config.output, config)
    finetune.check_run(config.output, dataclasses.replace(config, distribution="mirrored", devices=2))
    with pytest.raises(ValueError, match="epochs 2 there, 3 here"):
        finetune.check_run(config.output, dataclasses.replace(config, epochs=3))
