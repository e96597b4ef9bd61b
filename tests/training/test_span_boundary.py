"""SpanBERT's objective from the command's configuration to the checkpoint."""

import json

import keras
import numpy as np
import pytest
from interrupted_runs import assert_equal_states, interrupted, last_state, prepare

import keras_bert_impl as kbi
from keras_bert_impl.training import pretraining

pytestmark = pytest.mark.usefixtures("without_reports")
OPTIONS = {"objective": "span_boundary", "masking_unit": "span", "steps": 6}


ROWS = {"sequence_length": 24, "predictions_per_sequence": 4}
SIZES = {"size": "bert_tiny", "num_layers": 1, "hidden_size": 12, "num_heads": 2, "intermediate_size": 20}


def config_of(data, output, **options):
    jit_compile = "on" if keras.backend.backend() == "jax" else "off"
    usual = {"steps_per_round": 3, "batch_size": 4, "validation_batches": 1, "jit_compile": jit_compile}
    return pretraining.PretrainConfig(str(data), str(output), **{**SIZES, **usual, **OPTIONS, **options})


def test_an_interrupted_run_on_packed_rows_ends_as_an_uninterrupted_one(tmp_path, monkeypatch):
    data = prepare(tmp_path, packed=True, **ROWS)
    pretraining.run(config_of(data, tmp_path / "whole"))
    with monkeypatch.context() as patch:
        interrupted(pretraining.run, config_of(data, tmp_path / "broken"), patch, 5)
    pretraining.run(config_of(data, tmp_path / "broken"))
    assert_equal_states(last_state(tmp_path / "broken"), last_state(tmp_path / "whole"))
    figures = json.loads((tmp_path / "whole" / "evaluation.json").read_text())
    assert figures["span_boundary_loss"] > 0
    model = kbi.Pretrainer.from_pretrained(tmp_path / "whole" / "encoder", next_sentence=False, span_boundary=True)
    head = model.get_layer("span_boundary_head")
    assert np.abs(keras.ops.convert_to_numpy(head.output_bias)).max() > 0  # learnt, and saved


@pytest.mark.parametrize(
    ("prepared", "options", "message"),
    [
        (
            {"pairs": "next_sentence"},
            {},
            "span_boundary needs masked spans in single sequences, but .* has --pairs next_sentence",
        ),
        (
            {},
            {"masking_unit": "token"},
            "and masking_unit is token: prepare the data with --pairs doc_sentences, and give --masking_unit span",
        ),
        ({"static_masks": True}, {}, r"was masked by token while it was prepared: leave masking_unit out"),
    ],
)
def test_what_does_not_fit_the_objective_is_refused(prepared, options, message, tmp_path):
    data = prepare(tmp_path, **{**ROWS, **prepared})
    with pytest.raises(ValueError, match=message):
        pretraining.run(config_of(data, tmp_path / "run", **options))
