"""The report on an accelerator runs on a CPU with a tiny model, and its page names every part."""

import json
import os
import pathlib
import subprocess
import sys

import keras
import pytest

from keras_bert_impl.callbacks import flops

BENCHMARKS = pathlib.Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def accelerator(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.setenv("KERAS_BACKEND", keras.backend.backend())
    monkeypatch.setattr(flops, "matrix_product_ceiling", lambda *_, **more: 1e9)
    import accelerator

    return accelerator


@pytest.mark.full
def test_the_command_goes_to_its_end_and_writes_the_page(tmp_path):
    command = [sys.executable, str(BENCHMARKS / "accelerator.py"), "--output", str(tmp_path), "--size", "bert_tiny"]
    command += ["--lengths", "8", "--rows", "2", "--steps", "2", "--precision", "float32"]
    folders = os.pathsep.join([str(BENCHMARKS.parent), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "KERAS_BACKEND": keras.backend.backend(), "PYTHONPATH": folders}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-500:]
    found = json.loads((tmp_path / "accelerator.json").read_text())
    errors = [row for part in found.values() if isinstance(part, list) for row in part if "error" in row]
    assert not errors
    assert set(found) == {"devices", "checks", "step", "host", "state", "options"}
    executions = [1] if keras.backend.backend() == "torch" else [1, 2]
    assert [(row["dropout"], row["steps_per_execution"]) for row in found["step"]] == [
        (dropout, together) for dropout in (0.0, 0.1) for together in executions
    ]
    assert all(row["seconds_per_step"] > 0 and row["share_of_peak"] > 0 for row in found["step"])
    assert found["state"][0]["gigabytes"] > 0.04 and found["state"][0]["seconds_to_save"] > 0
    assert {path.name for path in tmp_path.iterdir()} == {"accelerator.json", "accelerator.txt"}, "no saved state"
    page = (tmp_path / "accelerator.txt").read_text()
    assert page.strip() in done.stdout and "2 x 8" in page and "WRONG" not in page


def measured(accelerator, monkeypatch, tmp_path, measure, *options):
    """What the command writes when `measure(name, arguments, options)` measures its parts."""
    monkeypatch.setattr(accelerator, "measure_apart", measure)
    monkeypatch.setattr(accelerator, "page", lambda found: ["the page"])
    monkeypatch.setattr(sys, "argv", ["accelerator.py", "--output", str(tmp_path), "--steps", "20", *options])
    accelerator.main()
    assert (tmp_path / "accelerator.txt").read_text() == "the page\n"
    return json.loads((tmp_path / "accelerator.json").read_text())


def test_each_part_is_measured_once_for_each_setting(accelerator, monkeypatch, tmp_path):
    found = measured(accelerator, monkeypatch, tmp_path, lambda name, arguments, options: arguments, "--peer")
    executions = 1 if keras.backend.backend() == "torch" else 2
    counts = {name: len(rows) for name, rows in found.items() if name != "options"}
    assert counts == {
        "devices": 1, "checks": 1, "step": 4 * executions, "host": executions, "state": 1, "peer": 4,
    }  # fmt: skip


def test_a_step_that_does_not_fit_is_measured_with_a_quarter_of_the_rows(accelerator, monkeypatch, tmp_path):
    def measure(name, arguments, options):
        if name == "step" and options["rows"] is None:
            return {"error": "out of memory"}
        return {"rows": options["rows"]}

    found = measured(accelerator, monkeypatch, tmp_path, measure, "--lengths", "512")
    assert {row["rows"] for row in found["step"]} == {accelerator.ROWS["bert_base", 512] // 4}
    found = measured(accelerator, monkeypatch, tmp_path, measure, "--lengths", "512", "--rows", "7")
    assert {row["rows"] for row in found["step"]} == {7}, "rows that were asked for are not changed"


STATE = {"gigabytes": 1.0, "seconds_to_save": 1.0, "seconds_to_restore": 1.0}


def test_a_part_that_fails_is_a_line_of_the_page(accelerator):
    found = {
        "devices": [{"device": "TPU v4"}],
        "checks": [{"error": "no output"}],
        "step": [{"length": 512, "dropout": 0.1, "together": 20, "error": "RESOURCE_EXHAUSTED: out of memory"}],
        "host": [{"together": 1, "error": "lost"}],
        "state": [{"error": "No space left"}],
    }
    text = "\n".join(accelerator.page(found))
    for error in ("no output", "RESOURCE_EXHAUSTED", "1 steps an execution: lost", "No space left"):
        assert error in text


def test_the_page_shows_a_wrong_kernel_and_says_which_attention_was_chosen_and_why(accelerator):
    refused = "Attention keeps its probabilities in memory, without the TPU kernel: on this device, its values differ"
    checks = {
        "gelu": {"difference": 0.5, "allowed": 0.05, "is_right": False},
        "attention, dropout": {"difference": 0.001, "allowed": 0.02, "is_right": True, "chosen": "by_ops"},
        "warnings": [refused],
    }
    text = "\n".join(accelerator.page({"devices": [{}], "checks": [checks], "host": [], "state": [STATE]}))
    assert "WRONG" in text and "attention, dropout  1.00e-03 (0.02) right  by_ops\n" in text
    assert text.endswith(f"warnings\n  {refused}")


def test_published_figures_are_kept_at_once_and_the_same_command_goes_on(accelerator, monkeypatch, tmp_path):
    public, row = (
        accelerator.accelerator_public,
        {"seconds_per_step": 0.1, "seconds_of_first_steps": 9, "memory_gib": 2},
    )
    figure = public.Figure("A step", "bert_base", "pretrain", 2, 8, (public.TORCH, public.PEER), ahead=1.2)
    monkeypatch.setattr(public, "FIGURES", (figure,))
    monkeypatch.setattr(accelerator, "started", lambda name, arguments, options, backend: (arguments, backend))
    measured = []

    def found_by(process, arguments, timeout):
        measured.append(process)
        if len(measured) == 3:
            raise KeyboardInterrupt
        return {**row, "sequences_per_second": 30.0 if process[0].get("side") == public.TORCH else 20.0}

    monkeypatch.setattr(accelerator, "found_by", found_by)
    options = {"output": str(tmp_path), "minutes": 9, "small": True, "steps": 2}
    with pytest.raises(KeyboardInterrupt):
        accelerator.measure_public(options)
    assert "transformers compiled by torch: not measured yet" in (tmp_path / "public.txt").read_text()
    accelerator.measure_public(options)
    assert [(one[0].get("side"), one[1]) for one in measured] == [
        *((None, "jax"), (public.TORCH, "torch"), (public.PEER, "torch"), (public.PEER, "torch")),
    ]
    text = (tmp_path / "public.txt").read_text()
    assert (
        "torch: 30.0 sequences/s, 100.0 ms" in text and "1.50 times transformers compiled by torch (goal 1.2)" in text
    )
