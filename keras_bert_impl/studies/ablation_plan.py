"""The runs of an ablation study: what is pre-trained and fine-tuned for which row, with which options, and where."""

import dataclasses
import json
import math
import pathlib
import shutil
import statistics
import typing

from keras_bert_impl.studies import ablation_report
from keras_bert_impl.studies.ablation_study import folder_name
from keras_bert_impl.training import finetuning, pretraining, pretraining_model
from keras_bert_impl.training.finetuning_task import find_task
from keras_bert_impl.training.pretraining_data import MASKING_OPTIONS, PretrainingData

ROUNDS = 5  # of a pre-training run, unless the recipe or the study's shares of the steps say otherwise


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
        self.found_tasks = {task.name: found_task(task) for task in tasks}

    def jobs(self):
        """All jobs, row by row, each of them once."""
        jobs = {}
        for place, row in enumerate(self.study.rows, start=1):
            of_row = f"row {place} of {len(self.study.rows)}, {row.name}"
            for options in options_of(row):
                for number in range(self.config.pretraining_seeds):
                    job = self._pretraining(row, options, number, of_row)
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

    def pretraining_directory(self, row, options, number):
        """Where a row's run with these differences from the recipe is, the `number`-th of them."""
        of_data = {f"prepare.{name}": value for name, value in row.prepare.items()}
        name = name_of_options({**options, **of_data})
        return self.directory / "pretrain" / name / f"seed_{self.config.seed + number}"

    def pretrain_config(self, row, options, number=0):
        """The PretrainConfig of a row's pre-training options, for the `number`-th run with them."""
        length = {"steps": None, "max_minutes": self.config.minutes}
        if self.config.minutes is None:
            length = {"steps": self.steps}
        rounds = {"steps_per_round": max(1, -(-self.steps // ROUNDS))}
        if self.shares:
            rounds = {"steps_per_round": round(self.shares[0] * self.steps), "encoder_rounds": 1}
        usual = self.recipe["pretrain"]
        if options.get("direction", "both") != "both":  # how the recipe masks is for the rows that mask
            usual = {name: value for name, value in usual.items() if name not in MASKING_OPTIONS}
        return pretraining.PretrainConfig(
            **{**rounds, **usual, **length, **options},
            data=str(data_for(row, self.data, self.directory)),
            output=str(self.pretraining_directory(row, options, number)),
            seed=self.config.seed + number,
        )

    def _pretraining(self, row, options, number, of_row):
        def run():
            config = self.pretrain_config(row, options, number)
            if self.study.equal_arithmetic:
                config = dataclasses.replace(config, steps=self.equal_steps(config))
            pretraining.run(config)

        seed = f", seed {self.config.seed + number}" if self.config.pretraining_seeds > 1 else ""
        place = self.pretraining_directory(row, options, number)
        return Job("pretrain", f"{of_row}: pre-training{seed}", place, (), run)

    def equal_steps(self, config):
        """The steps of a row that do as much arithmetic as those of the first row."""
        first = self.pretrain_config(self.study.rows[0], self.study.rows[0].pretrain)
        return max(1, round(self.steps * flops_of_step(first) / flops_of_step(config)))

    def encoder(self, row, options, seed):
        """The checkpoint from which a row is fine-tuned with a seed."""
        directory = self.pretraining_directory(row, options, self.run_of_seed(seed))
        if row.share_of_steps is None:
            return directory / "encoder"
        return directory / "encoders" / str(round(row.share_of_steps * self.steps))

    def run_of_seed(self, seed):
        """Which of a row's pre-training runs is fine-tuned with a seed."""
        return seed % self.config.pretraining_seeds

    def finetuning_directory(self, row, task, seed):
        """Where a fine-tuning run is."""
        return self.directory / "finetune" / folder_name(row.name) / task.name / f"seed_{seed}"

    def _finetuning(self, row, task, seed, of_row):
        directory = self.finetuning_directory(row, task, seed)

        def run():
            options = {**self.recipe["finetune"], **row.finetune}
            if row.join is not None:
                options["join"] = str(self.encoder(row, row.join, seed))
            if row.features is not None:
                options["task_options"] = {**options.get("task_options", {}), **row.features}
            finetuning.run(
                finetuning.FinetuneConfig(
                    task.data,
                    str(self.encoder(row, row.pretrain, seed)),
                    str(directory),
                    task.task,
                    seed=seed,
                    **options,
                )
            )
            # A study of large models would keep a hundred of them.
            shutil.rmtree(directory / "model", ignore_errors=True)

        needed = tuple(self.pretraining_directory(row, options, self.run_of_seed(seed)) for options in options_of(row))
        return Job("finetune", f"{of_row}: {task.name}, seed {seed}", directory, needed, run)

    def results(self):
        """The figures of what is finished, as `ablation_report.write` takes them."""
        return {row.name: {"pretraining": self._pretrained(row), "tasks": self._finetuned(row)}
                for row in self.study.rows}  # fmt: skip

    def _pretrained(self, row):
        """Steps and minutes of the runs that are finished, as means, and the perplexity of each."""
        places = [
            self.pretraining_directory(row, row.pretrain, number) for number in range(self.config.pretraining_seeds)
        ]
        lasts = [self._last_round(row, place) for place in places if (place / "evaluation.json").is_file()]
        if not lasts:
            return {}
        return {
            "steps": round(statistics.mean(last["step"] for last in lasts)),
            "minutes": statistics.mean(last["minutes"] for last in lasts),
            "perplexities": [math.exp(last["val_masked_lm_loss"]) for last in lasts],
        }

    def _last_round(self, row, place):
        """The figures of the last round of a run, or of that at which a row stops."""
        history = json.loads((place / "history.json").read_text())
        step = history[-1]["step"] if row.share_of_steps is None else round(row.share_of_steps * self.steps)
        return next(found for found in history if found["step"] == step)

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
        count = self.config.pretraining_seeds
        runs = f"{count} pre-training run{'s' if count > 1 else ''} of {length}"
        about = (
            f"Each row: {runs} ({', '.join(f'{k} {v}' for k, v in shown.items() if k != 'steps')}), then "
            f"{self.config.seeds} fine-tuning runs of each task{' from these in turn' if count > 1 else ''}; mean ± "
            "standard deviation over the fine-tuning runs of the best epoch's figure on the dev split. Perplexities of "
            "rows with different directions are of different tokens."
        )
        ablation_report.write(self.study, self.tasks, self.results(), about, self.directory)


def data_for(row, data, directory):
    """The directory with the data of a row: `data`, unless it is prepared with options of its own."""
    return directory / f"data,{name_of_options(row.prepare)}" if row.prepare else data


def found_task(task):
    """The task that a TaskData names; raises ValueError if there is none."""
    return find_task(finetuning.FinetuneConfig(task.data, "", "", task.task), task.data)


def options_of(row):
    """The pre-training options of a row's encoder, and of the one that is joined to it, if any."""
    return [row.pretrain] if row.join is None else [row.pretrain, row.join]


def flops_of_step(config):
    """The arithmetic of a pre-training step of a configuration."""
    data = PretrainingData(config)
    model = pretraining_model.build_pretrainer(config, data, False, pretraining_model.schedule_of(config, config.steps))
    return model.training_flops(config.batch_size, data.sequence_length, data.predictions_per_sequence)


def name_of_options(options):
    """A folder name that tells the options of a run."""
    return folder_name(",".join(f"{name}={options[name]}" for name in sorted(options))) or "recipe"
