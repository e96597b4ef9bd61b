"""Fine-tuning in several processes gives the losses, weights and files of one device."""

import json
import subprocess
import sys

import keras
import numpy as np
import pytest
import safetensors.numpy
from made_runs import write_checkpoint
from made_tasks import write_ner
from test_distribution import environments
from tiers import on

from keras_bert_impl import distribution

FINETUNE = [sys.executable, "-m", "keras_bert_training", "finetune"]
KINDS = {"tensorflow": "multi_worker", "jax": "data_parallel"}
pytestmark = on(*KINDS)


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """A task of named entities that are spread unevenly over the rows, and a checkpoint to start from."""
    path = tmp_path_factory.mktemp("begun")
    write_ner(path / "data")
    write_checkpoint(path / "checkpoint")
    return path


def command(begun, name, *options):
    """The command that fine-tunes into begun/name."""
    files = ["--data", begun / "data", "--model", begun / "checkpoint", "--output", begun / name]
    usual = "--task ner --epochs 3 --batch_size 4 --learning_rate 1e-2 --dropout_rate 0 --sequence_length 40"
    # What is compiled decides how batches are cut, and TensorFlow compiles nothing for several devices.
    jit_compile = ["--jit_compile", "on" if keras.backend.backend() == "jax" else "off"]
    return [*FINETUNE, *files, *usual.split(), *jit_compile, *options]


def run(begun, name, *options, processes=1):
    """Runs the processes; returns the directory that they wrote to, and what each printed."""
    running = [
        subprocess.Popen(
            command(begun, name, *options), env=one, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for one in environments(processes, with_chief=True)
    ]
    printed = [process.communicate(timeout=300) for process in running]
    assert all(process.returncode == 0 for process in running), printed
    return begun / name, [output for output, _ in printed]


def assert_same(found, expected):
    assert sorted(path.name for path in found.iterdir()) == sorted(path.name for path in expected.iterdir())
    figures, wanted = (json.loads((path / "metrics.json").read_text()) for path in (found, expected))
    losses, wanted_losses = ([row["loss"] for row in one["history"]] for one in (figures, wanted))
    assert wanted_losses[-1] < wanted_losses[0] - 0.1
    np.testing.assert_allclose(losses, wanted_losses, atol=2e-5)
    assert figures["splits"] == wanted["splits"]
    weights, wanted = (safetensors.numpy.load_file(path / "model" / "model.safetensors") for path in (found, expected))
    for name, array in wanted.items():
        np.testing.assert_allclose(weights[name], array, atol=2e-5, err_msg=name)
    predictions = [(path / "predictions.conll").read_text() for path in (found, expected)]
    assert predictions[0] == predictions[1]


@pytest.mark.full
def test_two_processes_learn_what_one_learns_and_one_of_them_writes(begun):
    kind = ("--distribution", KINDS[keras.backend.backend()])
    found, (_, printed_by_other) = run(begun, "processes", *kind, processes=2)
    assert_same(found, run(begun, "alone")[0])
    # Before Keras is imported, no process knows which it is.
    lines = [line.strip() for line in printed_by_other.splitlines() if "[Gloo]" not in line]
    assert not [line for line in lines if line and not line.startswith("importing Keras on ")]
    again, (printed, _) = run(begun, "processes", *kind, processes=2)
    assert f"{again} holds the finished run" in printed


def test_a_batch_that_devices_cannot_share_is_refused(monkeypatch):
    monkeypatch.setattr(distribution.replicas, "num_replicas", lambda: 2)
    with pytest.raises(ValueError, match="batch_size 5 cannot be shared evenly by 2 devices"):
        distribution.check_batch_size(5)
