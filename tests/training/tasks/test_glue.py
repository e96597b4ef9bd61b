import shutil

import pytest
from tasks_data import DATA, needs_data
from tiers import once

from keras_bert_training import finetuning_task
from keras_bert_training.tasks import glue
from keras_bert_training.tasks.labelled_texts import LabelledTexts, in_order
from keras_bert_training.tasks.tables import BadRows
from keras_bert_training.tasks.text_classification import TextClassification

pytestmark = once

# Rows in train, dev and test, from Wang et al. 2019; for MNLI and its variants, from the official files.
SIZES = {
    "cola": ("CoLA", 8551, 1043, 1063),
    "sst-2": ("SST-2", 67349, 872, 1821),
    "mrpc": ("MRPC", 3668, 408, 1725),
    "sts-b": ("STS-B", 5749, 1500, 1379),
    "rte": ("RTE", 2490, 277, 3000),
    "wnli": ("WNLI", 635, 71, 146),
}


@needs_data
@pytest.mark.parametrize("name", SIZES)
def test_official_files_are_read_whole(name):
    folder, *sizes = SIZES[name]
    task = glue.TASKS[name]
    splits = [task.read(DATA / "glue" / folder, split, BadRows("stop")) for split in ("train", "dev", "test")]
    assert [len(examples.texts) for examples in splits] == sizes
    assert [examples.labels is None for examples in splits] == [False, False, True]
    assert all(text.strip() for examples in splits for text in examples.texts)


@needs_data
def test_mrpc_is_the_same_from_either_distribution(tmp_path):
    for name in ("msr_paraphrase_train.txt", "msr_paraphrase_test.txt", "dev_ids.tsv"):
        shutil.copy(DATA / "glue" / "MRPC" / name, tmp_path)
    task = glue.TASKS["mrpc"]
    for split in ("train", "dev", "test"):
        assert task.read(tmp_path, split, BadRows()) == task.read(DATA / "glue" / "MRPC", split, BadRows())


def write(path, header, rows):
    path.write_text("\n".join("\t".join(map(str, row)) for row in [header, *rows]) + "\n")


def test_mnli_reads_both_sets_and_the_gold_label_not_the_annotators(tmp_path):
    parses = [f"sentence{n}_{kind}" for kind in ("binary_parse", "parse") for n in (1, 2)]
    header = ["index", "promptID", "pairID", "genre", *parses, "sentence1", "sentence2"]
    before = [0, 1, "1n", "fiction", "(", "(", "(", "("]
    train = [*header, "label1", "gold_label"]
    write(tmp_path / "train.tsv", train, [[*before, 'say "', "b", "neutral", "entailment"]])
    dev = [*header, *(f"label{n}" for n in range(1, 6)), "gold_label"]
    row = [*before, "c", "d", *["neutral"] * 5, "contradiction"]
    for name in ("dev_matched", "dev_mismatched"):
        write(tmp_path / f"{name}.tsv", dev, [row])
    write(tmp_path / "test_matched.tsv", header, [[*before, "e", "f"]])
    task = glue.TASKS["mnli"]
    assert task.read(tmp_path, "train", BadRows()) == LabelledTexts(['say "'], ["b"], ["entailment"])
    for split in task.dev:
        assert task.read(tmp_path, split, BadRows()) == LabelledTexts(["c"], ["d"], ["contradiction"])
    assert task.read(tmp_path, "test_matched", BadRows()) == LabelledTexts(["e"], ["f"], None)


def test_the_diagnostic_file_is_found_where_the_download_script_puts_it(tmp_path):
    header, row = ["index", "sentence1", "sentence2"], [0, "a", "b"]
    task = glue.TASKS["mnli"]
    (tmp_path / "MNLI").mkdir()
    assert not finetuning_task.file_of(task, "diagnostic", tmp_path / "MNLI").is_file()
    (tmp_path / "diagnostic").mkdir()
    write(tmp_path / "diagnostic" / "diagnostic.tsv", header, [row])
    assert finetuning_task.file_of(task, "diagnostic", tmp_path / "MNLI").is_file()
    assert task.read(tmp_path / "MNLI", "diagnostic", BadRows()) == LabelledTexts(["a"], ["b"], None)
    write(tmp_path / "MNLI" / "diagnostic.tsv", header, [[0, "c", "d"]])  # its own folder comes first
    assert task.read(tmp_path / "MNLI", "diagnostic", BadRows()) == LabelledTexts(["c"], ["d"], None)


def test_whole_numbers_are_classes_in_the_order_of_their_values():
    train = LabelledTexts(list("abcde"), None, ["10", "2", "1", "0", "2"])
    assert TextClassification("mine", {}).find_class_names(train) == ["0", "1", "2", "10"]
    assert in_order(["b", "10", "a", "9"]) == ["10", "9", "a", "b"] and in_order(["1", "-1"]) == ["-1", "1"]


def test_qqp_leaves_out_its_broken_rows(tmp_path):
    header = ["id", "qid1", "qid2", "question1", "question2", "is_duplicate"]
    write(tmp_path / "train.tsv", header, [[1, 2, 3, 'What is "x', "Why?", 0], [4, 5, 6, "broken"]])
    bad_rows = BadRows(glue.TASKS["qqp"].bad_rows)
    examples = glue.TASKS["qqp"].read(tmp_path, "train", bad_rows)
    assert examples == LabelledTexts(['What is "x'], ["Why?"], ["not_duplicate"])
    assert len(bad_rows.messages) == 1 and "line 3" in bad_rows.messages[0]


def test_a_label_of_another_task_is_named(tmp_path):
    write(tmp_path / "dev.tsv", ["sentence", "label"], [["fine", "entailment"]])
    with pytest.raises(ValueError, match="label 'entailment' is unknown; known are 0, 1"):
        glue.TASKS["sst-2"].read(tmp_path, "dev", BadRows())


def test_a_similarity_that_is_no_number_is_a_malformed_row(tmp_path):
    rows = [["a", "b", "2.5"], ["c", "d", "high"], ["e", "f", "nan"]]
    write(tmp_path / "dev.tsv", ["sentence1", "sentence2", "score"], rows)
    bad_rows = BadRows("skip")
    assert glue.TASKS["sts-b"].read(tmp_path, "dev", bad_rows) == LabelledTexts(["a"], ["b"], [2.5])
    assert len(bad_rows.messages) == 2 and "'high'" in bad_rows.messages[0]


def test_submissions_have_the_official_format(tmp_path):
    glue.TASKS["rte"].write_submission(tmp_path, "test", [[0, 1], [2, 1]], ["entailment", "not_entailment"])
    assert (tmp_path / "RTE.tsv").read_text() == "index\tprediction\n0\tnot_entailment\n1\tentailment\n"
    glue.TASKS["cola"].write_submission(tmp_path, "test", [[0, 1]], ["unacceptable", "acceptable"])
    assert (tmp_path / "CoLA.tsv").read_text() == "index\tprediction\n0\t1\n"
    glue.TASKS["sts-b"].write_submission(tmp_path, "test", [[5.7], [-1.0], [2.34567]], None)
    assert (tmp_path / "STS-B.tsv").read_text() == "index\tprediction\n0\t5.000\n1\t0.000\n2\t2.346\n"


def test_the_table_averages_only_what_is_complete():
    figures = {
        name: {split: {glue.TASKS[name].main_metric: 0.5} for split in glue.TASKS[name].dev} for name in glue.PAPER
    }
    assert glue.glue_table(figures)[-1].split() == ["average", "50.0", "79.6", "82.1"]
    del figures["rte"]
    assert glue.glue_table(figures)[-1].split() == ["average", "8", "of", "9", "79.6", "82.1"]
