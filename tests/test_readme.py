"""Runs the commands of the README and of the pages in docs/, and the Python example, as they are written there.

Commands that would take days are run with the options of SMALL added. The data are small, and have the names and paths
that the pages use.
"""

import contextlib
import gzip
import json
import os
import pathlib
import subprocess
import sys
from unittest import mock

import pytest
from conftest import WORDS
from documentation import ROOT, commands, example_with_output, indented_blocks, python_blocks, shape_of_line
from made_tasks import SENTENCES, write_lines
from tiers import every_backend

import keras_bert_impl as kbi
from keras_bert_training.cli import main
from keras_bert_training.options.serve import ServeConfig
from keras_bert_training.runs import parse

PAGE = "README.md"
PAGES = (PAGE, "docs/quickstart.md", "docs/pretraining.md", "docs/finetuning.md")
ENCODER = "runs/quickstart/python_docs/tensorflow/pretrain/encoder"
SMALL_SEARCH = "--search_learning_rates=[5e-5,2e-5] --search_batch_sizes=[8] --search_epochs=[1] --sequence_length=32"
SMALL = {
    "pretrain": "--size=bert_tiny --steps=2 --batch_size=4 --validation_batches=1 --jit_compile=off".split(),
    "finetune": "--epochs=3 --batch_size=8 --sequence_length=32 --jit_compile=off".split(),
    "search": [*SMALL_SEARCH.split(), "--jit_compile=off"],
}
HEAVY = ("make", "pip install")


def block_with(word):
    """The only block of the pages whose commands contain `word`."""
    blocks = [block for page in PAGES for block in indented_blocks(page)]
    (block,) = [block for block in blocks if word in block and not block.startswith(HEAVY)]
    return block


def write_checkpoint(path, vocabulary):
    config = kbi.BertConfig(len(vocabulary), hidden_size=12, num_layers=2, num_heads=3, intermediate_size=21)
    kbi.Pretrainer(kbi.BertEncoder(config)).save_pretrained(path)
    kbi.WordPieceTokenizer(vocabulary).save_pretrained(path)


def write_glue(folder):
    pairs = [f"{n}\t{n}\t{SENTENCES[n % 5]}\t{SENTENCES[n % 3]}" for n in range(9)]
    head = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String"
    for split in ("train", "dev"):
        write_lines(folder / "MRPC" / f"{split}.tsv", [head, *(f"{n % 2}\t{pair}" for n, pair in enumerate(pairs))])
        rows = [f"{n}\t{SENTENCES[n % 5]}\t{SENTENCES[n % 3]}\t{('not_', '')[n % 2]}entailment" for n in range(9)]
        write_lines(folder / "RTE" / f"{split}.tsv", ["index\tsentence1\tsentence2\tlabel", *rows])


def write_squad(folder):
    question = {"id": "q", "question": "who sat", "answers": [{"text": "cat", "answer_start": 4}]}
    paragraph = {"context": "the cat sat", "qas": [{**question, "is_impossible": False}]}
    dataset = {"version": "v2.0", "data": [{"title": "t", "paragraphs": [paragraph]}]}
    for name, content in (
        ("dev-v2.0.json", dataset),
        ("predictions.json", {"q": "cat"}),
        ("null_odds.json", {"q": 0.0}),
    ):
        write_lines(folder / name, [json.dumps(content)])


def write_new_texts(folder):
    write_lines(folder / "pairs.csv", ["key,text,text_pair", *(f"{n},{SENTENCES[n]},a dog" for n in range(5))])
    write_lines(folder / "sentences.tsv", ["first\tsecond", *(f"{text}\ta dog" for text in SENTENCES[:3])])
    write_lines(folder / "sentences.txt", SENTENCES[:3])
    write_lines(folder / "masked.txt", ["the [MASK] sat", "a dog [MASK] in [MASK]"])


@pytest.fixture(scope="module")
def clone(tmp_path_factory, text_folder):
    """A folder like a clone in which the quickstart has run, with the data that the README names."""
    folder = tmp_path_factory.mktemp("clone")
    (folder / "corpus" / "deep").mkdir(parents=True)
    for path in text_folder.glob("*.txt"):
        with gzip.open(folder / "corpus" / "deep" / f"{path.name}.gz", "wb") as file:
            file.write(path.read_bytes())
    text = (text_folder / "numpy.txt").read_text(encoding="utf-8")
    words = kbi.tokenizers.learn_vocabulary(text.splitlines(), 600)
    write_lines(folder / "vocab.txt", words)
    write_checkpoint(folder / ENCODER, words)
    for name in ("bert-base-uncased", "minilm"):
        write_checkpoint(folder / name, WORDS)
    write_glue(folder / "glue")
    write_squad(folder)
    write_new_texts(folder)
    return folder


@contextlib.contextmanager
def redirected(options):
    """Does what `< file` and `> file` among the options ask for, and removes them."""
    with contextlib.ExitStack() as opened:
        for sign, mode, stream in (("<", "r", "stdin"), (">", "w", "stdout")):
            if sign in options:
                place = options.index(sign)
                file = opened.enter_context(open(options[place + 1], mode, encoding="utf-8"))
                opened.enter_context(mock.patch.object(sys, stream, file))
                del options[place : place + 2]
        yield


@pytest.fixture
def shell(clone, monkeypatch, capfd):
    """Runs the commands of a block in the clone, each as if it were its own process; returns what they printed."""
    monkeypatch.chdir(clone)

    def run(block):
        for name, *options in commands(block, "keras-bert"):
            with redirected(options):
                main([name, *options, *SMALL.get("search" if "--search" in options else name, [])])
        return capfd.readouterr().out

    return run


@pytest.mark.parametrize("page", [pytest.param(PAGE, marks=every_backend), "docs/small_english.md"])
def test_the_first_example_prints_what_the_page_shows(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)  # without any file
    example, shown = example_with_output(page)
    exec(compile(example, page, "exec"), {})
    assert capsys.readouterr().out == shown


@pytest.mark.filterwarnings("ignore:.* newly initialised, they need training")
def test_the_python_examples_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = {}
    for example in python_blocks(PAGE):
        exec(compile(example, PAGE, "exec"), found)
    assert found["classifier"].predict(["what a film"], verbose=0).shape == (1, 2)
    assert json.loads(pathlib.Path("my_classifier/config.json").read_text())["id2label"] == {"0": "bad", "1": "good"}


def test_the_examples_of_sentence_embeddings_run(clone, monkeypatch):
    monkeypatch.chdir(clone)
    found = {}
    for block in python_blocks("docs/embeddings.md"):
        exec(compile(block, "docs/embeddings.md", "exec"), found)
    assert type(found["embedder"].loss).__name__ == "MultipleNegativesRankingLoss"
    reloaded = kbi.TextEmbedder.from_pretrained("my_embedder")
    assert reloaded.similarity("a cat", "a dog") == pytest.approx(found["embedder"].similarity("a cat", "a dog"), 1e-4)
    assert found["small"].output_shape == (None, 8) and found["stored"].dtype == "int8"


@pytest.mark.full
def test_the_examples_of_the_callbacks_run(clone, monkeypatch):
    monkeypatch.chdir(clone)
    found = {}
    for block in python_blocks("docs/callbacks.md"):
        exec(compile(block, "docs/callbacks.md", "exec"), found)
    assert len(found["best"].scores) == 2
    assert {path.name for path in pathlib.Path("runs/films").iterdir()} == {"step-00000008.npz", "step-00000012.npz"}


@pytest.mark.full
def test_the_commands_of_pretraining_run_one_after_the_other(shell, clone):
    printed = shell(block_with("--verify"))
    assert "are as they were written" in printed
    assert (clone / "runs/base_512/encoder/model.safetensors").is_file()


@pytest.mark.full
def test_the_commands_that_go_on_from_a_published_checkpoint_run(shell, clone, text_folder):
    (clone / "my_texts").symlink_to(text_folder)
    for name, *options in commands(block_with("--init bert-base-uncased"), "keras-bert"):
        main([name, *options, *(option for option in SMALL.get(name, []) if not option.startswith("--size"))])
    assert (clone / "runs/mine/encoder/model.safetensors").is_file()


@pytest.mark.full
def test_the_commands_that_the_quickstart_ends_with_run(shell, clone):
    (clone / "runs/quickstart/python_docs/data").symlink_to(clone / "data")
    if not (clone / "data").is_dir():
        shell(block_with("--verify").split("keras-bert prepare-data --output")[0])
    ends_with, page = block_with("fill-mask --model runs/quickstart").split("Next:")[1].split("A page that")
    printed = shell(ends_with)
    assert "It returns a [MASK] of integers." in printed
    assert (clone / "runs/modernbert_small/encoder/model.safetensors").is_file()
    ((name, *options),) = commands(page, "keras-bert")  # which would serve until it is ended
    assert name == "serve" and parse(ServeConfig, options).model == [
        f"quickstart={ENCODER.removesuffix('/pretrain/encoder')}/saved_model"
    ]


def test_the_commands_of_fine_tuning_run(shell, clone):
    printed = shell(block_with("--task glue"))
    assert '"exact": 100.0' in printed
    for run in ("runs/mrpc", "runs/search"):
        assert (clone / run / "metrics.json").is_file()
    assert (clone / "runs/glue/table.txt").is_file()


@pytest.fixture
def finished_run(shell, clone):
    """The command of the page that made runs/mrpc."""
    command = block_with("--task glue").splitlines()[0]
    if not (clone / "runs/mrpc").is_dir():
        shell(command)
    return command


def test_the_commands_of_prediction_run(finished_run, shell, clone):
    printed = shell(block_with("keras-bert predict"))
    header, *rows = (clone / "answers.csv").read_text().splitlines()
    assert header == "key,text,text_pair,predicted,probability" and len(rows) == 5
    files = [(clone / name).read_text() for name in ("words.jsonl", "vectors.jsonl")]
    ranked, words, vectors = (list(map(json.loads, text.splitlines())) for text in (printed, *files))
    assert [len(row["candidates"]) for row in ranked] == [2, 2, 2]
    assert [[len(guesses) for guesses in row["masks"]] for row in words] == [[5], [5, 5]]
    assert [len(row["vector"]) for row in vectors] == [12, 12, 12]


@pytest.mark.full
def test_fine_tuning_prints_what_the_readme_shows(shell):
    block = block_with("--task rte")
    printed = set(map(shape_of_line, shell(block).splitlines()))
    shown = block.split("\n\n", 1)[1].splitlines()
    assert [line for line in shown if shape_of_line(line) not in printed] == []


def test_the_make_targets_of_the_readme_exist():
    lines = "\n".join(indented_blocks(PAGE))
    targets = {command[0] for command in commands(lines, "make")}
    assert targets == {"quickstart", "test"}
    for target in targets:
        subprocess.run(["make", "--dry-run", target], cwd=ROOT, check=True, capture_output=True, env=os.environ)
