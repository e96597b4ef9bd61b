"""Runs the commands and the Python example of docs/serving.md, one after the other, as they are written there."""

import json
import pathlib
import subprocess
import sys

import pytest
from conftest import WORDS, revealing_config
from documentation import ROOT, commands, indented_blocks, python_blocks
from made_tasks import SENTENCES, write_lines, write_mrpc
from tiers import on

import keras_bert_impl as kbi
from keras_bert_training.cli import main

PAGE = "docs/serving.md"
SCRIPT = "benchmarks/compare_exports.py"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the checkpoint and the files that the page names."""
    tokenizer = kbi.WordPieceTokenizer(WORDS)
    encoder = kbi.BertEncoder(revealing_config(tokenizer, max_length=32))
    names = ["not_equivalent", "equivalent"]
    kbi.TextClassifier(encoder, 2, tokenizer, class_names=names).save_pretrained(tmp_path / "my_classifier")
    write_mrpc(tmp_path / "glue/MRPC")
    write_lines(tmp_path / "typical.txt", [f"{text}\t{SENTENCES[0]}" for text in SENTENCES * 3])
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.full
@on("torch")  # once is enough; torch writes two of the formats
def test_the_commands_of_the_page_run_and_so_do_their_examples(folder):
    for package in ("tensorflow_text", "onnxruntime", "openvino", "nncf", "ai_edge_litert"):
        pytest.importorskip(package)
    found = [command for block in indented_blocks(PAGE) for command in commands(block, "keras-bert")]
    for name, *options in found:
        main([name, *options])
    exec(compile("\n".join(python_blocks(PAGE)), PAGE, "exec"), {})
    assert json.loads(pathlib.Path("served/litert_from_python/config.json").read_text())["export"]["figures"]
    exports = sorted(path.parent for path in pathlib.Path("served").glob("*/example.py"))
    assert len(exports) == 7
    for directory in exports:
        subprocess.run([sys.executable, "-I", directory / "example.py"], check=True)
    (options,) = [found for block in indented_blocks(PAGE) for found in commands(block, f"python {SCRIPT}")]
    command = [sys.executable, ROOT / SCRIPT, *options, "--rounds=1", "--seconds=0.1"]
    table = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert all(f"served/{name} " in table for name in ("openvino", "bfloat16", "int8"))
