"""Runs the programs of start.md, of the pages on tasks, and of the how-to pages, as they stand in docs/.

`small_english` is itself; other checkpoints are small and random, under the names that the pages use.
"""

import json
import os
import re
import subprocess
import sys

import keras
import pytest
from documentation import ROOT, blocks_with_outputs, commands, indented_blocks, python_blocks
from made_tasks import SENTENCES, write_lines
from tiers import on, once

import keras_bert_impl as kbi
from keras_bert_training import finetuning
from keras_bert_training.cli import main

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("ignore:.* newly initialised, they need training")]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The checkpoints and texts that the pages name, in the working directory."""
    pages = [(ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8") for name in ("start", "cookbook")]
    tokenizer = kbi.WordPieceTokenizer(kbi.tokenizers.learn_vocabulary(pages * 3, 400))
    sizes = {"hidden_size": 12, "num_layers": 4, "num_heads": 3, "intermediate_size": 21, "initializer_range": 0.3}
    keras.utils.set_random_seed(5)
    encoder = kbi.BertEncoder(kbi.BertConfig(tokenizer.vocabulary_size, **sizes))
    kbi.MaskedLM(encoder, tokenizer=tokenizer).save_pretrained(tmp_path / "bert-base-uncased")
    kbi.TextEmbedder(encoder, tokenizer=tokenizer).save_pretrained(tmp_path / "minilm")
    for number in range(40):
        text = "\n".join(SENTENCES[(number + n) % len(SENTENCES)] + f" {number}" for n in range(9))
        write_lines(tmp_path / "my_texts" / f"{number}.txt", [text])
    rows = [f"{SENTENCES[n % 5]},{('bad', 'good')[n % 2]}" for n in range(12)]
    for split in ("train", "validation"):
        write_lines(tmp_path / "reviews" / f"{split}.csv", ["text,label", *rows])
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_blocks(page, **names):
    for block in python_blocks(page):
        exec(compile(block, page, "exec"), names)
    return names


TASKS = ("text_classification", "named_entities", "questions", "fill_mask", "search", "reranking")


@once
@pytest.mark.parametrize("page", ["start", *TASKS])
def test_the_programs_of_a_task_print_what_its_page_shows(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)  # without any file
    names, compared = {}, 0
    for code, shown in blocks_with_outputs(f"docs/{page}.md"):
        exec(compile(code, page, "exec"), names)
        printed = capsys.readouterr().out
        if shown is not None and not (
            page == "search" and ".fit(" in code
        ):  # its scores differ a little from run to run
            assert printed == shown
            compared += 1
    assert compared or page == "reranking"


@pytest.mark.parametrize("page", TASKS)
def test_a_page_on_a_task_is_short_and_has_all_parts(page):
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    assert 300 <= len(text.split()) <= 480
    assert python_blocks(f"docs/{page}.md") and "\n```text\n" in text and "## From the command line" in text


def test_the_commands_of_a_task_run_on_its_files(folder):
    """The files are those that the pages show, each example a few times."""
    csv = text_block("text_classification", "text,label")
    entities = text_block("named_entities", "Ada B-PER")
    for split in ("train", "validation", "test"):
        write_lines(folder / "reviews" / f"{split}.csv", [*csv.splitlines(), *csv.splitlines()[1:] * 5])
    for split in ("train", "dev", "test"):
        write_lines(folder / "entities" / f"{split}.txt", [entities] * 3)
        write_lines(folder / "squad" / f"{split}.json", [text_block("questions", '{"data"')])
    write_lines(folder / "new.csv", ["text", "a great story"])
    write_lines(folder / "texts.txt", ["Ada lives in London ."])
    small = ["--epochs=1", "--sequence_length=64", "--jit_compile=off"]
    for page in TASKS[:2]:
        for name, *options in page_commands(page):
            main([name, *options, *(small if name == "finetune" else [])])
    options = "--task question_answering --data squad --model small_english --output runs/answers".split()
    main(["finetune", *options, *small, "--task_options.question_length=16", "--task_options.stride=16"])
    assert (folder / "answers.csv").read_text().splitlines()[0] == "text,predicted,probability"
    assert "entities" in json.loads((folder / "found.jsonl").read_text().splitlines()[0])
    assert {"runs/reviews/model", "runs/entities/model", "runs/answers/model"} <= {
        str(path.parent.relative_to(folder)) for path in folder.glob("runs/*/model/config.json")
    }


def text_block(page, beginning):
    """The ```text block of a page that begins so."""
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    (block,) = [one for one in re.findall(r"^```text\n(.*?)^```", text, re.DOTALL | re.M) if one.startswith(beginning)]
    return block


def page_commands(page):
    """Every keras-bert command of a page, a list of words each."""
    return [found for block in indented_blocks(f"docs/{page}.md") for found in commands(block, "keras-bert")]


def test_the_two_commands_that_train_a_bert_run(folder):
    found = page_commands("training")
    assert [words[0] for words in found[:2]] == ["prepare-data", "pretrain"]
    few = ["--steps=2", "--validation_batches=1", "--jit_compile=off", "--batch_size=2"]
    for name, *options in found[:2]:
        if "--max_minutes" in options:
            place = options.index("--max_minutes")
            del options[place : place + 2]
        main([name, *options, *(few if name == "pretrain" else ["--sequence_length=32"])])
    assert (folder / "runs" / "mine" / "encoder" / "model.safetensors").is_file()


def test_the_programs_of_preprocessing_run(folder, capsys):
    names = run_blocks("docs/preprocessing.md")
    assert names["numbers"].tolist() == [[-1, 1, -1, 0, 0, 2] + [-1] * 6]
    assert len(list(names["dataset"])) == 1
    assert "(16, 16)" in capsys.readouterr().out


def test_the_programs_of_the_cookbook_run(folder, capsys):
    names = run_blocks("docs/cookbook.md")
    assert names["vector_of"]("bank", "money in the bank").shape == (12,)
    assert names["probabilities"].shape[:2] == (4, 3) and (folder / "attention.png").is_file()
    assert "of 24 texts, each unseen by its model" in capsys.readouterr().out
    assert keras.saving.load_model("two_heads.keras").output["topic"].shape == (None, 3)
    assert kbi.TextClassifier.from_pretrained("my_lora_classifier").class_names == ["bad", "good"]


def test_the_commands_of_the_cookbook_run(folder):
    small = {
        "pretrain": ["--steps=2", "--batch_size=2", "--validation_batches=1", "--jit_compile=off"],
        "finetune": ["--epochs=1", "--sequence_length=32"],
        "search": ["--search_epochs=[1]", "--search_learning_rates=[5e-5]", "--sequence_length=32"],
        "prepare-data": ["--sequence_length=32"],
    }
    for name, *options in page_commands("cookbook"):
        if "--distribution" in options:
            continue
        options = [option for option in options if name != "pretrain" or option not in ("--steps", "10000")]
        main([name, *options, *small["search" if "--search" in options else name]])
    assert (folder / "runs" / "domain" / "run" / "encoder" / "model.safetensors").is_file()
    assert (folder / "runs" / "search" / "metrics.json").is_file()


@pytest.mark.filterwarnings("ignore")
def test_what_the_page_on_long_texts_shows_runs(folder):
    assert len(run_blocks("docs/long_texts.md")["best"]) == 8
    for name, *options in page_commands("long_texts"):
        main([name, *options, "--epochs=1", "--batch_size=4", "--sequence_length=40", "--jit_compile=off"])
    assert kbi.TextClassifier.from_pretrained("runs/reviews/model").long_texts == "windows"


def test_the_task_of_the_guide_is_trained(folder):
    (code,) = [block for block in python_blocks("docs/adding.md") if block.startswith("# mails.py")]
    (folder / "mails.py").write_text(code)
    for number in range(12):
        for split in ("train", "dev"):
            path = folder / "mails" / split / ("private", "work")[number % 2] / f"{number}.txt"
            write_lines(path, [SENTENCES[number % 5]])
    options = {"task": "mails.py", "data": "mails", "model": "bert-base-uncased", "output": "run"}
    figures = finetuning.run(finetuning.FinetuneConfig(**options, epochs=1, sequence_length=32, jit_compile="off"))
    assert figures["training_rows"] == 12 and figures["examples"] == 12
    (folder / "mails" / "train" / "work" / "empty.txt").write_text(" \n")
    with pytest.raises(ValueError, match=r"empty\.txt: the text is empty"):
        finetuning.run(finetuning.FinetuneConfig(**{**options, "output": "run_2"}, epochs=1, jit_compile="off"))


def test_the_family_of_the_guide_learns_and_is_saved(folder):
    """In a process of its own, because a family stays registered."""
    code = python_blocks("docs/adding.md")[1]
    code += "one, other = kbi.TextClassifier.from_pretrained('my_bag').predict(['fine a film', 'a fine film'])\n"
    code += "assert abs(one - other).max() < 1e-5 and abs(one).max() > 0, (one, other)\n"
    done = subprocess.run([sys.executable, "-c", code], env=os.environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]


@on("tensorflow")
def test_attention_of_an_export_is_asked_as_the_page_shows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    outputs = run_blocks("docs/page.md")["outputs"]
    assert outputs["attention"].shape[1:3] == (4, 4) and b"bank" in outputs["tokens"].numpy()[0]
