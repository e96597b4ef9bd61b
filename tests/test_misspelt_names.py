"""Options that name a column, a file, a class or the like: a name that is not there is one line that lists what is."""

import importlib
import json

import pytest
from made_runs import write_checkpoint
from tiers import once

import keras_bert_impl as kbi
from keras_bert_impl.cli import COMMANDS
from keras_bert_impl.training.runs import main

pytestmark = once

FOUND = "found text, label"
FINETUNE = "finetune --data rows --model bert --output out --epochs 1"
TABLES = FINETUNE.replace("rows", "tables")
PREPARE = "prepare-data --input rows/train.jsonl --output out"
CASES = {
    f"{PREPARE} --text_field body": 'no field "body"; the row has text, label',
    f"{PREPARE} --text_field body --skip_unreadable": 'no field "body"; the row has text, label',
    f"{PREPARE} --vocab nothing": "nothing is neither a directory nor a published name",
    "prepare-data --input nothing --output out": "nothing does not exist. Give a file, a folder or a glob",
    "prepare-data --output out --config nothing": "nothing is neither a file nor a recipe of the package; its",
    "quickstart --output out --corpus nothing": "nothing does not exist. Give a file, a folder or a glob",
    "pretrain --data nothing --output out": "nothing holds no prepared data",
    "distill --data rows --output out --teacher nothing": "nothing is neither a directory nor a published name",
    f"{FINETUNE} --task text_clasification": "no task 'text_clasification': give one of text_classification, text_regr",
    f"{FINETUNE} --text_column body": f"no 'body', {FOUND}",
    f"{FINETUNE} --pair_column other": f"no 'other', {FOUND}",
    f"{FINETUNE} --label_column class": f"no 'class', {FOUND}",
    f"{FINETUNE} --text_column body --bad_rows skip": f"no 'body', {FOUND}",
    f"{FINETUNE} --label_column class --bad_rows skip": f"no 'class', {FOUND}",
    f"{TABLES} --text_column body --bad_rows skip": f"no column 'body', {FOUND}",
    f"{TABLES} --label_column class": f"no column 'class', {FOUND}",
    f'{FINETUNE} --class_weights {{"c":2}}': "'c', which is not one of the classes a, b",
    f"{FINETUNE} --task_options.strid 3": "has no option 'strid'; it has name, splits, dev",
    f'{FINETUNE} --task_options.dev ["dve"]': "has dev ['dve'], expected a list of its splits, train, dev, test",
    f'{FINETUNE} --task_options.defaults {{"epochz":1}}': "has a default 'epochz'; it can have epochs, batch_size",
    f'{FINETUNE} --task_options.splits {{"train":"a"}}': "reads files with certain columns: leave task_options.splits",
    f"{FINETUNE} --teacher nothing": "nothing is neither a directory nor a published name",
    f"{FINETUNE} --join nothing": "nothing is neither a directory nor a published name",
    f"{FINETUNE} --config nothing": "nothing is neither a file nor a recipe of the package; its",
    "fill-mask --model nothing --text [MASK]": "nothing is neither a directory nor a published name",
    "fill-mask --model classes --text [MASK]": "which is for classify or embed, not for fill_mask",
    "fill-mask --model bret-base-uncased --text [MASK]": "Did you mean bert-base-uncased?",
    f"{FINETUNE.replace('rows', 'nothing')} --task text_classification": "; there is no directory nothing.",
    f"{FINETUNE.replace('rows', 'bert')} --task text_classification": "label; bert has README.md, config.json",
    "predict --model classes --input nothing.csv": "nothing.csv not found",
    "predict --model classes --input tables/train.csv --text_column body": f"no column 'body', {FOUND}",
    "predict --model classes --input tables/train.csv --pair_column other": f"no column 'other', {FOUND}",
    "predict --model classes --input tables/train.csv --context_column other": "context_column is not for this model",
    "predict --model classes --input tables/train.csv --text_column body --bad_rows skip": f"no column 'body', {FOUND}",
    "predict --model classes --input rows/train.jsonl --text_column body --bad_rows skip": f"no column 'body', {FOUND}",
    "predict --model classes --input rows/train.jsonl --task answer": "which is for classify or embed, not for answer",
    "evaluate squad --dataset nothing --predictions rows/train.jsonl": "nothing",
    "convert nothing out": "nothing is neither a directory nor a published name",
    "export --model classes --output out --format onnx --figures nothing": "nothing",
    "compare-exports --exports classes": "classes holds no export",
    "compare-exports --exports export --texts nothing": "nothing not found: expected a file with a text on each line",
    "compare-exports --exports export --data rows --task cla": "no task 'cla': give one of cola, sst-2",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Tables of two classes, a checkpoint, a classifier, and what an export says of itself."""
    folder = tmp_path_factory.mktemp("folder")
    rows = [("the cat sat .", name) for name in "abab"]
    for name in ("rows", "tables", "export"):
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
    (folder / "export" / "config.json").write_text(json.dumps({"export": {"model": "TextClassifier"}}))
    return folder


@pytest.mark.parametrize("case", CASES)
def test_a_name_that_is_not_there_is_one_line_that_lists_what_is(folder, monkeypatch, case):
    monkeypatch.chdir(folder)
    name, *arguments = case.split()
    command = COMMANDS[name]
    module = importlib.import_module(f"keras_bert_impl.{command.module}")
    with pytest.raises(SystemExit) as ended:
        main(getattr(module, command.configuration), module.run, arguments, name, command.positional)
    assert CASES[case] in ended.value.code and "\n" not in ended.value.code
    assert not (folder / "out").exists()
