"""Pre-training of an XLNet on rows that continue those before them, with a memory."""

import json

import numpy as np
import pytest
from interrupted_runs import assert_equal_states, interrupted, last_state
from safetensors.numpy import load_file
from tiers import once

from keras_bert_impl.training import data_preparation, pretraining, pretraining_data

pytestmark = pytest.mark.usefixtures("without_reports")
ROWS = {"pairs": "continued_text", "tokenizer": "xlnet_sentence_piece"}


def config_of(data, output, **options):
    usual = {"size": "xlnet_tiny", "num_layers": 2, "hidden_size": 16, "num_heads": 4, "intermediate_size": 20}
    usual |= {"objective": "permuted_lm", "masking_unit": "context_span", "memory_length": 24, "jit_compile": "off"}
    usual |= {"steps": 6, "steps_per_round": 2, "batch_size": 64, "validation_batches": 2}
    return pretraining.PretrainConfig(str(data), str(output), **{**usual, **options})


def test_an_interrupted_run_with_a_memory_ends_as_an_uninterrupted_one(prepared_data, tmp_path, monkeypatch):
    """Its states hold the memory: the step after the interruption reads what the step before has left."""
    data = prepared_data(**ROWS, bi_data=True)
    figures = pretraining.run(config_of(data, tmp_path / "whole"))
    assert figures["masked_lm_perplexity"] > 1
    with monkeypatch.context() as patch:
        interrupted(pretraining.run, config_of(data, tmp_path / "broken"), patch, 3)
    pretraining.run(config_of(data, tmp_path / "broken"))
    assert_equal_states(last_state(tmp_path / "broken"), last_state(tmp_path / "whole"))
    one, other = (tmp_path / name / "encoder" / "model.safetensors" for name in ("broken", "whole"))
    assert one.read_bytes() == other.read_bytes()
    shapes = [array.shape for array in last_state(tmp_path / "whole")[1].values()]
    assert shapes.count((64, 2, 24, 16)) == 1  # that of training; an evaluation begins with an empty one
    written = json.loads((tmp_path / "whole" / "encoder" / "config.json").read_text())
    assert (written["mem_len"], written["reuse_len"]) == (24, 16)
    history = json.loads((tmp_path / "whole" / "history.json").read_text())
    assert all(np.isfinite(row["val_masked_lm_loss"]) for row in history)


@once
def test_batches_of_a_run_are_halves_of_both_directions_and_continue_each_other(prepared_data, tmp_path):
    config = config_of(prepared_data(**ROWS, bi_data=True), tmp_path)
    opened = pretraining.open_data(config)
    model = pretraining.build_pretrainer(config, opened, False, 1e-3)
    assert model.permuted == {"seed": 0, "halves": True, "bi_data": True, "memory_rows": 64}
    batches = [opened.batch_at(step)[0] for step in (0, 1)]
    assert not batches[0]["continues"].any() and batches[1]["continues"].any()
    end = opened.tokenizer.token_to_id("<eod>")
    assert (batches[0]["token_ids"] == end).any() or (batches[1]["token_ids"] == end).any()
    shards = [shard["path"] for shard in opened.shards if "/train/" in shard["path"]]
    assert len(shards) % 2 == 0
    counts = [shard["examples"] for shard in opened.shards if "/train/" in shard["path"]]
    assert counts[::2] == counts[1::2]


@once
def test_updates_of_several_batches_go_on_with_the_same_rows(prepared_data, tmp_path):
    data = prepared_data(**ROWS, bi_data=True)
    options = {"gradient_accumulation_steps": 2, "precision": "mixed_bfloat16", "gradient_checkpointing": True}
    assert pretraining.run(config_of(data, tmp_path / "run", **options))["steps"] == 6
    init = str(tmp_path / "run" / "encoder")
    again = {"size": "bert_mini", "num_layers": None, "hidden_size": None, "num_heads": None}
    again |= {"intermediate_size": None, "init": init, "learning_rate": 0.0, "memory_length": 9}
    pretraining.run(config_of(data, tmp_path / "again", **again))
    one, other = (load_file(tmp_path / name / "encoder" / "model.safetensors") for name in ("run", "again"))
    assert one.keys() == other.keys() and all((one[name] == other[name]).all() for name in one)
    assert json.loads((tmp_path / "again" / "encoder" / "config.json").read_text())["mem_len"] == 9


@once
def test_rows_that_continue_others_train_without_a_memory_too(prepared_data, tmp_path):
    data = prepared_data(**ROWS)
    figures = pretraining.run(config_of(data, tmp_path / "run", memory_length=None, masking_unit="whole_word"))
    assert figures["masked_lm_perplexity"] > 1


@once
@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ({"pairs": "full_sentences"}, {}, "--memory_length 24 is for rows that continue others, .* full_sentences"),
        (ROWS, {"objective": "masked_lm", "memory_length": None}, "for --objective permuted_lm, not masked_lm"),
        (ROWS, {"streams": 2}, "each row of a batch is a stream of its own: leave streams out"),
        (ROWS, {"size": "bert_tiny"}, "A BERT has no memory, as XLNet's: leave memory_length out"),
        (ROWS, {"size": "bert_tiny", "memory_length": None}, "A BERT learns no permuted words"),
        ({**ROWS, "bi_data": True}, {"batch_size": 3}, "batch_size 3 is odd, but half of the rows"),
        ({**ROWS, "bi_data": True}, {"batch_size": 100_000}, "do not fill a batch of 100000"),
        (ROWS, {"objective": "masked_lm"}, "--memory_length 24 is for --objective permuted_lm"),
    ],
)
def test_what_does_not_go_with_rows_that_continue_others_is_refused(rows, options, message, prepared_data, tmp_path):
    with pytest.raises(ValueError, match=message):
        pretraining.run(config_of(prepared_data(**rows), tmp_path / "run", **options))


@once
def test_several_devices_that_would_mix_the_rows_are_refused(prepared_data, tmp_path, monkeypatch):
    data = prepared_data(**ROWS)
    monkeypatch.setattr(pretraining_data.distribution, "is_shared", lambda: True)
    with pytest.raises(ValueError, match="only JAX has it on the same device of several"):
        pretraining.open_data(config_of(data, tmp_path))


@once
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tokenizer": "wordpiece"}, "--pairs continued_text is XLNet's: give --tokenizer xlnet_sentence_piece"),
        ({"packed": True}, "--packed True beside pairs continued_text: its rows are full"),
        ({"static_masks": True}, "--static_masks True beside pairs continued_text: its words are learnt"),
        ({"short_sequence_probability": 0.2}, "short_sequence_probability 0.2 is for pairs"),
        ({"pairs": "full_sentences", "bi_data": True}, "--bi_data True is for --pairs continued_text"),
        ({"sequence_length": 33}, "sequence_length 33 must be even"),
    ],
)
def test_rows_that_cannot_be_prepared_are_refused(options, message, text_folder, tmp_path):
    config = {"input": str(text_folder), "vocabulary_size": 500, "sequence_length": 32, **ROWS, **options}
    with pytest.raises(ValueError, match=message):
        data_preparation.run(data_preparation.PrepareConfig(str(tmp_path / "data"), **config))
