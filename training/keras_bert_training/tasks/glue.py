"""The GLUE benchmark (Wang et al. 2019): nine tasks in the layouts of the official distribution.

Test rows have no labels; their predictions are written in the format of gluebenchmark.com.
"""

import pathlib

from keras_bert_training.tasks.labelled_texts import Split, examples_of, read_split
from keras_bert_training.tasks.tables import read_table
from keras_bert_training.tasks.text_classification import TextClassification
from keras_bert_training.tasks.text_regression import TextRegression


def splits_of(text, text_pair=None, label="label"):
    """The splits train.tsv, dev.tsv and test.tsv with a header, the last one without labels."""
    columns = {"text": text, "text_pair": text_pair, "label": label}
    columns = {ours: theirs for ours, theirs in columns.items() if theirs is not None}
    unlabelled = {ours: theirs for ours, theirs in columns.items() if ours != "label"}
    return {
        "train": Split("train.tsv", columns),
        "dev": Split("dev.tsv", columns),
        "test": Split("test.tsv", unlabelled),
    }


# The official files of CoLA have no header: source, label, the original author's mark, sentence; but test.tsv has one.
COLA_COLUMNS = {"text": 3, "label": 1}
COLA_SPLITS = {
    "train": Split("train.tsv", COLA_COLUMNS),
    "dev": Split("dev.tsv", COLA_COLUMNS),
    "test": Split("test.tsv", {"text": "sentence"}),
}

# label1 to label5 are those of single annotators; gold_label is their majority.
MNLI_COLUMNS = {"text": "sentence1", "text_pair": "sentence2", "label": "gold_label"}
MNLI_TEST_COLUMNS = {"text": "sentence1", "text_pair": "sentence2"}
MNLI_SPLITS = {
    "train": Split("train.tsv", MNLI_COLUMNS),
    "dev_matched": Split("dev_matched.tsv", MNLI_COLUMNS),
    "dev_mismatched": Split("dev_mismatched.tsv", MNLI_COLUMNS),
    "test_matched": Split("test_matched.tsv", MNLI_TEST_COLUMNS),
    "test_mismatched": Split("test_mismatched.tsv", MNLI_TEST_COLUMNS),
    # download_glue_data.py puts this file into a folder beside MNLI's.
    "diagnostic": Split("diagnostic.tsv", MNLI_TEST_COLUMNS, elsewhere="../diagnostic/diagnostic.tsv"),
}

MRPC_SPLITS = splits_of("#1 String", "#2 String", "Quality")
MRPC_SPLITS["test"] = MRPC_SPLITS["test"]._replace(elsewhere="msr_paraphrase_test.txt")
MRPC_COLUMNS = {"id": "#1 ID", "id_pair": "#2 ID", "text": "#1 String", "text_pair": "#2 String", "label": "Quality"}


def read_mrpc(directory, splits, split, bad_rows):
    """Reads a split from GLUE's train.tsv, dev.tsv and test.tsv, or from the MSR files that GLUE was made of.

    msr_paraphrase_train.txt holds train and dev; dev_ids.tsv lists the pairs of ids that belong to dev, one a line. The
    labels in msr_paraphrase_test.txt are not read: GLUE's test set has none.
    """
    directory = pathlib.Path(directory)
    if split == "test" or (directory / splits[split].file).is_file():
        return read_split(directory, splits, split, bad_rows)
    source, ids_file = directory / "msr_paraphrase_train.txt", directory / "dev_ids.tsv"
    dev_ids = {tuple(line.split()) for line in ids_file.read_text(encoding="utf-8-sig").splitlines() if line.strip()}
    rows = read_table(source, MRPC_COLUMNS, bad_rows)
    return examples_of(row for row in rows if ((row[1]["id"], row[1]["id_pair"]) in dev_ids) == (split == "dev"))


ENTAILMENT = {"entailment": "entailment", "not_entailment": "not_entailment"}
MNLI_CLASSES = {name: name for name in ("contradiction", "entailment", "neutral")}

# The paper's figures: GLUE test server, table 1 of Devlin et al. 2019; F1 for MRPC and QQP, Spearman for STS-B,
# Matthews for CoLA, accuracy for the others: (BERT-base, BERT-large). The paper leaves WNLI out.
PAPER = {
    "mnli": {"mnli_matched": (84.6, 86.7), "mnli_mismatched": (83.4, 85.9)},
    "qqp": {"qqp": (71.2, 72.1)},
    "qnli": {"qnli": (90.5, 92.7)},
    "sst-2": {"sst-2": (93.5, 94.9)},
    "cola": {"cola": (52.1, 60.5)},
    "sts-b": {"sts-b": (85.8, 86.5)},
    "mrpc": {"mrpc": (88.9, 89.3)},
    "rte": {"rte": (66.4, 70.1)},
}
PAPER_AVERAGE = (79.6, 82.1)


def paper_of(name, metric):
    """The paper's rows for a task with a single figure."""
    base, large = PAPER[name][name]
    return {"BERT-base": {metric: base}, "BERT-large": {metric: large}}


TASKS = {
    "cola": TextClassification(
        "cola",
        COLA_SPLITS,
        main_metric="matthews_correlation",
        class_names={"0": "unacceptable", "1": "acceptable"},
        submissions={"test": "CoLA.tsv"},
        paper=paper_of("cola", "matthews_correlation"),
    ),
    "sst-2": TextClassification(
        "sst-2",
        splits_of("sentence"),
        class_names={"0": "negative", "1": "positive"},
        submissions={"test": "SST-2.tsv"},
        paper=paper_of("sst-2", "accuracy"),
    ),
    "mrpc": TextClassification(
        "mrpc",
        MRPC_SPLITS,
        main_metric="f1",
        class_names={"0": "not_equivalent", "1": "equivalent"},
        submissions={"test": "MRPC.tsv"},
        paper=paper_of("mrpc", "f1"),
        read_labelled=read_mrpc,
    ),
    "sts-b": TextRegression(
        "sts-b",
        splits_of("sentence1", "sentence2", "score"),
        lowest=0.0,
        highest=5.0,
        submissions={"test": "STS-B.tsv"},
        paper=paper_of("sts-b", "spearman"),
    ),
    "qqp": TextClassification(
        "qqp",
        splits_of("question1", "question2", "is_duplicate"),
        main_metric="f1",
        class_names={"0": "not_duplicate", "1": "duplicate"},
        submissions={"test": "QQP.tsv"},
        paper=paper_of("qqp", "f1"),
        # The official training file holds a few rows with columns missing; every published figure leaves them out.
        bad_rows="skip",
    ),
    "mnli": TextClassification(
        "mnli",
        MNLI_SPLITS,
        dev=("dev_matched", "dev_mismatched"),
        test=("test_matched", "test_mismatched", "diagnostic"),
        class_names=MNLI_CLASSES,
        submissions={"test_matched": "MNLI-m.tsv", "test_mismatched": "MNLI-mm.tsv", "diagnostic": "AX.tsv"},
        paper={"BERT-base": {"accuracy": 84.6}, "BERT-large": {"accuracy": 86.7}},
    ),
    "qnli": TextClassification(
        "qnli",
        splits_of("question", "sentence"),
        class_names=ENTAILMENT,
        submissions={"test": "QNLI.tsv"},
        paper=paper_of("qnli", "accuracy"),
    ),
    "rte": TextClassification(
        "rte",
        splits_of("sentence1", "sentence2"),
        class_names=ENTAILMENT,
        submissions={"test": "RTE.tsv"},
        paper=paper_of("rte", "accuracy"),
    ),
    "wnli": TextClassification(
        "wnli",
        splits_of("sentence1", "sentence2"),
        class_names={"0": "not_entailment", "1": "entailment"},
        submissions={"test": "WNLI.tsv"},
    ),
}


def glue_table(figures):
    """The lines of GLUE's table: a row for each figure, ours in percent beside the paper's, and the average.

    Args:
        figures: task name -> {dev split: its figures}, for the tasks that were run.

    The average is that of the paper, over nine columns (MNLI's two sets count as one each, WNLI does not count), and is
    given only if all of them are there. The paper's figures are from the test server, ours from dev: they differ by a
    point or two.
    """
    lines = [f"{'task':<17}{'metric':<22}{'ours (dev)':>10}{'BERT-base':>11}{'BERT-large':>11}"]
    ours = []
    for name, rows in PAPER.items():
        task = TASKS[name]
        for split, (row, (base, large)) in zip(task.dev, rows.items(), strict=True):
            value = figures.get(name, {}).get(split, {}).get(task.main_metric)
            ours.append(value)
            shown = "-" if value is None else f"{100 * value:.1f}"
            lines.append(f"{row:<17}{task.main_metric:<22}{shown:>10}{base:>11}{large:>11}")
    complete = None not in ours
    average = f"{100 * sum(ours) / len(ours):.1f}" if complete else f"{9 - ours.count(None)} of 9"
    lines.append(f"{'average':<39}{average:>10}{PAPER_AVERAGE[0]:>11}{PAPER_AVERAGE[1]:>11}")
    return lines
