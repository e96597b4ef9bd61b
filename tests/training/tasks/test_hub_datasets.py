"""Data sets of the `datasets` library, made in the tests, become the files that tasks read."""

import json

import pytest
from tiers import once

from keras_bert_training.tasks.hub_datasets import write_files
from keras_bert_training.tasks.question_answering import TASKS as QUESTION_TASKS
from keras_bert_training.tasks.tables import BadRows

pytestmark = once

datasets = pytest.importorskip("datasets")
CLASSES = datasets.ClassLabel(names=["no", "maybe", "yes"])


def table(labels, feature=CLASSES):
    """Rows with the texts "0", "1", ... and these labels; None for a table without labels."""
    texts = [str(number) for number in range(len(labels))]
    features = datasets.Features({"text": datasets.Value("string"), "label": feature})
    return datasets.Dataset.from_dict({"text": texts, "label": labels}, features=features)


def tokens(**columns):
    """Sentences of two words with columns of tags."""
    count = len(next(iter(columns.values())))
    return datasets.Dataset.from_dict({"tokens": [["a", "cat"]] * count, **columns})


def written(folder, name):
    return [json.loads(line) for line in (folder / name).read_text().splitlines()]


def test_rows_without_a_label_are_left_out_and_counted(tmp_path, capsys):
    # SNLI marks rows without agreement with -1; one of them must not make the split unlabelled.
    parts = {"train": table([0, -1, 2, None, 1]), "validation": table([2, 0]), "test": table([-1, 1])}
    write_files(datasets.DatasetDict(parts), tmp_path)
    train = [{"text": "0", "label": "no"}, {"text": "2", "label": "yes"}, {"text": "4", "label": "maybe"}]
    assert written(tmp_path, "train.jsonl") == train
    assert written(tmp_path, "test.jsonl") == [{"text": "1", "label": "maybe"}]
    printed = capsys.readouterr().out
    assert "train: 2 of 5 examples have no label" in printed and "test: 1 of 2 examples have no label" in printed
    assert "validation" not in printed


@pytest.mark.parametrize(
    ("hidden", "feature"),
    [(-1, CLASSES), (None, CLASSES), (-100, datasets.Value("int64"))],
)
def test_a_test_split_whose_labels_are_all_hidden_is_unlabelled(tmp_path, hidden, feature):
    labelled = table([0, 2] if feature is CLASSES else [-1, 2], feature)  # among other numbers, -1 is a number
    parts = {"train": labelled, "validation": labelled, "test": table([hidden] * 2, feature)}
    write_files(datasets.DatasetDict(parts), tmp_path)
    assert written(tmp_path, "test.jsonl") == [{"text": "0"}, {"text": "1"}]
    assert feature is CLASSES or [row["label"] for row in written(tmp_path, "train.jsonl")] == [-1, 2]


def test_a_set_without_validation_gives_a_tenth_of_train(tmp_path, capsys):
    labels = [0] * 30 + [2] * 30  # sorted by label, as IMDB's
    write_files(datasets.DatasetDict({"train": table(labels), "test": table([1])}), tmp_path)
    train, dev = written(tmp_path, "train.jsonl"), written(tmp_path, "validation.jsonl")
    assert sorted(int(row["text"]) for row in train + dev) == list(range(60)) and len(dev) == 6
    assert {row["label"] for row in dev} == {"no", "yes"}
    assert "no validation split with labels: 6 of the 60 training examples become dev" in capsys.readouterr().out
    (tmp_path / "again").mkdir()
    write_files(datasets.DatasetDict({"train": table(labels)}), tmp_path / "again")
    assert written(tmp_path / "again", "validation.jsonl") == dev


def test_a_validation_split_without_labels_is_none(tmp_path):
    write_files(datasets.DatasetDict({"train": table([0, 1, 2]), "validation": table([-1, -1])}), tmp_path)
    assert len(written(tmp_path, "train.jsonl")) == 2
    assert len(written(tmp_path, "validation.jsonl")) == 1 and "label" in written(tmp_path, "validation.jsonl")[0]


def questions(answers, contexts):
    rows = {
        "id": [str(number) for number in range(len(answers))],
        "question": ["what"] * len(answers),
        "context": contexts,
        "answers": [{"text": texts, "answer_start": [0] * len(texts)} for texts in answers],
    }
    return datasets.Dataset.from_dict(rows)


def test_questions_are_split_by_context_and_unanswered_tests_have_no_labels(tmp_path):
    contexts = [f"cat {number // 3}" for number in range(30)]
    answers = [["cat"], ["cat"], []] * 10
    test = questions([[], []], ["cat", "dog"]).cast_column("answers", questions(answers, contexts).features["answers"])
    write_files(datasets.DatasetDict({"train": questions(answers, contexts), "test": test}), tmp_path)
    read = QUESTION_TASKS["question_answering"].read
    parts = {split: read(tmp_path, split, BadRows()) for split in ("train", "dev", "test")}
    of = {split: {question.context for question in part.questions} for split, part in parts.items()}
    assert len(of["dev"]) == 1 and len(of["train"]) == 9 and not of["dev"] & of["train"]
    assert parts["train"].with_impossible and parts["test"].labels is None


def test_tags_of_the_column_asked_for_become_labels(tmp_path):
    tags = datasets.Sequence(datasets.ClassLabel(names=["DT", "NN"]))
    rows = tokens(ner_tags=[["O", "B-X"]] * 2, pos_tags=[[0, 1]] * 2).cast_column("pos_tags", tags)
    write_files(datasets.DatasetDict({"train": rows, "validation": rows}), tmp_path)
    assert (tmp_path / "train.txt").read_text() == "a\tO\ncat\tB-X\n\n" * 2
    write_files(datasets.DatasetDict({"train": rows, "validation": rows}), tmp_path, "pos_tags")
    assert (tmp_path / "dev.txt").read_text() == "a\tDT\ncat\tNN\n\n" * 2


def test_sentences_with_a_word_without_tag_are_left_out(tmp_path, capsys):
    # By Python's rules, tag -1 would be the last one, "NN".
    tags = datasets.Sequence(datasets.ClassLabel(names=["DT", "NN"]))
    rows, hidden = (
        tokens(tags=numbers).cast_column("tags", tags) for numbers in ([[0, 1], [0, -1], [-100, 1]], [[-1, -1]])
    )
    write_files(datasets.DatasetDict({"train": rows, "validation": rows, "test": hidden}), tmp_path)
    assert (tmp_path / "train.txt").read_text() == "a\tDT\ncat\tNN\n\n"
    assert "train: 2 of 3 examples have no label" in capsys.readouterr().out
    assert not (tmp_path / "test.txt").exists()
