"""Runs the programs of start.md, search.md, cookbook.md, moving.md, adding.md and long_texts.md as they stand in docs/.

The checkpoints are small and random, under the names that the pages use.
"""

import os
import subprocess
import sys

import keras
import pytest
from documentation import ROOT, commands, indented_blocks, python_blocks
from made_tasks import SENTENCES, write_lines
from tiers import once

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


def test_the_programs_of_the_first_five_minutes_run(folder, capsys):
    names = run_blocks("docs/start.md")
    printed = capsys.readouterr().out.splitlines()
    assert len(printed[:3]) == 3 and all(line.endswith("%") for line in printed[:3])
    first, second = (line for line in printed if line.startswith("[Label(label="))
    assert first == second  # what was saved answers as what was trained
    assert set(names["classifier"].class_names) == {"good", "bad"}


@once
def test_the_programs_of_the_guide_to_search_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = run_blocks("docs/search.md")
    shown = (ROOT / "docs" / "search.md").read_text(encoding="utf-8").split("```text\n")[1].split("```")[0]
    assert capsys.readouterr().out.startswith(shown)
    assert names["small"].output_shape == (None, 64) and names["stored"].dtype == "int8"
    assert len(names["best"]) == 3


def test_the_programs_of_preprocessing_run(folder, capsys):
    names = run_blocks("docs/preprocessing.md")
    assert names["numbers"].tolist() == [[-1, 1, -1, 0, 0, 2] + [-1] * 6]
    assert len(list(names["dataset"])) == 1
    assert "(16, 16)" in capsys.readouterr().out


def test_the_programs_of_the_cookbook_run(folder, capsys):
    names = run_blocks("docs/cookbook.md")
    assert names["vector_of"]("bank", "money in the bank").shape == (12,)
    assert names["probabilities"].shape[:2] == (4, 3) and (folder / "attention.png").is_file()
    assert "of 24 texts, each by a model that has not seen it" in capsys.readouterr().out
    assert keras.saving.load_model("two_heads.keras").output["topic"].shape == (None, 3)
    assert kbi.TextClassifier.from_pretrained("my_lora_classifier").class_names == ["bad", "good"]


def test_the_commands_of_the_cookbook_run(folder):
    small = {
        "pretrain": ["--steps=2", "--batch_size=2", "--validation_batches=1", "--jit_compile=off"],
        "finetune": ["--epochs=1", "--sequence_length=32"],
        "search": ["--search_epochs=[1]", "--search_learning_rates=[5e-5]", "--sequence_length=32"],
        "prepare-data": ["--sequence_length=32"],
    }
    blocks = [block for block in indented_blocks("docs/cookbook.md") if "languages" not in block]
    found = [command for block in blocks for command in commands(block, "keras-bert")]
    for name, *options in found:
        if "--distribution" in options or "runs/multilingual/data" in options:
            continue
        options = [option for option in options if name != "pretrain" or option not in ("--steps", "10000")]
        main([name, *options, *small["search" if "--search" in options else name]])
    assert (folder / "runs" / "domain" / "run" / "encoder" / "model.safetensors").is_file()
    assert (folder / "runs" / "search" / "metrics.json").is_file()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_programs_for_those_who_move_run_there_and_back(folder, capsys):
    names = run_blocks("docs/moving.md")
    (found,) = names["classifier"].classify("a fine film")
    assert f"'label': '{found.label}'" in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore")
def test_what_the_page_on_long_texts_shows_runs(folder):
    kbi.MaskedLM.from_pretrained("bert-base-uncased").save_pretrained("teacher")
    run_blocks("docs/long_texts.md", texts=["the cat sat " * 40, "a dog"] * 4, labels=[1, 0] * 4)
    blocks = indented_blocks("docs/long_texts.md")
    for name, *options in (words for block in blocks for words in commands(block, "keras-bert")):
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
