import numpy as np
import pytest
from tasks_data import DATA, needs_data
from tiers import once

from keras_bert_training.tasks.endings import TASKS, TextsWithEndings
from keras_bert_training.tasks.tables import BadRows

pytestmark = once

SWAG = """,video-id,fold-ind,startphrase,sent1,sent2,gold-source,ending0,ending1,ending2,ending3,label
0,anetv,1,"He sits, then. He","He sits, then.",He,gold,runs.,"says ""no"".",sleeps.,flies.,1
"""


def test_swag_joins_the_begin_of_the_second_sentence_to_each_ending(tmp_path):
    (tmp_path / "train.csv").write_text(SWAG)
    examples = TASKS["swag"].read(tmp_path, "train", BadRows())
    endings = ["He runs.", 'He says "no".', "He sleeps.", "He flies."]
    assert examples == TextsWithEndings(["He sits, then."], [endings], [1])


def test_a_test_file_may_have_no_labels(tmp_path):
    lines = [",".join(line.split(",")[:-1]) for line in SWAG.splitlines()]
    (tmp_path / "test.csv").write_text("\n".join(lines) + "\n")
    assert TASKS["swag"].read(tmp_path, "test", BadRows()).labels is None


def test_a_label_that_is_no_ending_is_malformed(tmp_path):
    rows = ["o\tHe\ta\tb\tc\td\t4", "o\tShe\ta\tb\tc\td\t0"]
    (tmp_path / "train.tsv").write_text("\n".join(rows) + "\n")
    bad_rows = BadRows("skip")
    assert TASKS["codah"].read(tmp_path, "train", bad_rows).texts == ["She"]
    assert bad_rows.messages == [f"{tmp_path}/train.tsv line 1: the label is not a number below 4: '4'"]


@needs_data
def test_codah_is_read_whole():
    folder = DATA / "multiple_choice"
    read = TASKS["codah"].read
    splits = [read(folder / "CODAH" / "fold_0", split, BadRows()) for split in ("train", "dev", "test")]
    assert [len(examples.texts) for examples in splits] == [1665, 556, 555]


def test_choices_are_scored_by_text(small_tokenizer):
    examples = TextsWithEndings(["the cat", "a dog"], [["sat", "ran on"], ["in rain", "is bad"]], [1, 0])
    rows = TASKS["codah"].featurize(small_tokenizer, examples, None, 9)
    scores = TASKS["codah"].score(examples, rows, np.array([[0.1, 0.9], [0.2, 0.7]]), None)
    assert scores["accuracy"] == 0.5
    with pytest.raises(ValueError, match="The scores of example 1"):
        TASKS["codah"].score(examples, rows, np.array([[0.1, 0.9], [np.nan, 0.7]]), None)
