"""What would pre-train something else than was asked for, or end only after long work, is refused before it begins."""

import types

import pytest
from made_runs import write_checkpoint
from tiers import once

import keras_bert_impl as kbi
from keras_bert_impl.text.rows.phrases import read_phrases
from keras_bert_training import data_preparation, pretraining_model
from keras_bert_training.pretraining import PretrainConfig

pytestmark = once


def config_of(**options):
    return PretrainConfig("data", "run", **options)


def test_next_sentences_are_not_asked_of_rows_without_pairs():
    data = types.SimpleNamespace(has_pairs=False, pairs="full_sentences", directory="data")
    with pytest.raises(ValueError, match="cannot learn next sentences from data"):
        pretraining_model.learns_pairs(config_of(next_sentence=True), kbi.BertConfig, data)
    assert pretraining_model.learns_pairs(config_of(), kbi.BertConfig, data) is False


@pytest.mark.parametrize(
    ("options", "differs"), [({"num_layers": 3}, "num_layers"), ({"size": "bert_base"}, "size"), ({}, None)]
)
def test_a_checkpoint_determines_the_size(tmp_path, options, differs):
    found = kbi.checkpoints.open_checkpoint(write_checkpoint(tmp_path)).config
    config = config_of(init=str(tmp_path), **options)
    shape = {name: value for name, value in options.items() if name != "size"}
    if differs is None:
        pretraining_model.check_size(config, {"num_layers": found.num_layers}, found)
        return
    with pytest.raises(ValueError, match=f"of 2 layers of width 12: leave out {differs}"):
        pretraining_model.check_size(config, shape, found)


@pytest.mark.parametrize("options", [{"sequence_length": 4}, {"sequence_length": 32, "long_sequence_length": 16}])
def test_rows_hold_a_pair_and_long_rows_are_longer(options, tmp_path):
    with pytest.raises(ValueError, match="the second must be larger, and a pair needs at least 5 tokens"):
        data_preparation.run(data_preparation.PrepareConfig(str(tmp_path / "data"), "text", **options))


def test_a_vocabulary_has_each_token_once_and_no_empty_one():
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "aa"]
    for more in (["bb", "aa"], ["", "bb"]):
        with pytest.raises(ValueError, match=r"vocabulary line [67]: .* is empty, or repeated in line"):
            kbi.WordPieceTokenizer([*words, *more])


def test_empty_lines_of_phrases_are_left_out(tmp_path):
    (tmp_path / "phrases.txt").write_text("of the\n\nthe  array\n", encoding="utf-8")
    assert read_phrases(tmp_path / "phrases.txt") == ["of the", "the array"]
