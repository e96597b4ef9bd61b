"""Options that name a column, a file, a class or the like: a name that is not there is one line that lists what is."""

import json

import pytest
from made_runs import write_checkpoint
from tiers import once

import keras_bert_impl as kbi
from keras_bert_training.cli import COMMANDS, options_of, run_of
from keras_bert_training.runs import main

pytestmark = once

FOUND = "found text, label"
FINETUNE = "finetune --data rows --model bert --output out --epochs 1"
TABLES = FINETUNE.replace("rows", "tables")
CASES = {
    "prepare-data --output out --config nothing": "nothing is neither a file nor a recipe of the package; its",
    f"{TABLES} --label_column class": f"no column 'class', {FOUND}",
    f'{FINETUNE} --class_weights {{"c":2}}': "'c', which is not one of the classes a, b",
    "fill-mask --model classes --text [MASK]": "which is for classify or embed, not for fill_mask",
    "predict --model classes --input tables/train.csv --text_column body": f"no column 'body', {FOUND}",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Tables of two classes, a checkpoint, and a classifier."""
    folder = tmp_path_factory.mktemp("folder")
    rows = [("the cat sat .", name) for name in "abab"]
    for name in ("rows", "tables"):
        (folder / name).mkdir()
    for split in ("train", "validation", "test"):
        lines = "".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in rows)
        (folder / "rows" / f"{split}.jsonl").write_text(lines)
        lines = "".join(f"{text},{label}\n" for text, label in rows)
        (folder / "tables" / f"{split}.csv").write_text(f"text,label\n{lines}")
    write_checkpoint(folder / "bert")
    encoder = kbi.encoder_from_pretrained(folder / "bert")
    tokenizer = kbi.WordPieceTokenizer.from_pretrained(folder / "bert")
    kbi.TextClassifier(encoder, 2, class_names=["a", "b"], tokenizer=tokenizer).save_pretrained(folder / "classes")
    return folder


@pytest.mark.parametrize("case", CASES)
def test_a_name_that_is_not_there_is_one_line_that_lists_what_is(folder, monkeypatch, case):
    monkeypatch.chdir(folder)
    name, *arguments = case.split()
    with pytest.raises(SystemExit) as ended:
        main(options_of(name), run_of(name), arguments, name, COMMANDS[name].positional)
    assert CASES[case] in ended.value.code and "\n" not in ended.value.code
    assert not (folder / "out").exists()
