"""Ablation studies: rows that differ in one thing, their table, and going on where they were interrupted."""

import json
import os
import pathlib
import socket

import pytest
from made_studies import config_of, study_of
from made_tasks import write_ner
from tiers import once

from keras_bert_impl.studies import ablation, ablation_plan, ablation_report, ablation_study
from keras_bert_impl.studies.ablation_study import read_recipe, read_study
from keras_bert_impl.training import claims, finetuning, pretraining

pytestmark = [once, pytest.mark.usefixtures("without_reports")]


@pytest.fixture(scope="module")
def finished(tmp_path_factory, prepared_data, without_reports):
    """The folder of a finished study, and what it returned."""
    folder = tmp_path_factory.mktemp("ablation")
    return folder, ablation.run(config_of(folder, prepared_data()))


@pytest.mark.full
def test_the_table_has_every_row_beside_the_paper_s(finished):
    folder, table = finished
    tasks = {row["name"]: sorted(row["tasks"]) for row in table["rows"]}
    # Frozen features are for tasks that label words.
    assert tasks == {"joined": ["follows", "names"], "left, BiLSTM": ["follows", "names"], "left, features": ["names"]}
    assert table["rows"][0]["paper"] == {"SQuAD": 77.8}
    assert all(row["pretraining"]["steps"] == 4 and row["pretraining"]["perplexities"][0] > 1 for row in table["rows"])
    text = (folder / "run" / "table.md").read_text()
    assert "| joined | 4 |" in text and "paper: SQuAD |" in text and "77.8" in text
    assert (folder / "run" / "table.png").stat().st_size > 5000


@pytest.mark.full
def test_rows_with_equal_options_share_a_pretraining_run(finished):
    folder, _ = finished
    runs = sorted(path.name for path in (folder / "run" / "pretrain").iterdir() if path.is_dir())
    assert runs == ["direction=left_to_right", "direction=right_to_left"]


def test_a_finished_study_runs_nothing_again(finished, prepared_data, monkeypatch):
    folder, table = finished
    for module in (pretraining, finetuning):
        monkeypatch.setattr(module, "run", lambda config: pytest.fail("ran again"))
    assert ablation.run(config_of(folder, prepared_data())) == table


def test_an_interrupted_study_goes_on_and_gives_the_same_table(tmp_path, prepared_data, monkeypatch):
    write_ner(tmp_path / "ner")
    rows = [{"name": "whole"}, {"name": "no next sentence", "pretrain": {"next_sentence": False}}]
    options = {"rows": rows, "tasks": [f"ner={tmp_path / 'ner'}"], "seeds": 2}
    whole = ablation.run(config_of(tmp_path, prepared_data(), "whole", **options))
    run, calls = finetuning.run, []

    def interrupted(config):
        calls.append(config.output)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return run(config)

    monkeypatch.setattr(finetuning, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ablation.run(config_of(tmp_path, prepared_data(), "stopped", **options))
    again = ablation.run(config_of(tmp_path, prepared_data(), "stopped", **options))
    assert len(calls) == 5 and len(set(calls)) == 4  # only the interrupted one ran twice
    for table in (whole, again):
        for row in table["rows"]:
            row["pretraining"].pop("minutes")
    assert again == whole
    for row in whole["rows"]:
        paths = [tmp_path / "whole" / "finetune" / ablation_plan.folder_name(row["name"]) / "ner" / f"seed_{seed}"
                 for seed in range(2)]  # fmt: skip
        values = [json.loads((path / "metrics.json").read_text())["history"][0]["value"] for path in paths]
        found = row["tasks"]["ner"]
        assert found["values"] == values
        assert found["mean"] == pytest.approx(sum(values) / 2)
        assert found["deviation"] == pytest.approx(abs(values[0] - values[1]) / 2**0.5)


@pytest.mark.full
def test_fine_tuning_runs_start_from_the_pretraining_runs_in_turn(tmp_path, prepared_data):
    write_ner(tmp_path / "ner")
    rows = [{"name": "joined", "pretrain": {"direction": "left_to_right"}, "join": {"direction": "right_to_left"}}]
    options = {"rows": rows, "tasks": [f"ner={tmp_path / 'ner'}"], "seeds": 3, "pretraining_seeds": 2, "seed": 5}
    table = ablation.run(config_of(tmp_path, prepared_data(), **options))

    def options_in(place):
        return json.loads((tmp_path / "run" / place / "run.json").read_text())["configuration"]

    for seed, start in ((0, "seed_5"), (1, "seed_6"), (2, "seed_5")):
        tuned = options_in(f"finetune/joined/ner/seed_{seed}")
        assert tuned["seed"] == seed
        assert pathlib.Path(tuned["model"]).parts[-3:] == ("direction=left_to_right", start, "encoder")
        assert pathlib.Path(tuned["join"]).parts[-3:] == ("direction=right_to_left", start, "encoder")
    for direction in ("left_to_right", "right_to_left"):
        places = [f"pretrain/direction={direction}/seed_{seed}" for seed in (5, 6)]
        assert [options_in(place)["seed"] for place in places] == [5, 6]
        losses = [json.loads((tmp_path / "run" / place / "history.json").read_text())[-1]["loss"] for place in places]
        assert losses[0] != losses[1]
    first, second = table["rows"][0]["pretraining"]["perplexities"]
    assert first != second
    assert "2 pre-training runs of 4 steps" in table["about"]


def test_equal_arithmetic_gives_a_model_with_half_of_the_blocks_more_steps(tmp_path, prepared_data):
    rows = [{"name": "two", "pretrain": {"num_layers": 2}}, {"name": "one"}]
    config = config_of(tmp_path, prepared_data(), rows=rows)
    study, recipe = read_study(config.study)._replace(equal_arithmetic=True), read_recipe(config.recipe)
    plan = ablation_plan.Plan(config, study, recipe, prepared_data(), [], tmp_path)
    first, second = (plan.pretrain_config(row, row.pretrain) for row in study.rows)
    assert plan.equal_steps(first) == 4
    assert (
        plan.equal_steps(second)
        == round(4 * ablation_plan.flops_of_step(first) / ablation_plan.flops_of_step(second))
        > 4
    )


def test_mean_and_deviation_of_three_seeds():
    assert ablation_report.mean_and_deviation([0.5, 0.6, 0.7]) == (pytest.approx(0.6), pytest.approx(0.1))
    assert ablation_report.mean_and_deviation([0.5]) == (0.5, None)
    assert ablation_report.shown([0.5, 0.6, 0.7]) == "60.0 ± 10.0"
    assert ablation_report.shown([0.61234]) == "61.2"
    assert ablation_report.shown([71.0, 73.0], unit=1) == "72.0 ± 1.4"
    assert ablation_report.shown(None) == ""


@pytest.mark.parametrize("name", ablation_study.study_names())
def test_every_study_of_the_package_can_be_read(name):
    study = read_study(name)
    assert len(study.rows) >= 2 and study.title and study.paper


def test_how_a_recipe_masks_is_not_asked_of_rows_that_read_one_side(tmp_path):
    study, recipe = read_study("directions"), read_recipe("short")
    plan = ablation_plan.Plan(ablation.AblateConfig(str(tmp_path), "directions"), study, recipe, tmp_path, [], tmp_path)
    rates = [plan.pretrain_config(row, row.pretrain).masking_rate for row in study.rows]
    assert rates == [0.4, 0.15, 0.15, 0.15]


@pytest.mark.parametrize("name", ["usual", "short"])
def test_every_recipe_of_the_package_can_be_read(name):
    assert read_recipe(name)["pretrain"]["steps"] > 0


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            {"pretrain": {"mask_rate": 1}},
            "study.yaml, row 'one': there is no option 'mask_rate'; keras-bert pretrain has",
        ),
        ({"finetune": {"layers": 1}}, "study.yaml, row 'one': there is no option 'layers'; keras-bert finetune has"),
        ({"pretain": {}}, "study.yaml, row 'one': there is no option 'pretain'; it can have name, pretrain, finetune"),
        ({"pretrain": {"steps": 7}}, "study.yaml, row 'one': steps is set by keras-bert ablate itself"),
        ({"prepare": {"pair": 1}}, "study.yaml, row 'one': there is no option 'pair'; keras-bert prepare-data has"),
        ({"prepare": {"seed": 1}}, "study.yaml, row 'one': seed is set by keras-bert ablate itself"),
        ({"prepare": {"input": "a"}}, "study.yaml, row 'one': input is set by keras-bert ablate itself"),
        ({"join": {"up": 1}}, "study.yaml, row 'one': there is no option 'up'"),
        ({"share_of_steps": 2}, "study.yaml, row 'one': share_of_steps 2 must be above 0 and at most 1"),
    ],
)
def test_a_row_with_an_unknown_option_is_refused_by_file_and_row(row, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        read_study(study_of(tmp_path, [{"name": "one", **row}]))


def test_two_rows_of_one_name_and_an_unknown_study_are_refused(tmp_path):
    with pytest.raises(ValueError, match="two rows are named 'one'"):
        read_study(study_of(tmp_path, [{"name": "one"}, {"name": "one", "pretrain": {"size": "bert_mini"}}]))
    with pytest.raises(ValueError, match=r"the rows 'mask 80%' and 'mask 80!' .* would share their results"):
        read_study(study_of(tmp_path, [{"name": "mask 80%"}, {"name": "mask 80!"}]))
    with pytest.raises(ValueError, match="nothing is neither a file nor a study of the package; its studies are"):
        read_study("nothing")


def test_a_claim_of_a_living_process_is_kept_and_that_of_a_dead_one_is_not(tmp_path):
    place = tmp_path / "run"
    (tmp_path / "run.claim").write_text("process 1 on another-host")  # which has died: nothing holds the lock
    with claims.claimed(place) as is_ours:
        assert is_ours
        with claims.claimed(place) as is_ours_too:
            assert not is_ours_too
        assert (tmp_path / "run.claim").read_text() == f"process {os.getpid()} on {socket.gethostname()}"
    assert not (tmp_path / "run.claim").exists()


def test_options_that_contradict_each_other_are_refused(tmp_path):
    study = read_study("steps")
    for options, message in (
        ({"steps": 8, "minutes": 1.0}, "give only one of them"),
        ({"minutes": 1.0}, "give --steps instead of --minutes"),
        ({"seeds": 0}, "seeds 0 is out of range: expected at least 1"),
        ({"pretraining_seeds": 0}, "pretraining_seeds 0 is out of range: expected at least 1"),
        ({"pretraining_seeds": 4}, "pretraining_seeds 4 must be at most seeds, 3"),
        ({"data": "a", "input": "b"}, "is prepared already"),
    ):
        with pytest.raises(ValueError, match=message):
            ablation.check_config(ablation.AblateConfig(str(tmp_path), "steps", **options), study)


def test_a_task_that_is_not_known_is_refused_before_the_corpus_is_prepared(tmp_path):
    config = ablation.AblateConfig(str(tmp_path / "run"), "steps", tasks=[f"sst2={tmp_path}"])
    with pytest.raises(ValueError, match=r"There is no task 'sst2': give one of .* sst-2"):
        ablation.run(config)
    assert not (tmp_path / "run").exists()


def test_a_row_with_data_of_its_own_has_a_run_of_its_own_and_finishes(tmp_path, prepared_data):
    write_ner(tmp_path / "ner")
    rows = [{"name": "pairs"}, {"name": "sentences", "prepare": {"pairs": "doc_sentences"}}]
    for _ in range(2):  # the second time, everything is there
        table = ablation.run(config_of(tmp_path, prepared_data(), rows=rows, tasks=[f"ner={tmp_path / 'ner'}"]))
    assert [sorted(row["tasks"]) for row in table["rows"]] == [["ner"], ["ner"]]
    runs = sorted(path.name for path in (tmp_path / "run" / "pretrain").iterdir() if path.is_dir())
    assert runs == ["prepare.pairs=doc_sentences", "recipe"]
    places = [tmp_path / "run" / "pretrain" / run / "seed_0" / "evaluation.json" for run in runs]
    evaluations = [json.loads(place.read_text()) for place in places]
    assert evaluations[0]["next_sentence_accuracy"] is None and evaluations[1]["next_sentence_accuracy"] is not None
