"""The studies of `keras-bert ablate`: YAML files whose rows are differences from a common recipe."""

import dataclasses
import pathlib
import re
import typing

import yaml

from keras_bert_impl.misspelt import did_you_mean
from keras_bert_impl.training.data_preparation import PrepareConfig
from keras_bert_impl.training.finetuning import FinetuneConfig
from keras_bert_impl.training.pretraining import PretrainConfig

STUDIES = pathlib.Path(__file__).parent
RECIPE_NAMES = ("usual", "short")
OF_STUDY = ("title", "paper", "pretrain", "finetune", "equal_arithmetic", "rows")
OF_RECIPE = ("prepare", "pretrain", "finetune", "task_rows")
# What the command itself sets.
SET_HERE = {"data", "output", "model", "task", "join", "seed", "seeds", "steps", "max_minutes"}
# Text, splits and vocabulary are those of the other rows.
SET_OF_DATA = {
    *("output", "input", "seed", "tokenizer", "vocab", "vocabulary_size", "vocabulary_megabytes", "lowercase"),
    *("labelled_sentences", "workers", "runner", "beam_options", "beam_storage", "verify"),
}


@dataclasses.dataclass(frozen=True)
class Row:
    """A row of a study.

    Attributes:
        name: unique in its study.
        pretrain, finetune: options that differ from the recipe's.
        join: pre-training options of a second encoder whose vectors are joined to those of the first; None for none.
        features: options of a task that labels words, to train it on frozen features; None fine-tunes. Other tasks are
            left out.
        share_of_steps: the encoder after this share of the run's steps; None for the end.
        series: rows of one series are a curve over the steps.
        paper: the paper's figures by their names.
        prepare: options of data preparation that differ from those of the other rows; their vocabulary is the same.
            `phrases: random` stands for runs of words that mean nothing, see `ablation.write_random_phrases`.
    """

    name: str
    pretrain: dict = dataclasses.field(default_factory=dict)
    finetune: dict = dataclasses.field(default_factory=dict)
    join: dict | None = None
    features: dict | None = None
    share_of_steps: float | None = None
    series: str | None = None
    paper: dict = dataclasses.field(default_factory=dict)
    prepare: dict = dataclasses.field(default_factory=dict)


class Study(typing.NamedTuple):
    """A study: a title, where the paper's figures are from, the rows, and whether each row may do as much arithmetic as
    the first one instead of as many steps."""

    title: str
    paper: str
    rows: tuple
    equal_arithmetic: bool


def study_names():
    """The names of the studies that come with the package."""
    return sorted(path.stem for path in STUDIES.glob("*.yaml") if path.stem not in RECIPE_NAMES)


def study_path(name):
    """The file of a study, which is given by its path or its name. Raises ValueError if there is none."""
    if name in study_names():
        return STUDIES / f"{name}.yaml"
    if pathlib.Path(name).is_file():
        return pathlib.Path(name)
    raise ValueError(
        f"{name} is neither a file nor a study of the package; its studies are {', '.join(study_names())}."
    )


def read_recipe(name):
    """The options that all rows have in common: of the recipe "usual" or "short", or of a file.

    Returns: {"prepare", "pretrain", "finetune"}, dicts of options, and "task_rows", the number of training examples of
        a made task.
    Raises: ValueError naming the file for unknown keys or options.
    """
    path = STUDIES / f"{name}.yaml" if name in RECIPE_NAMES else pathlib.Path(name)
    if not path.is_file():
        raise ValueError(f"{name} is neither a file nor one of the recipes {', '.join(RECIPE_NAMES)}.")
    found = _read(path)
    _refuse_unknown(found, OF_RECIPE, path, "recipe")
    missing = [key for key in OF_RECIPE if key not in found]
    if missing:
        raise ValueError(f"{path} lacks {', '.join(missing)}: a recipe has {', '.join(OF_RECIPE)}.")
    check_options(found["pretrain"], PretrainConfig, path, "pretrain", SET_HERE - {"steps"})
    check_options(found["finetune"], FinetuneConfig, path, "finetune", SET_HERE)
    return found


def read_study(name):
    """The Study of a name or path.

    Raises: ValueError naming file and row for an unknown key, an option that keras-bert pretrain or finetune does not
        have, or a name that two rows have.
    """
    path = study_path(name)
    found = _read(path)
    _refuse_unknown(found, OF_STUDY, path, "study")
    rows = []
    for number, fields in enumerate(found.get("rows") or [], start=1):
        rows.append(_row_of(fields, found, path, number))
    names = [row.name for row in rows]
    if not rows:
        raise ValueError(f"{path} has no rows.")
    for row_name in names:
        if names.count(row_name) > 1:
            raise ValueError(f"{path}: two rows are named {row_name!r}; names tell their results apart.")
    folders = {}
    for row_name in names:
        other = folders.setdefault(folder_name(row_name), row_name)
        if other != row_name:
            raise ValueError(
                f"{path}: the rows {other!r} and {row_name!r} differ only in characters that no folder's name has, and "
                "would share their results: give one of them another word."
            )
    return Study(
        found.get("title", path.stem), found.get("paper", ""), tuple(rows), bool(found.get("equal_arithmetic"))
    )


def folder_name(name):
    """A row's name or a run's options with the characters that every file system takes."""
    return re.sub(r"[^\w=.,+-]+", "_", name)


def _row_of(fields, study, path, number):
    if not isinstance(fields, dict) or "name" not in fields:
        raise ValueError(f"{path}: row {number} has no name.")
    place = f"row {fields['name']!r}"
    _refuse_unknown(fields, [field.name for field in dataclasses.fields(Row)], path, place)
    pretrain = {**(study.get("pretrain") or {}), **(fields.get("pretrain") or {})}
    finetune = {**(study.get("finetune") or {}), **(fields.get("finetune") or {})}
    join = None if fields.get("join") is None else {**(study.get("pretrain") or {}), **fields["join"]}
    for options in (pretrain, join or {}):
        check_options(options, PretrainConfig, path, place, SET_HERE)
    check_options(finetune, FinetuneConfig, path, place, SET_HERE)
    check_options(fields.get("prepare") or {}, PrepareConfig, path, place, SET_OF_DATA)
    row = Row(**{**fields, "name": str(fields["name"]), "pretrain": pretrain, "finetune": finetune, "join": join})
    if row.share_of_steps is not None and not 0 < row.share_of_steps <= 1:
        raise ValueError(f"{path}, {place}: share_of_steps {row.share_of_steps} must be above 0 and at most 1.")
    return row


def check_options(options, config_class, path, place, set_here):
    """Raises ValueError for options that the class does not have, or that the command itself sets."""
    known = [field.name for field in dataclasses.fields(config_class)]
    for option in options:
        if option in set_here:
            raise ValueError(f"{path}, {place}: {option} is set by keras-bert ablate itself: leave it out.")
    command = {PretrainConfig: "pretrain", FinetuneConfig: "finetune", PrepareConfig: "prepare-data"}[config_class]
    _refuse_unknown(options, known, path, place, f"keras-bert {command} has")


def _refuse_unknown(found, known, path, place, has="it can have"):
    unknown = sorted(set(found) - set(known))
    if unknown:
        raise ValueError(
            f"{path}, {place}: there is no option {unknown[0]!r}; {has} {', '.join(known)}."
            + did_you_mean(unknown[0], known)
        )


def _read(path):
    try:
        found = yaml.safe_load(pathlib.Path(path).read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise ValueError(f"{path}: not valid YAML ({error}).") from error
    if not isinstance(found, dict):
        raise ValueError(f"{path}: expected keys and values, found {type(found).__name__}.")
    return found
