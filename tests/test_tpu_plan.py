"""The planner, with the real TPU compiler and no TPU."""

import importlib
import importlib.util
import json
import math
import os
import pathlib
import subprocess
import sys

import pytest
from tiers import full_but, on

PLAN = pathlib.Path(__file__).parents[1] / "tpu" / "plan.py"
pytestmark = [
    on("jax"),
    pytest.mark.skipif(importlib.util.find_spec("libtpu") is None, reason="libtpu, the TPU compiler, is not installed"),
]


def tpu_plan():
    """The planner as a module."""
    return importlib.import_module("keras_bert_training.commands.plan_tpu")


def plan(*options):
    return subprocess.run([sys.executable, str(PLAN), *options], capture_output=True, text=True, env=os.environ)


@pytest.mark.full
@pytest.mark.parametrize("model_devices", [1, 2])
def test_a_step_is_compiled_for_chips_that_are_not_there(model_devices, tmp_path):
    done = plan(
        "--topology", "v5e:2x2", "--recipe", "bert_small/phase_128", "--global_batch", "256",
        "--model_devices", str(model_devices), "--output", str(tmp_path / "plan.json"),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert "ESTIMATE" in done.stdout
    (figures,) = json.loads((tmp_path / "plan.json").read_text())
    assert figures["fits"] and figures["chips"] == 4
    assert figures["flops"] == pytest.approx(figures["counted_flops"], rel=0.1)
    # The all-reduce of the gradients has at least the size of this chip's part of them in bfloat16.
    assert figures["collectives"]["all-reduce"]["bytes"] > 2 * 28e6 / model_devices / 2
    # Weights and AdamW's two moments, float32.
    assert figures["argument_bytes"] > 3 * 4 * 28e6 / model_devices * 0.9


def bytes_of_weights(model):
    return 4 * sum(math.prod(variable.shape) for variable in model.trainable_variables)


def compiled_step(divided):
    """The planned model of one layer, and the figures of its step on four chips."""
    module = tpu_plan()
    phase = {"name": "mine", "size": "bert_tiny", "sequence_length": 16, "steps": 9, "num_layers": 1}
    config = module.PlanConfig(vocabulary_size=5000, shard_optimizer=divided)
    model = module.planned_model(phase, config)
    return model, module.compile_step(model, module.devices_of("v5e:2x2"), 8, phase, config)


@pytest.mark.full
def test_a_chip_holds_its_part_of_a_divided_optimizer_state(without_chips):
    model, found = compiled_step(divided=True)
    # All weights; two moments of each, of which a chip of four holds a quarter but for a few small vectors.
    assert found["argument_bytes"] == pytest.approx(1.5 * bytes_of_weights(model), rel=0.03)
    assert "all-gather" in found["collectives"]
    assert 0 < found["bytes_moved"] < found["bytes_accessed"]  # the rest stays within the chip


@pytest.mark.full
def test_a_divided_optimizer_state_sends_no_more_gradients_around(without_chips):
    """The products that make them are not divided, which would send their factors around."""
    (model, whole), (_, divided) = map(compiled_step, (False, True))
    assert whole["argument_bytes"] == pytest.approx(3 * bytes_of_weights(model), rel=0.03)
    assert divided["flops"] < 1.01 * whole["flops"] and "all-gather" not in whole["collectives"]
    sums = [figures["collectives"]["all-reduce"]["bytes"] for figures in (whole, divided)]
    assert sums[1] == pytest.approx(sums[0], rel=0.05)  # a few small sums are added, such as that of the norm


@pytest.mark.parametrize(
    ("moved", "memory", "least"), [(3 * 0.82e9, "3 to 5", 3), (7.2e8, "1 to 5", 2), (None, "at most 5", 2)]
)
def test_a_step_takes_as_long_as_its_slowest_part_or_as_all_that_may_not_overlap(moved, memory, least, capsys):
    figures = {
        "topology": "v5e:2x2", "phase": "mine", "chips": 4, "rows": 8, "fits": True, "argument_bytes": 0,
        "temporary_bytes": 0, "output_bytes": 0, "compile_seconds": 1, "counted_flops": 1, "flops": 2 * 197e9,
        "bytes_accessed": 5 * 0.82e9, "bytes_moved": moved, "collectives": {"all-reduce": {"count": 1, "bytes": 1e8}},
    }  # fmt: skip
    tpu_plan().print_figures(figures, tpu_plan().CHIPS["v5e"], {"steps": 86_400_000, "batch_size": 8})
    printed = " ".join(capsys.readouterr().out.split())
    assert f"arithmetic 2 ms, memory {memory}, links 1: a step takes {least} ms if all overlaps, 6 if" in printed
    assert f"sequences take {least}.0 to 6.0 days" in printed


PLANNED = [
    ("longformer_base", "longformer_encoder", {"masked_lm_logits"}),
    ("ernie_base", "ernie_encoder", {"masked_lm_logits", "next_sentence_logits"}),
    ("electra_small", "electra_encoder", {"masked_lm_logits", "sampled_ids", "detection_logits"}),
]


@pytest.mark.parametrize(("size", "name", "outputs"), full_but(PLANNED, PLANNED[2]))
def test_the_planned_model_is_the_one_that_the_recipe_trains(size, name, outputs):
    module = tpu_plan()
    shape = {"num_layers": 1, "hidden_size": 12, "num_heads": 4, "intermediate_size": 7}
    phase = {"name": "mine", "size": size, "sequence_length": 16, "steps": 9, **shape}
    model = module.planned_model(phase, module.PlanConfig(vocabulary_size=29))
    assert model.encoder.name == name and set(model.output) == outputs
    assert {option: getattr(model.encoder.config, option) for option in shape} == shape


def test_optimizer_average_and_predictions_are_those_of_the_recipe():
    module, shape = tpu_plan(), {"num_layers": 1, "hidden_size": 12, "num_heads": 4, "intermediate_size": 7}
    usual = {"name": "mine", "size": "bert_tiny", "sequence_length": 20, "steps": 9, **shape}
    for options, optimizer, predictions in (
        ({}, "BertAdamW", 3),
        ({"optimizer": "lamb", "ema_momentum": 0.9}, "BertLamb", 3),
        ({"masking_rate": 0.4, "gradient_accumulation_steps": 2}, "BertAdamW", 8),
        ({"direction": "left_to_right"}, "BertAdamW", 19),
    ):
        phase, config = {**usual, **options}, module.PlanConfig(vocabulary_size=29)
        found = module.planned_model(phase, config).optimizer
        assert type(found).__name__ == optimizer and found.use_ema == ("ema_momentum" in options)
        assert found.gradient_accumulation_steps == options.get("gradient_accumulation_steps")
        inputs, _ = module.batch_of(2, module.recipe_of(phase, config), lambda shape, dtype: shape)
        assert inputs["mask_positions"] == (2, predictions)


@pytest.mark.full
def test_what_does_not_fit_is_said():
    done = plan("--topology", "v5e:2x2", "--recipe", "bert_small/phase_512", "--global_batch", "4096")
    assert done.returncode == 0 and "does not fit" in done.stdout and "of 15." in done.stdout


@pytest.mark.parametrize("bend", [0.8, 1.3])
@pytest.mark.parametrize("limit", [0, 1, 8, 9, 100, 5000])
def test_the_search_ends_between_what_fits_and_what_does_not(limit, bend):
    """If memory does not grow evenly, the search takes more calls and finds the same answer."""
    calls = []

    def room(rows):
        calls.append(rows)
        return None if rows > limit else 1e9 * (limit**bend - rows**bend)

    found = tpu_plan().most(room)
    step = max(1, 2 ** (found.bit_length() - 1) // 8) if found else 1
    assert found <= limit < found + step and len(calls) < 10


def test_the_search_goes_on_where_more_rows_take_less():
    """As happens with the compiler now and then."""
    left = {8: 100, 32: 101, 64: 40, 72: 45, 80: 20}
    calls = []

    def room(rows):
        calls.append(rows)
        return left.get(rows, 10) if rows <= 88 else None

    assert tpu_plan().most(room) == 88 and len(calls) < 10 and max(calls) < 1000
