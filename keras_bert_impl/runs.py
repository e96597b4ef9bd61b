"""Runs from the command line: typed options, YAML recipes, run directories that say what made them."""

import dataclasses
import importlib.metadata
import json
import os
import pathlib
import sys

import jsonargparse

VERSIONS_OF = ("keras_bert_impl", "keras", "numpy", "tokenizers", "tensorflow", "tensorflow-text", "jax", "torch")


def parse(config_class, arguments=None):
    """Reads a dataclass from the command line; `--config recipe.yaml` first, later options win.

    Unknown keys and wrong types end the program with the reason; `--batch-size` and `--batch_size` are the same.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    parser = jsonargparse.ArgumentParser(description=(config_class.__doc__ or "").split("\n")[0])
    parser.add_argument("--config", action="config", help="a YAML recipe with any of the options below")
    parser.add_class_arguments(config_class)
    values = parser.parse_args([_underscores(argument) for argument in arguments]).as_dict()
    values.pop("config")
    return config_class(**values)


def _underscores(argument):
    name, equals, value = argument.partition("=")
    return name.replace("-", "_").replace("__", "--", 1) + equals + value if name.startswith("--") else argument


def main(config_class, run):
    """The body of a script: parse, run, and one clear line instead of a traceback for what the user can mend."""
    config = parse(config_class)
    try:
        run(config)
    except (ValueError, OSError) as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit("interrupted; the same command goes on from the last checkpoint.")


def say(text):
    """Prints one line at once, also where the output is a file."""
    print(text, flush=True)


def open_run(directory, config):
    """Makes a run directory and writes what the run is made from: `run.json` with configuration and versions.

    Returns: the directory, a pathlib.Path.
    Raises: ValueError if the directory holds a run of another configuration, naming the fields that differ.
    """
    directory = pathlib.Path(directory)
    path = directory / "run.json"
    wanted = json.loads(json.dumps(dataclasses.asdict(config)))
    if path.is_file():
        found = json.loads(path.read_text())["configuration"]
        different = [
            f"{key} {found.get(key)!r} there, {wanted.get(key)!r} here"
            for key in sorted({*found, *wanted})
            if found.get(key) != wanted.get(key)
        ]
        if different:
            raise ValueError(
                f"{directory} holds a run of another configuration ({'; '.join(different)}): "
                "name another output, remove it, or give the same options to go on with it."
            )
        return directory
    if directory.is_dir() and any(directory.iterdir()):
        raise ValueError(f"{directory} is not empty and holds no run.json: name another output directory.")
    directory.mkdir(parents=True, exist_ok=True)
    write_json(path, {"configuration": wanted, "versions": versions()})
    return directory


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
    """Writes JSON whole or not at all."""
    path = pathlib.Path(path)
    temporary = path.with_name(path.name + ".writing")
    temporary.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    os.replace(temporary, path)
