"""Repeats an ablation study of the paper: rows that differ in one thing are pre-trained, fine-tuned and compared.

    keras-bert ablate --study pretraining_tasks --output runs/ablate --short
    keras-bert ablate --study masking --input novels --tasks mrpc=glue/MRPC --tasks sst2=glue/SST-2 --output runs/novels
    keras-bert ablate --study my_study.yaml --recipe my_recipe.yaml --output runs/mine

All rows have the corpus, the steps (or minutes) and the recipe in common, and each task is fine-tuned with several
seeds. The output directory holds:
    table.md, table.json, table.png   means and deviations beside the paper's figures, as far as rows are finished
    run.json                          options and versions
    data/, tasks/                     the prepared corpus, and the tasks made from it
    data,OPTIONS/                     the corpus prepared with the options of some rows; random_phrases.txt
    pretrain/OPTIONS/                 the pre-training runs; rows with the same options share one
    finetune/ROW/TASK/seed_N/         figures and predictions of the fine-tuning runs, without their models

The same command resumes an interrupted study: what is finished is not run again. The same command in a second process,
on another device or machine that shares the directory, takes its share of the runs that are left.
"""

import contextlib
import dataclasses
import json
import math
import os
import pathlib
import re
import shutil
import socket
import time
import typing

import numpy as np

from keras_bert_impl import distribution
from keras_bert_impl.console import say
from keras_bert_impl.training import ablation_report, data_preparation, finetuning, pretraining, pretraining_model
from keras_bert_impl.training.ablation_study import read_recipe, read_study
from keras_bert_impl.training.ablation_tasks import TaskData, make_tasks
from keras_bert_impl.training.finetuning_task import find_task
from keras_bert_impl.training.pretraining_data import PretrainingData
from keras_bert_impl.training.runs import check_run, open_run

ROUNDS = 5  # of a pre-training run, unless the recipe or the study's shares of the steps say otherwise
WAIT_SECONDS = 5  # between two looks at what other processes are doing


@dataclasses.dataclass
class AblateConfig:
    """Repeats an ablation study of the paper, and writes its table beside the paper's.

    Args:
        output: output directory.
        study: pretraining_tasks, model_size, steps, masking, directions, families, or the path of a YAML file.
        recipe: what all rows have in common: usual, short, or the path of a YAML file.
        short: the same as --recipe short: few steps of a very small model.
        data: directory that keras-bert prepare-data wrote, with pairs; default is to prepare the corpus in the output.
        input: text file, directory or glob to prepare; default is the docstrings of the installed Python, NumPy,
            TensorFlow and Keras.
        tasks: task of keras-bert finetune and its directory, such as sst2=glue/SST-2; may be given several times.
            Default are three tasks made from the corpus: source of a sentence, whether a sentence follows another, and
            which words are names.
        steps: pre-training steps of each row; default is the recipe's.
        minutes: pre-training minutes of each row, instead of steps.
        seeds: fine-tuning runs for each row and task, with seeds 0, 1, ...
        seed: random seed of pre-training and of the made tasks.
    """

    REMOTE: typing.ClassVar = {}

    output: str
    study: str
    recipe: str = "usual"
    short: bool = False
    data: str | None = None
    input: str | None = None
    tasks: list[str] = dataclasses.field(default_factory=list)
    steps: int | None = None
    minutes: float | None = None
    seeds: int = 3
    seed: int = 0


class Job(typing.NamedTuple):
    """A pre-training or a fine-tuning run: its kind, what it says when it starts, where it writes, the directories that
    must be finished before, and the function of no arguments that runs it."""

    kind: str
    title: str
    directory: pathlib.Path
    needs: tuple
    run: typing.Callable

    @property
    def is_finished(self):
        """Whether its last file is there."""
        return (self.directory / LAST_FILES[self.kind]).is_file()


LAST_FILES = {"pretrain": "evaluation.json", "finetune": "metrics.json"}


def run(config):
    """Runs what is not finished yet and writes the table; returns the content of table.json."""
    study, recipe = read_study(config.study), read_recipe("short" if config.short else config.recipe)
    check_config(config, study)
    directory = check_run(config.output, config)
    open_run(directory, config)
    with claimed(directory / "preparing", wait=True):
        data = prepare(config, recipe, directory)
        tasks = tasks_of(config, recipe, data, directory)
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
    if config.seeds < 1:
        raise ValueError(f"seeds {config.seeds} must be at least 1.")
    if config.minutes is not None and (study.equal_arithmetic or any(row.share_of_steps for row in study.rows)):
        raise ValueError(f"The study {config.study} counts steps: give --steps instead of --minutes.")


def prepare(config, recipe, directory):
    """The directory of the prepared data, which is made if none is given."""
    if config.data is not None:
        return pathlib.Path(config.data)
    options = {**recipe["prepare"], "input": config.input, "output": str(directory / "data")}
    data_preparation.run(data_preparation.PrepareConfig(**options))
    return directory / "data"


def data_for(row, data, directory):
    """The directory with the data of a row: `data`, unless it is prepared with options of its own."""
    return directory / f"data,{name_of_options(row.prepare)}" if row.prepare else data


def prepare_for(row, data, directory, seed):
    """Prepares the data of a row with options of its own: the corpus of `data`, with the same vocabulary."""
    if not row.prepare:
        return
    usual = json.loads((data / "run.json").read_text())["configuration"]
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


def tasks_of(config, recipe, data, directory):
    """The TaskData of the tasks asked for, or of those made from the corpus."""
    if not config.tasks:
        path = data / "run.json"
        if not path.is_file():
            raise ValueError(f"{data} holds no prepared data: run keras-bert prepare-data --output {data} first.")
        prepared = json.loads(path.read_text())["configuration"]
        return make_tasks(prepared, data, directory / "tasks", recipe["task_rows"], config.seed)
    tasks = []
    for given in config.tasks:
        name, equals, place = given.partition("=")
        if not equals or not pathlib.Path(place).is_dir():
            raise ValueError(f"tasks {given}: expected a task and its directory, such as sst2=glue/SST-2.")
        tasks.append(TaskData(name, name, place))
    return tasks


class Plan:
    """The jobs of a study: what is run for which row, and where."""

    def __init__(self, config, study, recipe, data, tasks, directory):
        self.config, self.study, self.recipe = config, study, recipe
        self.data, self.tasks, self.directory = data, tasks, directory
        self.shares = sorted({row.share_of_steps for row in study.rows if row.share_of_steps})
        self.steps = config.steps or recipe["pretrain"]["steps"]
        for share in self.shares:
            if share * self.steps % (self.shares[0] * self.steps) or self.shares[0] * self.steps % 1:
                raise ValueError(
                    f"{self.steps} steps cannot be divided into the study's shares: each must be a whole number of "
                    f"steps and a multiple of the smallest, {self.shares[0]}."
                )
        self.found_tasks = {task.name: self._task(task) for task in tasks}

    def _task(self, task):
        return find_task(finetuning.FinetuneConfig(task.data, "", "", task.task), task.data)

    def jobs(self):
        """All jobs, row by row, each of them once."""
        jobs = {}
        for number, row in enumerate(self.study.rows, start=1):
            of_row = f"row {number} of {len(self.study.rows)}, {row.name}"
            for options in (row.pretrain, *([row.join] if row.join is not None else [])):
                job = self._pretraining(row, options, of_row)
                jobs.setdefault(job.directory, job)
            for task in self.tasks_of_row(row):
                for seed in range(self.config.seeds):
                    job = self._finetuning(row, task, seed, of_row)
                    jobs[job.directory] = job
        return list(jobs.values())

    def tasks_of_row(self, row):
        """The tasks that a row is fine-tuned on: one on frozen features has only those that label words."""
        if row.features is None:
            return self.tasks
        return [task for task in self.tasks if hasattr(self.found_tasks[task.name], "features")]

    def pretraining_directory(self, row, options):
        """Where a row's run with these differences from the recipe is."""
        of_data = {f"prepare.{name}": value for name, value in row.prepare.items()}
        return self.directory / "pretrain" / name_of_options({**options, **of_data})

    def pretrain_config(self, row, options):
        """The PretrainConfig of a row's pre-training options."""
        length = {"steps": None, "max_minutes": self.config.minutes}
        if self.config.minutes is None:
            length = {"steps": self.steps}
        rounds = {"steps_per_round": max(1, -(-self.steps // ROUNDS))}
        if self.shares:
            rounds = {"steps_per_round": round(self.shares[0] * self.steps), "encoder_rounds": 1}
        return pretraining.PretrainConfig(
            **{**rounds, **self.recipe["pretrain"], **length, **options},
            data=str(data_for(row, self.data, self.directory)),
            output=str(self.pretraining_directory(row, options)),
            seed=self.config.seed,
        )

    def _pretraining(self, row, options, of_row):
        def run():
            config = self.pretrain_config(row, options)
            if self.study.equal_arithmetic:
                config = dataclasses.replace(config, steps=self.equal_steps(config))
            pretraining.run(config)

        return Job("pretrain", f"{of_row}: pre-training", self.pretraining_directory(row, options), (), run)

    def equal_steps(self, config):
        """The steps of a row that do as much arithmetic as those of the first row."""
        first = self.pretrain_config(self.study.rows[0], self.study.rows[0].pretrain)
        return max(1, round(self.steps * flops_of_step(first) / flops_of_step(config)))

    def encoder(self, row, options):
        """The checkpoint from which a row is fine-tuned."""
        directory = self.pretraining_directory(row, options)
        if row.share_of_steps is None:
            return directory / "encoder"
        return directory / "encoders" / str(round(row.share_of_steps * self.steps))

    def finetuning_directory(self, row, task, seed):
        """Where a fine-tuning run is."""
        return self.directory / "finetune" / folder_name(row.name) / task.name / f"seed_{seed}"

    def _finetuning(self, row, task, seed, of_row):
        directory = self.finetuning_directory(row, task, seed)
        needs = [row.pretrain] if row.join is None else [row.pretrain, row.join]

        def run():
            options = {**self.recipe["finetune"], **row.finetune}
            if row.join is not None:
                options["join"] = str(self.encoder(row, row.join))
            if row.features is not None:
                options["task_options"] = {**options.get("task_options", {}), **row.features}
            finetuning.run(
                finetuning.FinetuneConfig(
                    task.data, str(self.encoder(row, row.pretrain)), str(directory), task.task, seed=seed, **options
                )
            )
            # A study of large models would keep a hundred of them.
            shutil.rmtree(directory / "model", ignore_errors=True)

        needed = tuple(self.pretraining_directory(row, options) for options in needs)
        return Job("finetune", f"{of_row}: {task.name}, seed {seed}", directory, needed, run)

    def results(self):
        """The figures of what is finished, as `ablation_report.write` takes them."""
        return {row.name: {"pretraining": self._pretrained(row), "tasks": self._finetuned(row)}
                for row in self.study.rows}  # fmt: skip

    def _pretrained(self, row):
        directory = self.pretraining_directory(row, row.pretrain)
        if not (directory / "evaluation.json").is_file():
            return {}
        history = json.loads((directory / "history.json").read_text())
        step = history[-1]["step"] if row.share_of_steps is None else round(row.share_of_steps * self.steps)
        last = next(found for found in history if found["step"] == step)
        return {"steps": step, "minutes": last["minutes"], "perplexity": math.exp(last["val_masked_lm_loss"])}

    def _finetuned(self, row):
        """Of each task whose seeds are all finished, the dev figure of each seed's best epoch."""
        found = {}
        for task in self.tasks_of_row(row):
            paths = [self.finetuning_directory(row, task, seed) / "metrics.json" for seed in range(self.config.seeds)]
            if all(path.is_file() for path in paths):
                histories = [json.loads(path.read_text())["history"] for path in paths]
                values = [max(epoch["value"] for epoch in history) for history in histories]
                metric = self.found_tasks[task.name].main_metric or "f1"
                found[task.name] = {"metric": metric, "values": values}
        return found

    def write_table(self):
        """Writes the table of what is finished."""
        length = f"{self.steps:,} steps" if self.config.minutes is None else f"{self.config.minutes:g} minutes"
        if self.study.equal_arithmetic:
            length = f"the arithmetic of {length} of the first row"
        shown = {**self.recipe["pretrain"], "steps": self.steps}
        about = (
            f"Each row: {length} of pre-training ({', '.join(f'{k} {v}' for k, v in shown.items() if k != 'steps')}), "
            f"then {self.config.seeds} fine-tuning runs of each task; mean ± standard deviation over these of the best "
            "epoch's figure on the dev split. Perplexities of rows with different directions are of different tokens."
        )
        ablation_report.write(self.study, self.tasks, self.results(), about, self.directory)


def flops_of_step(config):
    """The arithmetic of a pre-training step of a configuration."""
    data = PretrainingData(config)
    model = pretraining_model.build(config, data, False, pretraining_model.schedule_of(config, config.steps))
    return model.training_flops(config.batch_size, data.sequence_length, data.predictions_per_sequence)


def name_of_options(options):
    """A folder name that tells the options of a run."""
    return folder_name(",".join(f"{name}={options[name]}" for name in sorted(options))) or "recipe"


def folder_name(name):
    """A row's name or a run's options with the characters that every file system takes."""
    return re.sub(r"[^\w=.,+-]+", "_", name)


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


@contextlib.contextmanager
def claimed(directory, wait=False):
    """Within this context other processes leave a run alone; gives whether it is ours.

    A file beside the run's directory holds host and process; that of a process of this host which no longer lives is
    removed. With `wait`, waits until it is ours.
    """
    path = directory.with_name(directory.name + ".claim")
    path.parent.mkdir(parents=True, exist_ok=True)
    while not (is_ours := claim(path)) and wait:
        time.sleep(WAIT_SECONDS)
    try:
        yield is_ours
    finally:
        if is_ours:
            path.unlink(missing_ok=True)


def claim(path):
    """Writes the file of a claim unless another process has; returns whether this process wrote it."""
    if not distribution.is_chief():
        return True  # the first of several processes of one run claims for all
    own = f"{socket.gethostname()} {os.getpid()}"
    with contextlib.suppress(FileNotFoundError):
        host, _, process = path.read_text().partition(" ")
        if host == socket.gethostname() and process.isdigit() and not is_alive(int(process)):
            path.unlink(missing_ok=True)
    try:
        with open(path, "x", encoding="utf-8") as file:
            file.write(own)
    except FileExistsError:
        return False
    return True


def is_alive(process):
    """Whether a process of this machine is running."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
