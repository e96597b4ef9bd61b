"""States of several JAX processes: any number of them resumes these, to the bit, and a killed save harms nothing."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest
from test_distribution import environments
from tiers import on

from keras_bert_impl.callbacks.saved_states import TrainingState

pytestmark = [on("jax"), pytest.mark.full]  # only JAX's processes write together
PROGRAM = pathlib.Path(__file__).with_name("distributed_states.py")


def train(directory, processes, steps, environment=None, **options):
    """What each process of tests/distributed_states.py prints; None of one that was killed. They have five minutes."""
    more = environment or {}
    options |= {"steps": steps, "distribution": "data_parallel" if processes > 1 else "single"}
    running = [
        subprocess.Popen(
            [sys.executable, str(PROGRAM), json.dumps(options), str(directory)],
            env={**environment, **more, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for environment in environments(processes)
    ]
    try:
        printed = [process.communicate(timeout=300) for process in running]
    finally:
        for process in running:
            process.kill()
    if "kill" in options:
        return None
    assert all(process.returncode == 0 for process in running), printed
    return [json.loads(output.splitlines()[-1]) for output, _ in printed]


@pytest.fixture(scope="module")
def of_two(tmp_path_factory):
    """A training of six steps by two processes: its directory, and what they printed."""
    directory = tmp_path_factory.mktemp("two") / "states"
    return directory, train(directory, 2, 6)


def test_one_process_restores_what_two_have_saved(of_two, tmp_path):
    shutil.copytree(of_two[0], tmp_path / "states")
    (found,) = train(tmp_path / "states", 1, 6)
    assert found == of_two[1][0] | {"begun": 6}
    assert [path.name for path in TrainingState(tmp_path / "states").paths()] == ["step-00000003", "step-00000006"]


def test_two_processes_restore_what_one_has_saved(tmp_path):
    (saved,) = train(tmp_path / "states", 1, 6)
    assert train(tmp_path / "states", 2, 6, apart=True) == [saved | {"begun": 6}] * 2


def test_killed_while_a_state_is_written_two_processes_end_as_if_they_had_not_been(of_two, tmp_path):
    train(tmp_path / "states", 2, 6, kill=6)
    state = TrainingState(tmp_path / "states")
    assert [path.name for path in state.paths()] == ["step-00000003"], "the write was over before the kill"
    assert train(tmp_path / "states", 2, 6) == [one | {"begun": 3} for one in of_two[1]]


def test_directories_that_the_processes_do_not_share_are_refused(tmp_path):
    found = train(tmp_path / "states", 2, 6, private=True)
    assert "is not the directory of the first process: all hosts must share it" in found[1]["error"]
    assert "Process 1 has ended with an error" in found[0]["error"]


def test_the_clock_of_the_first_process_saves_in_all(tmp_path):
    """Every moment is a time to save: within the epoch at the first step, and also at the second if steps take long."""
    found = train(tmp_path / "states", 2, 3, every_minutes=0.0)
    assert [one["step"] for one in found] == [3, 3]
    within, end = TrainingState(tmp_path / "states").paths()
    assert within.name in ("step-00000001", "step-00000002") and end.name == "step-00000003"


def test_processes_save_to_a_bucket_and_go_on_from_it(of_two, bucket):
    """What is in the bucket without its last file, as a killed save leaves it, does not count."""
    environment, folder = bucket
    assert train("gs://bucket/run", 2, 6, environment) == of_two[1]
    assert sorted(path.name for path in (folder / "run").iterdir()) == ["step-00000003", "step-00000006"]
    (folder / "run" / "step-00000006" / "commit_success.txt").unlink()
    assert train("gs://bucket/run", 2, 6, environment) == [one | {"begun": 3} for one in of_two[1]]
