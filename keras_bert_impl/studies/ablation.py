"""Repeats an ablation study of the paper: rows that differ in one thing are pre-trained, fine-tuned and compared.

    keras-bert ablate --study pretraining_tasks --output runs/ablate --short
    keras-bert ablate --study masking --input novels --tasks mrpc=glue/MRPC --tasks sst-2=glue/SST-2 --output runs/a
    keras-bert ablate --study my_study.yaml --recipe my_recipe.yaml --output runs/mine

All rows have the corpus, the steps (or minutes) and the recipe in common, and each task is fine-tuned with several
seeds. The output directory holds:
    table.md, table.json, table.png   means and deviations beside the paper's figures, as far as rows are finished
    report.html                       all of it on one page
    run.json                          options and versions
    data/, tasks/                     the prepared corpus, and the tasks made from it
    data,OPTIONS/                     the corpus prepared with the options of some rows; random_phrases.txt
    pretrain/OPTIONS/seed_N/          the pre-training runs; rows with the same options share them
    finetune/ROW/TASK/seed_N/         figures and predictions of the fine-tuning runs, without their models

The same command resumes an interrupted study: what is finished is not run again. The same command in a second process,
on another device or machine that shares the directory, takes its share of the runs that are left.
"""

import json
import pathlib
import time

import numpy as np

from keras_bert_impl.console import say
from keras_bert_impl.options.ablate import AblateConfig as AblateConfig
from keras_bert_impl.options.rules import check_options
from keras_bert_impl.studies.ablation_plan import Plan, data_for, found_task
from keras_bert_impl.studies.ablation_study import read_recipe, read_study
from keras_bert_impl.studies.ablation_tasks import TaskData, make_tasks
from keras_bert_impl.training import data_preparation
from keras_bert_impl.training.claims import WAIT_SECONDS, claimed
from keras_bert_impl.training.runs import check_run, open_run


def run(config):
    """Runs what is not finished yet and writes the table; returns the content of table.json."""
    study, recipe = read_study(config.study), read_recipe("short" if config.short else config.recipe)
    check_config(config, study)
    directory, tasks = check_run(config.output, config), given_tasks(config)
    open_run(directory, config)
    with claimed(directory / "preparing", wait=True):
        data = prepare(config, recipe, directory)
        tasks = tasks or made_tasks(config, recipe, data, directory)
        for row in study.rows:
            prepare_for(row, data, directory, config.seed)
    plan = Plan(config, study, recipe, data, tasks, directory)
    do_jobs(plan)
    plan.write_table()
    say(f"The table is {directory}/table.md, the picture {directory}/table.png:\n")
    say((directory / "table.md").read_text(encoding="utf-8"))
    return json.loads((directory / "table.json").read_text())


def check_config(config, study):
    """Raises ValueError for options that contradict each other or the study."""
    if config.steps is not None and config.minutes is not None:
        raise ValueError("steps and minutes are two ways to limit a row: give only one of them.")
    if config.data is not None and config.input is not None:
        raise ValueError(f"data {config.data} is prepared already: leave input out, or data.")
    check_options(config)
    if config.pretraining_seeds > config.seeds:
        raise ValueError(
            f"pretraining_seeds {config.pretraining_seeds} must be at most seeds, {config.seeds}: each pre-training "
            "run is fine-tuned with at least one seed."
        )
    if config.minutes is not None and (study.equal_arithmetic or any(row.share_of_steps for row in study.rows)):
        raise ValueError(f"The study {config.study} counts steps: give --steps instead of --minutes.")


def prepare(config, recipe, directory):
    """The directory of the prepared data, which is made if none is given."""
    if config.data is not None:
        return pathlib.Path(config.data)
    options = {**recipe["prepare"], "input": config.input, "output": str(directory / "data")}
    data_preparation.run(data_preparation.PrepareConfig(**options))
    return directory / "data"


def prepare_for(row, data, directory, seed):
    """Prepares the data of a row with options of its own: the corpus of `data`, with the same vocabulary."""
    if not row.prepare:
        return
    usual = json.loads((data / "run.json").read_text())["configuration"]
    usual = {name: value for name, value in usual.items() if name not in ("vocabulary_size", "vocabulary_megabytes")}
    own = {"vocab": str(data), "labelled_sentences": 0, "output": str(data_for(row, data, directory))}
    options = {**usual, **row.prepare, **own}
    if row.prepare.get("phrases") == "random":
        options["phrases"] = str(write_random_phrases(directory / "random_phrases.txt", data, seed))
    data_preparation.run(data_preparation.PrepareConfig(**options))


def write_random_phrases(path, data, seed):
    """Writes runs of two to four words from random places of held-out sentences, unless the file is there; returns its
    path. They are masked whole as ERNIE's phrases are, and mean nothing: what real ones are worth is the difference."""
    if not path.is_file():
        random, found = np.random.default_rng(seed), set()
        for sentence in (data / "held_out.txt").read_text(encoding="utf-8").splitlines():
            words = sentence.split()
            start, length = random.integers(max(1, len(words) - 1)), random.integers(2, 5)
            run = words[start : start + length]
            if len(run) > 1 and all(word.isalpha() for word in run):
                found.add(" ".join(run))
        path.write_text("".join(f"{phrase}\n" for phrase in sorted(found)), encoding="utf-8")
    return path


def given_tasks(config):
    """The TaskData of the tasks asked for; raises ValueError for one that is not known or has no directory."""
    tasks = []
    for given in config.tasks:
        name, equals, place = given.partition("=")
        if not equals or not pathlib.Path(place).is_dir():
            raise ValueError(f"tasks {given}: expected a task and its directory, such as sst-2=glue/SST-2.")
        tasks.append(TaskData(name, name, place))
        found_task(tasks[-1])
    return tasks


def made_tasks(config, recipe, data, directory):
    """The TaskData of the tasks that are made from the corpus."""
    path = data / "run.json"
    if not path.is_file():
        raise ValueError(f"{data} holds no prepared data: run keras-bert prepare-data --output {data} first.")
    prepared = json.loads(path.read_text())["configuration"]
    return make_tasks(prepared, data, directory / "tasks", recipe["task_rows"], config.seed)


def do_jobs(plan):
    """Runs the jobs that are not finished, except those that another process runs at the moment, until all are done."""
    jobs, took = plan.jobs(), {"pretrain": [], "finetune": []}
    say(f"{len(plan.study.rows)} rows, {len(jobs)} runs, of which {sum(job.is_finished for job in jobs)} are finished")
    is_waiting = False
    while left := [job for job in jobs if not job.is_finished]:
        ran = False
        for job in left:
            if job.is_finished or not all((place / "evaluation.json").is_file() for place in job.needs):
                continue
            with claimed(job.directory) as is_ours:
                if is_ours and not job.is_finished:
                    say(f"{job.title} ({time_left(left, took)}; results in {plan.directory})")
                    start = time.monotonic()
                    job.run()
                    took[job.kind].append(time.monotonic() - start)
                    plan.write_table()
                    ran = True
        if not ran:
            if not is_waiting:
                say(
                    f"Other processes run what is left. If one of another machine has died, remove its .claim file in "
                    f"{plan.directory}; this process then takes over."
                )
            is_waiting = True
            time.sleep(WAIT_SECONDS)


def time_left(jobs, took):
    """How long the unfinished jobs take this process, by the mean of what each kind took so far, in words."""
    left = [job.kind for job in jobs if not job.is_finished]
    if any(not took[kind] for kind in left):
        return f"{len(left)} runs left"
    minutes = sum(sum(took[kind]) / len(took[kind]) for kind in left) / 60
    return f"{len(left)} runs left, about {minutes:.0f} minutes"
