"""Runs from the command line: typed options, YAML recipes, run directories that say what made them."""

import dataclasses
import importlib.metadata
import itertools
import json
import os
import pathlib
import sys
import warnings

import jsonargparse
from rich.progress import track

from keras_bert_impl.distribution import Distribution, is_chief

# Of a configuration what a run does not depend on: the devices may be others when it goes on.
DEVICES = {field.name for field in dataclasses.fields(Distribution)}
VERSIONS_OF = ("keras_bert_impl", "keras", "numpy", "tokenizers", "tensorflow", "tensorflow-text", "jax", "torch")


def parse(config_class, arguments=None):
    """Reads a dataclass from the command line; `--config recipe.yaml` first, later options win.

    Unknown keys and wrong types end the program with the reason; `--batch-size` and `--batch_size` are the same, and
    `--overwrite` is short for `--overwrite true`.
    """
    arguments = [_underscores(argument) for argument in (sys.argv[1:] if arguments is None else arguments)]
    switches = {f"--{field.name}" for field in dataclasses.fields(config_class) if field.type in (bool, "bool")}
    for place, (argument, following) in enumerate(itertools.pairwise([*arguments, "--"])):
        if argument in switches and following.startswith("--"):
            arguments[place] += "=true"
    parser = jsonargparse.ArgumentParser(description=(config_class.__doc__ or "").split("\n")[0])
    parser.add_argument("--config", action="config", help="a YAML recipe with any of the options below")
    parser.add_class_arguments(config_class)
    values = parser.parse_args(arguments).as_dict()
    values.pop("config")
    return config_class(**values)


def _underscores(argument):
    name, equals, value = argument.partition("=")
    return name.replace("-", "_").replace("__", "--", 1) + equals + value if name.startswith("--") else argument


def main(config_class, run):
    """The body of a script: parse, run, and one clear line instead of a traceback for what the user can mend."""
    config = parse(config_class)
    # The place in our code that warns says nothing to the user of a script.
    warnings.formatwarning = lambda message, *place, **rest: f"  note: {message}\n"
    try:
        run(config)
    except (ValueError, OSError) as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit("interrupted; the same command goes on from the last checkpoint.")


def say(text):
    """Prints one line at once, also where the output is a file. Of several processes one prints."""
    if is_chief():
        print(text, flush=True)


def verbosity():
    """`verbose` of `fit`: a bar on a terminal, a line an epoch in a file. Of several processes one prints."""
    return (1 if sys.stdout.isatty() else 2) if is_chief() else 0


def progress(jobs, what, total=None):
    """The jobs, with a bar while they are iterated; a file gets none."""
    return track(jobs, f"  {what}", total=total, transient=True, disable=not sys.stdout.isatty())


def check_run(directory, config):
    """The run directory as a pathlib.Path, if it is new, empty, or holds a run of this configuration. Writes nothing.

    An option that the run was made without, because an earlier version did not have it, counts as its default. Two
    spellings of one path, like data and ./data, count as equal. The option `output` is the directory itself.

    Raises: ValueError if the directory holds a run of another configuration, naming the fields that differ, or other
        files.
    """
    directory = pathlib.Path(directory)
    path = directory / "run.json"
    if not is_chief():
        return directory  # the chief looks, and writes
    if path.is_file():
        different = _differences(json.loads(path.read_text())["configuration"], config)
        if different:
            raise ValueError(
                f"{directory} holds a run of another configuration ({'; '.join(different)}): "
                "name another output, remove it, or give the same options to go on with it."
            )
    elif directory.is_dir() and any(directory.iterdir()):
        raise ValueError(f"{directory} is not empty and holds no run.json: name another output directory.")
    elif directory.exists() and not directory.is_dir():
        raise ValueError(f"{directory} is a file: name another output directory.")
    return directory


def _differences(found, config):
    """What differs between the configuration in a run.json and this one, in words."""
    wanted, different = _plain(config), []
    there = {**_defaults(config), **found}
    for key in sorted({*there, *wanted} - {"output"}):
        if key not in wanted:
            different.append(f"{key} {there[key]!r} there, no such option in this version")
        elif key not in there:
            different.append(f"{key} is not there, {wanted[key]!r} here")
        elif not _are_same(there[key], wanted[key]):
            different.append(f"{key} {there[key]!r} there, {wanted[key]!r} here")
    return different


def _defaults(config):
    """The default of each option that has one and that a run depends on."""
    defaults = {}
    for field in dataclasses.fields(config):
        if field.name in DEVICES:
            continue
        if field.default is not dataclasses.MISSING:
            defaults[field.name] = field.default
        elif field.default_factory is not dataclasses.MISSING:
            defaults[field.name] = field.default_factory()
    return json.loads(json.dumps(defaults))


def _are_same(one, other):
    """Whether two values are equal, or two spellings of one path."""
    if isinstance(one, str) and isinstance(other, str):
        return one == other or os.path.abspath(one) == os.path.abspath(other)
    return one == other


def open_run(directory, config):
    """`check_run`, then makes the directory with `run.json`: configuration and versions.

    To be called when the inputs are known to be good, so that a run that cannot start leaves nothing behind.
    """
    directory = check_run(directory, config)
    if is_chief() and not (directory / "run.json").is_file():
        directory.mkdir(parents=True, exist_ok=True)
        write_json(directory / "run.json", {"configuration": _plain(config), "versions": versions()})
    return directory


def _plain(config):
    content = {name: value for name, value in dataclasses.asdict(config).items() if name not in DEVICES}
    return json.loads(json.dumps(content))


def versions():
    """The installed versions of the packages that matter, and of Python."""
    found = {"python": sys.version.split()[0]}
    for name in VERSIONS_OF:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def write_json(path, content):
    """Writes JSON whole or not at all. Of several processes one writes."""
    if not is_chief():
        return
    path = pathlib.Path(path)
    temporary = path.with_name(path.name + ".writing")
    temporary.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    os.replace(temporary, path)
