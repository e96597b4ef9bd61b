"""Repeats an ablation study of the paper: rows that differ in one thing are pre-trained, fine-tuned and compared.

    python studies/ablate.py pretraining_tasks --recipe short --output runs/study
    python studies/ablate.py masking --input novels --tasks mrpc=glue/MRPC --tasks sst-2=glue/SST-2 --output runs/mine

docs/ablations.md describes the studies and their rows. The output directory holds:
    table.md, table.json, table.png   means and deviations beside the paper's figures, as far as rows are finished
    data/, data,OPTIONS/, tasks/      the prepared corpus, the same for rows that prepare it otherwise, tasks made of it
    pretrain/OPTIONS/seed_N/          the pre-training runs; rows with the same options share them
    finetune/ROW/TASK/seed_N/         the fine-tuning runs, without their models

The same command resumes an interrupted study.
"""

import dataclasses
import functools
import json
import math
import pathlib
import re
import shutil

import yaml

import ablation_table
from corpus_tasks import make_tasks
from keras_bert_impl.console import say
from keras_bert_training import data_preparation, finetuning, pretraining
from keras_bert_training.data_preparation import PrepareConfig
from keras_bert_training.finetuning import FinetuneConfig
from keras_bert_training.finetuning_task import find_task
from keras_bert_training.options.rules import check_options
from keras_bert_training.pretraining import PretrainConfig
from keras_bert_training.runs import main

HERE = pathlib.Path(__file__).parent
ROUNDS = 5  # of a pre-training run, unless the recipe or the shares of the steps say otherwise


@dataclasses.dataclass
class AblateConfig:
    """Repeats an ablation study of the paper, and writes its table beside the paper's.

    Args:
        study: name of a study in this folder, or path of a YAML file.
        output: output directory.
        recipe: what all rows have in common: usual, short, or the path of a YAML file.
        data: directory that keras-bert prepare-data wrote, with pairs; default is to prepare the corpus in the output.
        input: text file, directory or glob to prepare; default is keras-bert prepare-data's.
        tasks: task of keras-bert finetune and its directory, such as sst-2=glue/SST-2; may be given several times.
            Default are three tasks made from the corpus: source of a sentence, whether a sentence follows another, and
            which words are names.
        steps: pre-training steps of each row; default is the recipe's.
        seeds: fine-tuning runs for each row and task, with seeds 0, 1, ...
        pretraining_seeds: pre-training runs for each row, from which the fine-tuning runs start in turn. With 1,
            deviations are those of fine-tuning alone; with as many as seeds, of both.
        seed: random seed of the made tasks and of the first pre-training run; the next has seed + 1.
    """

    study: str
    output: str
    recipe: str = "usual"
    data: str | None = None
    input: str | None = None
    tasks: list[str] = dataclasses.field(default_factory=list)
    steps: int | None = None
    seeds: int = 3
    pretraining_seeds: int = 1
    seed: int = 0


@dataclasses.dataclass(frozen=True)
class Row:
    """A row of a study.

    Attributes:
        name: unique in its study.
        pretrain, finetune, prepare: options that differ from the recipe's; the vocabulary is the same in all rows.
        join: pre-training options of a second encoder whose vectors are joined to those of the first; None for none.
        bilstm_units: units of each direction of an LSTM between encoder and head; 0 for none.
        features: options of a task that labels words, to train it on frozen features; None fine-tunes. Other tasks are
            left out.
        relative_steps: the steps of its run, relative to those of the other rows.
        share_of_steps: the encoder after this share of the run's steps; None for the end.
        series: rows of one series are a curve over the steps.
        paper: the paper's figures by their names.
    """

    name: str
    pretrain: dict = dataclasses.field(default_factory=dict)
    finetune: dict = dataclasses.field(default_factory=dict)
    prepare: dict = dataclasses.field(default_factory=dict)
    join: dict | None = None
    bilstm_units: int = 0
    features: dict | None = None
    relative_steps: float = 1.0
    share_of_steps: float | None = None
    series: str | None = None
    paper: dict = dataclasses.field(default_factory=dict)


def read_yaml(name):
    """The content of a YAML file, given by its path or, in this folder, by its name."""
    path = HERE / f"{name}.yaml"
    return yaml.safe_load((path if path.is_file() else pathlib.Path(name)).read_text(encoding="utf-8"))


def rows_of(study):
    """The Rows of a study, with the options that all of them have."""
    usual, rows = study.get("pretrain", {}), []
    for row in study["rows"]:
        given = {"pretrain": usual | row.get("pretrain", {})} | ({"join": usual | row["join"]} if "join" in row else {})
        rows.append(Row(**row | given))
    if len({folder_name(row.name) for row in rows}) < len(rows):
        raise ValueError("Two rows of the study have the same name, and would share their results: rename one of them.")
    return rows


def folder_name(name):
    """A row's name or a run's options with the characters that every file system takes."""
    return re.sub(r"[^\w=.,+-]+", "_", name)


class Ablation:
    """Which runs a study has, with which options, and where."""

    def __init__(self, config):
        self.config, self.study, self.recipe = config, read_yaml(config.study), read_yaml(config.recipe)
        self.rows, self.directory = rows_of(self.study), pathlib.Path(config.output)
        self.data = pathlib.Path(config.data or self.directory / "data")
        self.steps = config.steps or self.recipe["pretrain"]["steps"]
        self.shares = [row.share_of_steps for row in self.rows if row.share_of_steps]

    def prepare(self):
        """Prepares the corpus, and again for rows that have options of their own for it; makes the tasks."""
        if self.config.data is None:
            options = {**self.recipe["prepare"], "input": self.config.input, "output": str(self.data)}
            data_preparation.run(PrepareConfig(**options))
        prepared = json.loads((self.data / "run.json").read_text())["configuration"]
        of_vocabulary = {"vocab": str(self.data), "vocabulary_size": PrepareConfig.vocabulary_size,
                         "vocabulary_megabytes": PrepareConfig.vocabulary_megabytes}  # fmt: skip
        for row in self.rows:
            if row.prepare:
                own = {**row.prepare, **of_vocabulary, "labelled_sentences": 0, "output": str(self.data_of(row))}
                data_preparation.run(PrepareConfig(**prepared | own))
        if self.config.tasks:
            return {task.partition("=")[0]: task.partition("=")[::2] for task in self.config.tasks}
        made, count = self.directory / "tasks", self.recipe["task_rows"]
        return make_tasks(prepared, self.data, made, count, self.config.seed)

    def data_of(self, row):
        """The directory of a row's prepared data."""
        return self.directory / f"data,{name_of(row.prepare)}" if row.prepare else self.data

    def pretrain_config(self, row, options, number):
        """The PretrainConfig of a row's pre-training options, for the `number`-th run with them."""
        steps = round(row.relative_steps * self.steps)
        rounds = {"steps_per_round": -(-steps // ROUNDS)}
        if self.shares:
            rounds = {"steps_per_round": self.steps_of_share(min(self.shares)), "encoder_rounds": 1}
        usual = {name: value for name, value in self.recipe["pretrain"].items() if name != "steps"}
        if options.get("direction", "both") != "both":  # how the recipe masks is for the rows that mask
            usual.pop("masking_rate", None)
        different = options | {f"prepare.{name}": value for name, value in row.prepare.items()}
        seed = self.config.seed + number
        place = self.directory / "pretrain" / name_of(different) / f"seed_{seed}"
        return PretrainConfig(
            **rounds | usual | options, steps=steps, data=str(self.data_of(row)), output=str(place), seed=seed
        )

    def steps_of_share(self, share):
        """The steps after which a run is at a share of them: a multiple of those of the smallest share."""
        return round(share / min(self.shares)) * round(min(self.shares) * self.steps)

    def encoder(self, row, options, seed):
        """The checkpoint from which a row is fine-tuned with a seed."""
        output = pathlib.Path(self.pretrain_config(row, options, seed % self.config.pretraining_seeds).output)
        if row.share_of_steps is None:
            return str(output / "encoder")
        return str(output / "encoders" / str(self.steps_of_share(row.share_of_steps)))

    def finetune_config(self, row, column, task, data, seed):
        """The FinetuneConfig of a row for a task and a seed."""
        options = self.recipe["finetune"] | row.finetune
        if row.join is not None or row.bilstm_units:
            join = None if row.join is None else self.encoder(row, row.join, seed)
            stack = {"join": join, "bilstm_units": row.bilstm_units}
            task, options["task_options"] = str(HERE / "stacked.py"), {"task": task, "data": data, **stack}
        if row.features is not None:
            options["task_options"] = row.features
        output = str(self.directory / "finetune" / folder_name(row.name) / column / f"seed_{seed}")
        return FinetuneConfig(data, self.encoder(row, row.pretrain, seed), output, task, seed=seed, **options)

    def pretrainings(self, row):
        """The PretrainConfigs of a row: those of its encoder first, then those of one that is joined to it."""
        encoders = [row.pretrain] if row.join is None else [row.pretrain, row.join]
        numbers = range(self.config.pretraining_seeds)
        return [self.pretrain_config(row, options, number) for options in encoders for number in numbers]

    def finetunings(self, row, tasks):
        """{column of the table: FinetuneConfigs of a row}. Frozen features are for tasks that label words."""
        return {
            column: [self.finetune_config(row, column, task, data, seed) for seed in range(self.config.seeds)]
            for column, (task, data) in tasks.items()
            if row.features is None or hasattr(task_of(task, data), "features")
        }

    def results(self, row, tasks):
        """The figures of a row that are finished, as `ablation_table.write` takes them."""
        runs = self.pretrainings(row)[: self.config.pretraining_seeds]
        histories = read_all(runs, "evaluation.json") and read_all(runs, "history.json")
        pretraining = {}
        if histories:
            last = histories[0][-1]["step"] if row.share_of_steps is None else self.steps_of_share(row.share_of_steps)
            losses = [
                found["val_masked_lm_loss"] for history in histories for found in history if found["step"] == last
            ]
            pretraining = {"steps": last, "perplexities": [math.exp(loss) for loss in losses]}
        figures = {}
        for column, configs in self.finetunings(row, tasks).items():
            if found := read_all(configs, "metrics.json"):
                values = [max(epoch["value"] for epoch in metrics["history"]) for metrics in found]
                figures[column] = {"metric": task_of(*tasks[column]).main_metric or "f1", "values": values}
        return {"name": row.name, "pretraining": pretraining, "tasks": figures, "paper": row.paper}

    def write_table(self, tasks):
        """Writes the table of what is finished, and returns the content of table.json."""
        recipe = ", ".join(f"{name} {value}" for name, value in self.recipe["pretrain"].items() if name != "steps")
        about = (
            f"Each row: {self.config.pretraining_seeds} pre-training of {self.steps:,} steps ({recipe}), then "
            f"{self.config.seeds} fine-tuning runs of each task; mean ± standard deviation over these of the best "
            "epoch's figure on the dev split. Perplexities of rows with different directions are of different tokens."
        )
        rows = [self.results(row, tasks) for row in self.rows]
        return ablation_table.write(self.study, [row.series for row in self.rows], rows, about, self.directory)


def run(config):
    """Runs what is not finished yet and writes the table; returns the content of table.json."""
    ablation = Ablation(config)
    tasks = ablation.prepare()
    jobs = {}
    for row in ablation.rows:
        of_tasks = ablation.finetunings(row, tasks).values()
        for job in [*ablation.pretrainings(row), *(job for jobs_of_task in of_tasks for job in jobs_of_task)]:
            check_options(job)  # of all runs, before the first of them takes its hours
            jobs[job.output] = job
    for number, (output, job) in enumerate(jobs.items(), start=1):
        say(f"run {number} of {len(jobs)}: {output}")
        if isinstance(job, PretrainConfig):
            pretraining.run(job)
        else:
            finetuning.run(job)
            shutil.rmtree(pathlib.Path(output) / "model", ignore_errors=True)  # a study would keep a hundred of them
        table = ablation.write_table(tasks)
    say(f"The table is {config.output}/table.md, the picture {config.output}/table.png:\n")
    say((ablation.directory / "table.md").read_text(encoding="utf-8"))
    return table


@functools.cache
def task_of(task, data):
    """The task of keras-bert finetune with this name."""
    return find_task(FinetuneConfig(data, "", "", task), data)


def read_all(configs, name):
    """The content of a JSON file of several runs; None if a run does not have it yet."""
    paths = [pathlib.Path(config.output) / name for config in configs]
    return [json.loads(path.read_text()) for path in paths] if all(path.is_file() for path in paths) else None


def name_of(options):
    """A folder name that tells the options of a run."""
    return folder_name(",".join(f"{name}={options[name]}" for name in sorted(options))) or "recipe"


if __name__ == "__main__":
    main(AblateConfig, run, positional=("study",))
