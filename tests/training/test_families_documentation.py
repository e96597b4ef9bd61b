"""The table of docs/families.md: each family is trained as it says, in a small shape."""

import re
import shlex

import documentation
import pytest
from made_tokenizers import eurobert_tokenizer
from tiers import full_but, once

from keras_bert_impl import checkpoints
from keras_bert_impl.text.tokenizers import MPNetTokenizer, learn_vocabulary
from keras_bert_training import data_preparation, pretraining
from keras_bert_training.runs import parse

PAGE = "docs/families.md"
SMALL = (
    "--num_layers 1 --hidden_size 16 --num_heads 4 --steps 2 --batch_size 4 --validation_batches 1 --jit_compile off"
)
pytestmark = [once, pytest.mark.usefixtures("without_reports")]


def table():
    """The rows of the first table: lists of cells."""
    text = (documentation.ROOT / PAGE).read_text(encoding="utf-8")
    lines = text.split("\n| | differs from BERT")[1].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def options(cell):
    """The options in a cell."""
    return [word for code in re.findall(r"`([^`]*)`", cell) if code.startswith("--") for word in shlex.split(code)]


TRAINED = [row for row in table() if "keras-bert distill" not in row[3]]
NAMES = [row[0].split(" (")[0] for row in TRAINED]
# test_pretrain_objectives.py trains most of the others.
QUICK = [row for row, name in zip(TRAINED, NAMES, strict=True) if name in ("Longformer", "BigBird")]


@pytest.mark.parametrize(["row"], full_but([(row,) for row in TRAINED], *[(row,) for row in QUICK]), ids=NAMES)
def test_a_family_trains_as_the_table_says(row, text_folder, tmp_path):
    (tmp_path / "phrases.txt").write_text("of the\nthe array\n", encoding="utf-8")
    of_data = [str(tmp_path / "phrases.txt") if word == "FILE" else word for word in options(row[2])]
    if "--phrases" in of_data:  # the table's other ways to phrases follow
        of_data = of_data[: of_data.index("--phrases") + 2]
    if "--language_exponent" in of_data:
        for language in ("keras", "numpy"):
            folder = tmp_path / "text" / language
            folder.mkdir(parents=True)
            (folder / "text.txt").write_bytes((text_folder / f"{language}.txt").read_bytes())
    common = ["--sequence_length", "32"]
    if "--vocab" in of_data:  # a published one: a small one of its form stands for it
        texts = [(text_folder / "keras.txt").read_text(encoding="utf-8")]
        words = ["<s>", "<pad>", "</s>", "<unk>", *learn_vocabulary(texts, 500), "<mask>"]
        tokenizer = eurobert_tokenizer() if "llama_byte_pair" in of_data else MPNetTokenizer(words)
        tokenizer.save_pretrained(tmp_path / "vocab")
        of_data[of_data.index("--vocab") + 1] = str(tmp_path / "vocab")
    else:
        common += ["--vocabulary_size", "500"]
    source = tmp_path / "text" if (tmp_path / "text").is_dir() else text_folder
    common += ["--input", str(source)]
    config = parse(data_preparation.PrepareConfig, ["--output", str(tmp_path / "data"), *common, *of_data])
    data_preparation.run(config)
    places = ["--data", str(tmp_path / "data"), "--output", str(tmp_path / "run")]
    figures = pretraining.run(parse(pretraining.PretrainConfig, [*places, *SMALL.split(), *options(row[3])]))
    assert figures["masked_lm_perplexity"] > 1
    family, size = checkpoints.open_checkpoint(tmp_path / "run" / "encoder").config.model_type, options(row[3])[1]
    # transformers calls versions 2 and 3 "deberta-v2", and BigBird "big_bird".
    assert family.split("-")[0].replace("_", "").startswith(size.split("_")[0])
