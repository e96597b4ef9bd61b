"""Training that was stopped resumes bit for bit, whatever stopped it."""

import json
import os
import signal
import subprocess
import sys
import time
import types

import keras
import numpy as np
import pytest
from interrupted_runs import assert_equal_states, interrupted, last_state, prepare
from test_distribution import environments
from tiers import full_but, on, once, three_in_full

from keras_bert_impl.callbacks import training_figures
from keras_bert_impl.callbacks.saved_states import TrainingState
from keras_bert_training import pretraining, pretraining_plan
from keras_bert_training.runs import parse

pytestmark = pytest.mark.usefixtures("without_reports")
PRETRAIN = [sys.executable, "-m", "keras_bert_training", "pretrain"]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory, without_reports):
    return prepare(tmp_path_factory.mktemp("prepared"), sequence_length=16, pairs="next_sentence")


def config_of(prepared, output, **options):
    usual = {"size": "bert_tiny", "num_layers": 1, "hidden_size": 12, "num_heads": 2, "intermediate_size": 20}
    usual |= {"steps": 12, "steps_per_round": 3, "batch_size": 4, "validation_batches": 1, "jit_compile": "off"}
    return pretraining.PretrainConfig(str(prepared), str(output), **{**usual, **options})


@pytest.fixture(scope="module")
def whole(prepared, tmp_path_factory):
    """The directory of an uninterrupted run."""
    directory = tmp_path_factory.mktemp("whole") / "run"
    pretraining.run(config_of(prepared, directory))
    return directory


@three_in_full
def test_an_interrupted_run_ends_as_an_uninterrupted_one(prepared, whole, tmp_path, monkeypatch, capsys):
    """The run has dropout, whose random numbers continue too; it stops within a round, or at its end."""
    for at_step in (2, 9):
        with monkeypatch.context() as patch:
            interrupted(pretraining.run, config_of(prepared, tmp_path / "broken"), patch, at_step)
    printed = capsys.readouterr().out
    rounds = (f"Round {number}: steps {3 * number - 2} to {3 * number} of 12" for number in (1, 2, 3))
    assert all(one in printed for one in rounds) and "Epoch" not in printed
    pretraining.run(config_of(prepared, tmp_path / "broken"))
    assert_equal_states(last_state(tmp_path / "broken"), last_state(whole))
    assert [row["step"] for row in json.loads((tmp_path / "broken" / "history.json").read_text())] == [3, 6, 9, 12]


def test_the_card_says_which_positions_have_learnt_nothing(prepared, whole, tmp_path):
    said = "Positions from 16 on have learnt nothing"
    assert said in (whole / "encoder" / "README.md").read_text() and said in (whole / "report.html").read_text()
    given = {"steps": 2, "batch_size": 4, "validation_batches": 1, "init": str(whole / "encoder")}
    pretraining.run(pretraining.PretrainConfig(str(prepared), str(tmp_path / "on"), **given))
    assert said not in (tmp_path / "on" / "encoder" / "README.md").read_text(), "the checkpoint may have learnt them"


ROWS = {"sequence_length": 16, "packed": True}
REPLACED = {"objective": "replaced_tokens", "generator_size": 0.5}
# What is prepared, and what is trained. A fifth step is half of an update of "averages".
OTHERS = {
    "roberta": ({**ROWS, "pairs": "full_sentences"}, {"size": "roberta_small"}),
    "albert": ({**ROWS, "pairs": "sentence_order"}, {"size": "albert_base", "num_layers": 2}),
    "electra": (ROWS, {"size": "electra_small", **REPLACED}),
    "deberta": (ROWS, {"size": "deberta_v3_small", **REPLACED}),
    "spans": ({**ROWS, "pairs": "doc_sentences"}, {"objective": "span_boundary", "masking_unit": "span"}),
    "averages": (ROWS, {"optimizer": "lamb", "ema_momentum": 0.9, "gradient_accumulation_steps": 2}),
}


@pytest.mark.parametrize("case", full_but([*OTHERS], "deberta", "averages"))
def test_an_interrupted_run_of_another_kind_ends_as_an_uninterrupted_one(case, without_reports, tmp_path, monkeypatch):
    of_rows, options = OTHERS[case]
    prepared, options = prepare(tmp_path, **of_rows), {**options, "steps": 6}
    pretraining.run(config_of(prepared, tmp_path / "whole", **options))
    with monkeypatch.context() as patch:
        interrupted(pretraining.run, config_of(prepared, tmp_path / "broken", **options), patch, 5)
    pretraining.run(config_of(prepared, tmp_path / "broken", **options))
    assert_equal_states(last_state(tmp_path / "broken"), last_state(tmp_path / "whole"))
    for model in (tmp_path / "whole" / "encoder").rglob("model.safetensors"):
        other = tmp_path / "broken" / "encoder" / model.relative_to(tmp_path / "whole" / "encoder")
        assert model.read_bytes() == other.read_bytes()


def test_sigterm_saves_the_step_and_the_run_goes_on_from_it(prepared, tmp_path, monkeypatch):
    config = config_of(prepared, tmp_path / "run")

    class Terminated(pretraining.Rounds):
        def on_train_batch_end(self, batch, logs=None):
            if self.step == 4:
                os.kill(os.getpid(), signal.SIGTERM)
                time.sleep(0.1)
            super().on_train_batch_end(batch, logs)

    with monkeypatch.context() as patch:
        patch.setattr(pretraining, "Rounds", Terminated)
        with pytest.raises(SystemExit) as ended:
            pretraining.run(config)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    assert ended.value.code == 143 and last_state(tmp_path / "run")[0] == 5
    pretraining.run(config)
    assert last_state(tmp_path / "run")[0] == 12


# Keras has no steps_per_execution on torch.
TOGETHER = pytest.param({"steps_per_execution": 3}, marks=[pytest.mark.full, on("tensorflow", "jax")])


@pytest.mark.parametrize("options", [{}, TOGETHER])
def test_a_loss_that_is_no_number_stops_with_its_batch(options, prepared, tmp_path):
    with pytest.raises(
        ValueError, match=r"The loss of step \d+ is (nan|inf).*diverged_step_\d+.npz holds the examples"
    ):
        pretraining.run(config_of(prepared, tmp_path / "run", learning_rate=1e30, warmup_share=0.0, **options))
    (path,) = (tmp_path / "run").glob("diverged_step_*.npz")
    with np.load(path) as batch:
        assert batch["token_ids"].shape == (4, 16) and batch["mask_ids"].shape == (4, 2)


@pytest.mark.full
@on("tensorflow", "jax")  # Keras has no steps_per_execution on torch
def test_a_run_of_executions_goes_on_as_it_began_also_on_a_cpu(prepared, whole, tmp_path, monkeypatch):
    """It begins on an accelerator, which executes steps together, and is resumed without one, in the same rounds."""
    config = config_of(prepared, tmp_path / "broken")
    with monkeypatch.context() as patch:
        patch.setattr(pretraining_plan, "usual_steps_per_execution", lambda steps: 3)
        interrupted(pretraining.run, config, patch, 6)
    pretraining.run(config)
    assert json.loads((tmp_path / "broken" / "plan.json").read_text())["steps_per_execution"] == 3
    rounds = json.loads((tmp_path / "broken" / "history.json").read_text())
    assert [row["step"] for row in rounds] == [3, 6, 9, 12]
    assert_equal_states(last_state(tmp_path / "broken"), last_state(whole))


@pytest.mark.full
def test_killed_by_force_it_ends_as_if_it_had_not_been(prepared, tmp_path):
    """SIGKILL cannot be handled by a process; the first falls into the writing of a state."""
    options = "--size bert_tiny --batch_size 8 --steps 200 --steps_per_round 10 --validation_batches 1"

    def start(output):
        command = [*PRETRAIN, "--data", prepared, "--output", output, "--jit_compile", "off", *options.split()]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL)

    def states():
        return {path.name for path in (tmp_path / "broken" / "training_state").glob("*.npz")}

    for is_moment in (lambda new: new > {"writing.npz"}, lambda new: new - {"writing.npz"}):
        before, process = states(), start(tmp_path / "broken")
        while process.poll() is None and not is_moment(states() - before):
            time.sleep(0.0005)
        process.kill()
        assert process.wait() == -signal.SIGKILL, "it ended before its moment came"
    assert [start(tmp_path / name).wait() for name in ("broken", "whole")] == [0, 0]
    assert_equal_states(last_state(tmp_path / "broken"), last_state(tmp_path / "whole"))
    one, other = (tmp_path / name / "encoder" / "model.safetensors" for name in ("broken", "whole"))
    assert one.read_bytes() == other.read_bytes()


# Options of a training in two processes.
KIND = {"tensorflow": "multi_worker", "jax": "data_parallel"}
OTHER = {"tensorflow": ("mirrored", "4"), "jax": ("data_parallel", "4")}


def shared_command(prepared, output, *options):
    shape = "--size bert_tiny --num_layers 1 --hidden_size 12 --num_heads 2 --intermediate_size 20 --dropout_rate 0"
    length = "--steps 120 --steps_per_round 10 --batch_size 8 --validation_batches 1"
    more = ["--jit_compile", "on" if keras.backend.backend() == "jax" else "off", *options]
    files = ["--data", str(prepared), "--output", str(output)]
    return [*PRETRAIN, *files, *shape.split(), *length.split(), *more]


def two_processes(prepared, output):
    """Starts a training in two processes and waits for its first saved state."""
    kind = ("--distribution", KIND[keras.backend.backend()])
    processes = [
        subprocess.Popen(
            shared_command(prepared, output, *kind),
            env=one,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        for one in environments(2)
    ]
    while not TrainingState(output / "training_state").paths():
        assert processes[0].poll() is None, processes[0].communicate()[0]
        time.sleep(0.05)
    return processes


@pytest.mark.full
@on("jax")  # its processes tell one another
def test_when_one_of_two_processes_is_asked_to_end(prepared, tmp_path):
    """Both save the same step and end, and the same command resumes from it."""
    processes = two_processes(prepared, tmp_path / "run")
    processes[1].send_signal(signal.SIGTERM)
    printed = [process.communicate(timeout=60)[0] for process in processes]
    assert [process.returncode for process in processes] == [143, 143], printed
    step, _, _ = last_state(tmp_path / "run")
    assert f"Asked to end: step {step} is saved" in printed[0]
    again = [
        subprocess.Popen(shared_command(prepared, tmp_path / "run", "--distribution", "data_parallel"), env=one)
        for one in environments(2)
    ]
    assert [process.wait(timeout=120) for process in again] == [0, 0]
    assert last_state(tmp_path / "run")[0] == 120


@pytest.fixture(scope="module")
def alone(prepared, tmp_path_factory):
    """The weights of the same training in one process."""
    command = shared_command(prepared, tmp_path_factory.mktemp("alone") / "run")
    config = parse(pretraining.PretrainConfig, command[len(PRETRAIN) :])
    pretraining.run(config)
    return last_state(config.output)[1]


@pytest.mark.full
@on(*KIND)
@pytest.mark.parametrize("victim", [0, 1])
def test_when_one_of_two_processes_is_killed(victim, prepared, alone, tmp_path):
    """The other process ends within a minute; other devices resume from its last state and reach the same weights."""
    output = tmp_path / "together"
    environment = {**os.environ, "KERAS_BACKEND": keras.backend.backend()}
    processes = two_processes(prepared, output)
    processes[victim].kill()
    killed = time.monotonic()
    printed, _ = processes[1 - victim].communicate(timeout=120)
    assert time.monotonic() - killed < 60
    assert processes[1 - victim].returncode != 0
    assert "another one was killed or cannot be reached" in printed
    step, _, _ = last_state(output)
    assert 0 < step < 120
    kind, devices = OTHER[keras.backend.backend()]
    command = shared_command(prepared, output, "--distribution", kind, "--devices", devices)
    done = subprocess.run(command, check=True, env=environment, capture_output=True, text=True)
    assert f"resuming after step {step}" in done.stdout
    found = last_state(output)[1]
    assert found.keys() == alone.keys()
    for name, array in alone.items():
        np.testing.assert_allclose(found[name], array, atol=2e-5, err_msg=name)


class Clock:
    """A clock that training moves on: by `seconds(step)` for each step, and by one second for each validation."""

    def __init__(self, patch, seconds):
        self.now = 0.0
        clock = types.SimpleNamespace(monotonic=lambda: self.now)
        patch.setattr(pretraining_plan, "time", clock)
        patch.setattr(training_figures, "time", clock)
        patch.setattr(pretraining_plan, "measure_step", lambda *_: 2.0)

        class Timed(pretraining_plan.Rounds):
            def on_train_batch_end(rounds, batch, logs=None):
                self.now += seconds(rounds.step)
                super().on_train_batch_end(batch, logs)

            def on_test_end(rounds, logs=None):
                self.now += 1.0

        patch.setattr(pretraining, "Rounds", Timed)


def history(output):
    return json.loads((output / "history.json").read_text())


MINUTE = {"steps": None, "max_minutes": 1.0, "steps_per_round": 6, "learning_rate": 1e-3}
# Seconds per step: two while the steps are planned.
SPEEDS = {
    "slower": lambda step: 2.0 if step <= 12 else 4.3,
    "faster": lambda step: 2.0 if step <= 12 else 0.7,
    "slower_near_the_end": lambda step: 2.0 if step <= 22 else 4.3,
    # The round from step 12 ends when it has taken three quarters of the remaining time.
    "much_slower": lambda step: 2.0 if step <= 12 else 7.0,
}


@once  # plans are made alike on every backend
@pytest.mark.parametrize("speed", full_but(SPEEDS, "slower"))
def test_the_rate_is_0_when_the_time_is_up_however_fast_the_machine(prepared, tmp_path, monkeypatch, capsys, speed):
    """28 steps are planned from the speed at the start; as many are done as there is time for."""
    Clock(monkeypatch, SPEEDS[speed])
    pretraining.run(config_of(prepared, tmp_path / "run", **MINUTE))
    printed = capsys.readouterr().out
    assert "Round 1: steps 1 to 6 of about 28" in printed and "Epoch" not in printed, "how many follow is not known"
    rows = history(tmp_path / "run")
    assert json.loads((tmp_path / "run" / "plan.json").read_text())["steps"] == 28
    steps, rates = [row["step"] for row in rows], [row["learning_rate"] for row in rows]
    assert steps[-1] == rows[-1]["planned_steps"], "the schedule is 0 there"
    assert rates == sorted(rates, reverse=True), "after the warm-up it falls all the time"
    # The rate of the last update is one step from 0, and as many steps as the last round has lead there from the rate
    # that the round began with, which is below that of the update before.
    assert 0 < rates[-1] * (steps[-1] - steps[-2]) < rates[-2] and rates[-1] < 0.4 * MINUTE["learning_rate"]
    assert 0.9 < rows[-1]["minutes"] < 1.1


@pytest.mark.full
def test_a_run_of_a_minute_goes_on_as_planned(prepared, tmp_path, monkeypatch):
    """The time of an interrupted round does not count: with the same speeds, all plans are the same."""
    for name, breaks in (("whole", ()), ("broken", (15, 19))):  # within a round, in the last round
        config = config_of(prepared, tmp_path / name, **MINUTE)
        for at_step in breaks:
            with monkeypatch.context() as patch:
                Clock(patch, SPEEDS["slower"])
                interrupted(pretraining.run, config, patch, at_step)
        with monkeypatch.context() as patch:
            Clock(patch, SPEEDS["slower"])
            pretraining.run(config)
    rows = [
        [(row["step"], row["planned_steps"], row["learning_rate"]) for row in history(tmp_path / name)]
        for name in ("whole", "broken")
    ]
    assert rows[0] == rows[1]
    assert_equal_states(last_state(tmp_path / "broken"), last_state(tmp_path / "whole"))
    # As if the run had ended after the last step, before the figures were written: the time is up, nothing is trained.
    (tmp_path / "whole" / "evaluation.json").unlink()
    pretraining.run(config_of(prepared, tmp_path / "whole", **MINUTE))
    assert_equal_states(last_state(tmp_path / "broken"), last_state(tmp_path / "whole"))


@once  # plans are made alike on every backend
def test_a_first_round_that_only_compiles_does_not_make_the_run_shorter(prepared, tmp_path, monkeypatch):
    """Steps of 20 s and then of 2 s: in the minute there is time for 1 + 20 of them, less the validations."""
    Clock(monkeypatch, lambda step: 20.0 if step == 0 else 2.0)
    pretraining.run(config_of(prepared, tmp_path / "run", **{**MINUTE, "steps_per_round": 1}))
    assert 12 <= history(tmp_path / "run")[-1]["step"] <= 21


@once
def test_a_run_ends_where_a_new_plan_says_even_within_rounds_of_one_size(prepared, tmp_path, monkeypatch):
    """After six steps of 2 s each takes 30 s: the plan ends with the next round, of the size of the one before."""
    Clock(monkeypatch, lambda step: 2.0 if step < 6 else 30.0)
    pretraining.run(config_of(prepared, tmp_path / "run", **{**MINUTE, "steps_per_round": 1}))
    rows = history(tmp_path / "run")
    assert rows[-1]["step"] == rows[-1]["planned_steps"] == 8
