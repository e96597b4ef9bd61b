"""Two processes that pre-train together: all callbacks of a run do in both what reads the weights."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

import pytest
from test_distribution import environments
from tiers import on

from keras_bert_training.runs import locked

pytestmark = [
    on("jax"),  # an array of all processes is JAX's
    pytest.mark.full,
]
PROGRAM = pathlib.Path(__file__).parents[1] / "distributed_pretraining.py"
SIZES = {"size": "bert_tiny", "num_layers": 1, "hidden_size": 12, "num_heads": 2, "intermediate_size": 20}


def run(prepared, directory, *more, processes=2, variables=None, status=0, **options):
    """The output of all processes, and their records of what they read; they have four minutes, and must end with this
    status."""
    config = {"data": str(prepared), "output": str(directory / "run")}
    config["distribution"] = "data_parallel" if processes > 1 else "single"
    config |= {**SIZES, "steps": 4, "steps_per_round": 2, "batch_size": 4, "validation_batches": 1, **options}
    records = [directory / f"record_{number}" for number in range(processes)]
    running = [
        subprocess.Popen(
            [sys.executable, str(PROGRAM), json.dumps(config), str(record), *more],
            env={**environment, **(variables or {}), "PYTHONPATH": os.pathsep.join(sys.path)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for environment, record in zip(environments(processes), records, strict=True)
    ]
    try:
        printed = [process.communicate(timeout=240)[0] for process in running]
    finally:
        for process in running:
            process.kill()
    assert [process.returncode for process in running] == [status] * processes, printed
    return printed, [record.read_text().split() if record.exists() else None for record in records]


def test_no_callback_of_one_process_reads_a_variable(prepared_data, tmp_path):
    printed, (one, other) = run(prepared_data(), tmp_path)
    differing = next((place for place in range(min(len(one), len(other))) if one[place] != other[place]), None)
    assert differing is None and len(one) == len(other) > 100, (differing, len(one), len(other))
    assert "held-out text" in printed[0] and "held-out text" not in printed[1]
    assert len(list((tmp_path / "run" / "tensorboard" / "train").iterdir())) == 1


def test_all_processes_end_if_another_run_is_in_their_directory(prepared_data, tmp_path):
    with locked(tmp_path / "run"):
        printed, _ = run(prepared_data(), tmp_path, status=1)
    assert "run is in use by process" in printed[0] and "Process 0 has ended with an error" in printed[1]


@pytest.mark.parametrize("processes", [1, 2])
def test_a_run_in_a_bucket_goes_on_from_it(prepared_data, tmp_path, bucket, processes):
    variables, bucket = bucket
    started = {"processes": processes, "variables": variables, "output": "gs://bucket/runs/a"}
    run(prepared_data(), tmp_path, **started)
    folder = bucket / "runs" / "a"
    weights = (folder / "encoder" / "model.safetensors").read_bytes()
    assert {"run.json", "plan.json", "history.json", "evaluation.json", "curves.png", "tensorboard"} < {
        path.name for path in folder.iterdir()
    }
    # As if the run had been preempted in its second round.
    (folder / "evaluation.json").unlink()
    shutil.rmtree(folder / "training_state" / "step-00000004")
    printed, _ = run(prepared_data(), tmp_path, **started)
    assert "resuming after step 2" in printed[0]
    assert (folder / "encoder" / "model.safetensors").read_bytes() == weights


def test_a_run_in_a_bucket_that_was_killed_in_its_first_round_goes_on(prepared_data, tmp_path, bucket):
    variables, bucket = bucket
    started = {"processes": 1, "variables": variables, "output": "gs://bucket/runs/a", "save_minutes": 1e-5}
    started |= {"steps_per_round": 4, "steps_per_execution": 1}
    run(prepared_data(), tmp_path, "killed", **started, status=-signal.SIGKILL)
    folder = bucket / "runs" / "a"
    (folder / "shared-123").write_text("left by another process")
    assert not (folder / "history.json").exists() and list((folder / "training_state").glob("step-*"))
    printed, _ = run(prepared_data(), tmp_path, **started)
    assert "resuming after step" in printed[0]
    assert [row["step"] for row in json.loads((folder / "history.json").read_text())] == [4]
