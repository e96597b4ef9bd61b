"""The GLUE benchmark (Wang et al. 2019): nine tasks in the layouts of the official distribution.

Test rows have no labels; their predictions are written in the format of gluebenchmark.com.
"""

import pathlib

from keras_bert_training.tasks.labelled_texts import Split, examples_of, read_split
from keras_bert_training.tasks.tables import read_table
from keras_bert_training.tasks.text_classification import TextClassification
from keras_bert_training.tasks.text_regression import TextRegression


def splits_of(text, text_pair=None, label="label", names=("train", "dev", "test")):
    """Splits by their names, .tsv files with a header; those of test have no labels."""
    columns = {"text": text, "text_pair": text_pair, "label": label}
    columns = {ours: theirs for ours, theirs in columns.items() if theirs is not None}
    unlabelled = {ours: theirs for ours, theirs in columns.items() if ours != "label"}
    return {name: Split(f"{name}.tsv", unlabelled if name.startswith("test") else columns) for name in names}


# The official files of CoLA have no header: source, label, the original author's mark, sentence; but test.tsv has one.
COLA_SPLITS = {name: Split(f"{name}.tsv", {"text": 3, "label": 1}) for name in ("train", "dev")}
COLA_SPLITS["test"] = Split("test.tsv", {"text": "sentence"})

MNLI_DEV, MNLI_TEST = ("dev_matched", "dev_mismatched"), ("test_matched", "test_mismatched")
# label1 to label5 are those of single annotators; gold_label is their majority.
MNLI_SPLITS = splits_of("sentence1", "sentence2", "gold_label", ("train", *MNLI_DEV, *MNLI_TEST))
# download_glue_data.py puts this file into a folder beside MNLI's.
MNLI_SPLITS["diagnostic"] = Split(
    "diagnostic.tsv", MNLI_SPLITS["test_matched"].columns, elsewhere="../diagnostic/diagnostic.tsv"
)

MRPC_SPLITS = splits_of("#1 String", "#2 String", "Quality")
MRPC_SPLITS["test"] = MRPC_SPLITS["test"]._replace(elsewhere="msr_paraphrase_test.txt")
MRPC_COLUMNS = {"id": "#1 ID", "id_pair": "#2 ID", **MRPC_SPLITS["train"].columns}


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


def folder_of(name):
    """The folder of a task in the official distribution, which is also the name of its submission."""
    return "CoLA" if name == "cola" else name.upper()


def glue_task(kind, name, splits, metric, **more):
    """A task of the benchmark, with one file to submit unless `more` has others."""
    base, large = next(iter(PAPER.get(name, {}).values()), (None, None))
    paper = {"BERT-base": {metric: base}, "BERT-large": {metric: large}} if name in PAPER else {}
    options = {"main_metric": metric, "submissions": {"test": f"{folder_of(name)}.tsv"}, "paper": paper, **more}
    return kind(name, splits, **options)


def classification(name, splits, classes, metric="accuracy", **more):
    """A task of classes: label in the files -> name of the class."""
    return glue_task(TextClassification, name, splits, metric, class_names=classes, **more)


ENTAILMENT = {name: name for name in ("entailment", "not_entailment")}
MNLI_CLASSES = {name: name for name in ("contradiction", "entailment", "neutral")}
ALL = (
    classification("cola", COLA_SPLITS, {"0": "unacceptable", "1": "acceptable"}, "matthews_correlation"),
    classification("sst-2", splits_of("sentence"), {"0": "negative", "1": "positive"}),
    classification("mrpc", MRPC_SPLITS, {"0": "not_equivalent", "1": "equivalent"}, "f1", read_labelled=read_mrpc),
    glue_task(
        TextRegression,
        "sts-b",
        splits_of("sentence1", "sentence2", "score"),
        "spearman",
        lowest=0.0,
        highest=5.0,
    ),
    # The official training file holds a few rows with columns missing; every published figure leaves them out.
    classification(
        "qqp",
        splits_of("question1", "question2", "is_duplicate"),
        {"0": "not_duplicate", "1": "duplicate"},
        "f1",
        bad_rows="skip",
    ),
    classification(
        "mnli",
        MNLI_SPLITS,
        MNLI_CLASSES,
        dev=MNLI_DEV,
        test=(*MNLI_TEST, "diagnostic"),
        submissions={"test_matched": "MNLI-m.tsv", "test_mismatched": "MNLI-mm.tsv", "diagnostic": "AX.tsv"},
    ),
    classification("qnli", splits_of("question", "sentence"), ENTAILMENT),
    classification("rte", splits_of("sentence1", "sentence2"), ENTAILMENT),
    classification("wnli", splits_of("sentence1", "sentence2"), {"0": "not_entailment", "1": "entailment"}),
)
TASKS = {task.name: task for task in ALL}


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
