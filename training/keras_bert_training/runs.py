"""Runs from the command line: typed options, YAML recipes, run directories that record how they were made.

Options are parsed before Keras is imported: here it is imported only where a run begins.
"""

import contextlib
import dataclasses
import importlib.metadata
import itertools
import json
import os
import pathlib
import re
import shlex
import socket
import sys
import warnings

import filelock
import jsonargparse

from keras_bert_impl.device_options import Distribution
from keras_bert_impl.json_files import write_json
from keras_bert_impl.process_group import check_shared, failing_together, is_chief
from keras_bert_impl.suggestions import did_you_mean
from keras_bert_training.options.recipes import recipe_path
from keras_bert_training.options.rules import check_options, default_of

# Options that may change on resume: the result of a run depends neither on the devices, nor on what is recorded of
# them, nor on when it is saved, and prepared rows not on who prepares them.
MAY_CHANGE = {field.name for field in dataclasses.fields(Distribution)} | {
    *("save_minutes", "profile_steps", "compilation_cache"),
    *("workers", "runner", "beam_options", "beam_storage", "verify"),
}
# Not compared: the output may be moved, and of the input the content is compared, so that it may be moved, too.
PLACES = {"output", "data", "input"}
REMOTE = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
VERSIONS_OF = ("keras_bert_impl", "keras", "numpy", "tokenizers", "tensorflow", "tensorflow-text", "jax", "torch")


class Parser(jsonargparse.ArgumentParser):
    """A parser that tells a misspelt option from the one that was meant."""

    def error(self, message, ex=None):
        if unknown := re.match(r"unrecognized arguments: --([\w-]+)", message):
            known = [field.name for field in dataclasses.fields(self.config_class) if field.init]
            message += "." + did_you_mean(unknown[1], known).replace("mean ", "mean --")
        super().error(message, ex)


def parse(config_class, arguments=None, program=None, positional=()):
    """Reads a dataclass from the command line; options that follow `--config recipe.yaml` override the recipe.

    A recipe is a file, or the name of one that comes with the package, such as bert_base/phase_128. Unknown keys and
    wrong types end the program with an error message; `--batch-size` and `--batch_size` are the same, and
    `--overwrite` is short for `--overwrite true`; an option that is a list of strings is given once for each string.

    Args:
        config_class: a dataclass; see `groups_of` for what `--help` lists together.
        arguments: words of the command line; default is those of this process.
        program: name of the program, for messages.
        positional: names of options whose values may be given first, as plain words.
    """
    arguments = named(sys.argv[1:] if arguments is None else arguments, positional)
    arguments = [_underscores(argument) for argument in arguments]
    switches = {f"--{field.name}" for field in dataclasses.fields(config_class) if field.type in (bool, "bool")}
    for place, (argument, following) in enumerate(itertools.pairwise([*arguments, "--"])):
        if argument in switches and following.startswith("--"):
            arguments[place] += "=true"
        elif argument == "--config" and not following.startswith("--"):
            arguments[place + 1] = str(recipe_path(following))
        elif argument.startswith("--config="):
            arguments[place] = f"--config={recipe_path(argument.removeprefix('--config='))}"
    arguments = _gathered(arguments, {f"--{f.name}" for f in dataclasses.fields(config_class) if f.type == list[str]})
    values = parser_of(config_class, program, positional).parse_args(arguments).as_dict()
    values.pop("config")
    config = config_class(**values)
    check_options(config)
    for name in ("output", "target"):
        refuse_remote(getattr(config, name, None), getattr(config, "OUTPUTS", ()))
    return config


def refuse_remote(path, schemes=()):
    """Raises ValueError for a URL of other schemes than these, which would be taken for a local directory `gs:`."""
    if REMOTE.match(str(path)) and not str(path).startswith(schemes):
        raise ValueError(f"The output {path} is remote: name a local directory, or mount the bucket (gcsfuse).")


def parser_of(config_class, program=None, positional=()):
    """The parser for the fields of a dataclass, with the options in the groups that the class defines."""
    required = [field.name for field in dataclasses.fields(config_class) if field.default is field.default_factory]
    usage = " ".join(
        ["%(prog)s", *(name.upper() if name in positional else f"--{name} {name.upper()}" for name in required)]
    )
    parser = Parser(
        prog=program,
        usage=f"{usage} [options]",
        description=(config_class.__doc__ or "").split("\n")[0],
    )
    parser.config_class = config_class
    parser.add_argument("--config", action="config", help="a YAML file with any options below, or a recipe's name")
    parser.add_class_arguments(config_class)
    everything = parser._action_groups[-1]
    everything.title, everything.description = "what to work on", None
    for title, names in groups_of(config_class).items():
        group = parser.add_argument_group(title)
        moved = [action for action in everything._group_actions if action.dest in names]
        everything._group_actions = [action for action in everything._group_actions if action not in moved]
        group._group_actions.extend(moved)
    return parser


def groups_of(config_class):
    """The titles under which `--help` lists options, with the names of these: those in `GROUPS` of a dataclass, then
    those of each class with a `TITLE` from which it inherits."""
    groups = dict(getattr(config_class, "GROUPS", {}))
    for parent in config_class.__mro__:
        if "TITLE" in vars(parent):
            groups.setdefault(parent.TITLE, tuple(field.name for field in dataclasses.fields(parent)))
    return groups


def named(arguments, positional):
    """The arguments, with plain words at the beginning turned into the options `positional`."""
    plain = list(itertools.takewhile(lambda argument: not argument.startswith("-"), arguments))[: len(positional)]
    options = [f"--{name}={argument}" for name, argument in zip(positional, plain, strict=False)]
    return options + list(arguments[len(plain) :])


def _underscores(argument):
    name, equals, value = argument.partition("=")
    return name.replace("-", "_").replace("__", "--", 1) + equals + value if name.startswith("--") else argument


def _gathered(arguments, lists):
    """The arguments, with each option among `lists` marked as one more entry of its list, as jsonargparse has it."""
    found = []
    for argument in arguments:
        name, equals, value = argument.partition("=")
        found.append(f"{name}+{equals}{value}" if name in lists else argument)
    return found


@contextlib.contextmanager
def closed_pipe_ends():
    """Ends quietly if whoever reads the output, such as `head`, has stopped reading."""
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        # Python would report the closed pipe once more when it flushes standard output at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main(config_class, run, arguments=None, program=None, positional=()):
    """The body of a command: parses and runs it; errors that the user can fix give one line instead of a traceback."""
    # To the user of a command, the line of our code that raised a warning means nothing.
    warnings.formatwarning = lambda message, *place, **rest: f"  note: {message}\n"
    try:
        with closed_pipe_ends():
            run(parse(config_class, arguments, program, positional))
    except (ValueError, OSError) as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        writes = any(field.name == "output" for field in dataclasses.fields(config_class))
        remedy = "; a run that saves checkpoints resumes with the same command" if writes else ""
        print(f"interrupted{remedy}.", file=sys.stderr)
        sys.exit(130)


def check_run(directory, config):
    """The run directory as a pathlib.Path, if it is new, empty, or holds a run of this configuration. Writes nothing.

    An option that is missing from the run's record, because an earlier version did not have it, counts as its default;
    one that this version no longer has counts as different if the run used it.
    Two spellings of one path, like model and ./model, count as equal. The options in PLACES are not compared.

    Raises: ValueError if the directory holds a run of another configuration, naming the fields that differ, or other
        files, or if it is remote, or an option is out of its range; of several processes that call it, in all.
    """
    check_options(config)
    refuse_remote(directory)
    directory = pathlib.Path(directory)
    with failing_together():
        if is_chief():
            _check_new_or_same(directory, config)
    return directory


def _check_new_or_same(directory, config):
    path = directory / "run.json"
    if path.is_file():
        different = _differences(json.loads(path.read_text())["configuration"], config)
        if different:
            raise ValueError(
                f"{directory} holds a run of another configuration ({'; '.join(different)}): "
                "name another output, remove the directory, or give the same options to resume the run."
            )
    elif directory.is_dir() and any(path.name != LOCK for path in directory.iterdir()):
        raise ValueError(f"{directory} is not empty and holds no run.json: name another output directory.")


def _differences(found, config):
    """What differs between the configuration in a run.json and this one, in words."""
    wanted = _plain(config)
    used = {key: value for key, value in found.items() if key in wanted or value not in (None, False, "")}
    there = {**_defaults(config), **used}
    pairs = {key: (there.get(key), wanted.get(key)) for key in sorted({*there, *wanted} - PLACES)}
    return [f"{key} {one!r} there, {other!r} here" for key, (one, other) in pairs.items() if not _are_same(one, other)]


def is_elsewhere(directory, data):
    """Whether the run in a directory began with data at another path."""
    path = pathlib.Path(directory) / "run.json"  # which of several processes one may have
    return path.is_file() and not _are_same(json.loads(path.read_text())["configuration"]["data"], data)


def _defaults(config):
    """The defaults of the options that have one and on which the result of a run depends."""
    defaults = {field.name: default_of(config, field.name) for field in dataclasses.fields(config)}
    known = {name: value for name, value in defaults.items() if value is not dataclasses.MISSING}
    return json.loads(json.dumps({name: value for name, value in known.items() if name not in MAY_CHANGE}))


def _are_same(one, other):
    """Whether two values are equal, or two spellings of one path."""
    if isinstance(one, str) and isinstance(other, str):
        return one == other or os.path.abspath(one) == os.path.abspath(other)
    return one == other


def open_run(directory, config, is_copy=False):
    """Calls `check_run`, then creates the directory with `run.json`, which holds configuration, command and versions.

    Call it after the inputs are checked, so that a run that cannot start leaves nothing behind.

    Args:
        directory: must be shared by all processes.
        config: a dataclass.
        is_copy: whether the directory is a process' own copy of the one that they share.

    Raises: ValueError as `check_run`, and if the processes do not share the directory.
    """
    directory = check_run(directory, config)
    with failing_together():
        if is_copy:
            directory.mkdir(parents=True, exist_ok=True)
        if is_chief() and not (directory / "run.json").is_file():
            directory.mkdir(parents=True, exist_ok=True)
            content = {"configuration": _plain(config), "command": command_of(config), "versions": versions()}
            write_json(directory / "run.json", content)
    if not is_copy:
        check_shared(directory)
    return directory


def _plain(config):
    content = {name: value for name, value in dataclasses.asdict(config).items() if name not in MAY_CHANGE}
    return json.loads(json.dumps(content))


def command_of(config):
    """The command line of a configuration of a module in `options`, with the options that are not the defaults."""
    words = ["keras-bert", type(config).__module__.rpartition(".")[2].replace("_", "-")]
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if value is not None and value != default_of(config, field.name):
            words += [f"--{field.name}", value if isinstance(value, str) else json.dumps(value)]
    return shlex.join(words)


def versions():
    """The installed versions of the packages that matter, and of Python."""
    found = {"python": sys.version.split()[0]}
    for name in VERSIONS_OF:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


LOCK = "run.lock"


@contextlib.contextmanager
def locked(directory):
    """Within this context no other process runs in a directory, which is created and, if it stays empty, removed.

    The operating system holds the lock and releases it when its process ends, however it ends. File systems that
    several hosts share pass it on, NFS for one; a mounted bucket does not, and there it holds on its own host only.

    Of several processes that train together, the first one locks for all.

    Raises: ValueError naming the process that runs there, in all processes.
    """
    directory, lock = pathlib.Path(directory), None
    missing = [place for place in (directory, *directory.parents) if not place.exists()]
    with failing_together():
        if is_chief() and (lock := take_lock(directory / LOCK)) is None:
            holder = ""
            with contextlib.suppress(OSError):
                holder = (directory / LOCK).read_text(encoding="utf-8").replace("\n", " ").strip()
            raise ValueError(
                f"{directory} is in use by {holder or 'another process'}: wait until it has ended, end it, or name "
                "another output."
            )
    try:
        yield
    finally:
        if lock is not None:
            # In this order: after the release, the file could be the lock of another process already.
            with contextlib.suppress(OSError):  # Windows removes no open file; the file itself locks nothing
                os.unlink(lock.lock_file)
            lock.release()
            for place in missing:
                with contextlib.suppress(OSError):  # not empty
                    place.rmdir()


def take_lock(path):
    """The lock of a file, which then names this process; None if another process has it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(path)
    try:
        lock.acquire(blocking=False)
    except filelock.Timeout:
        return None
    if not isinstance(lock, filelock.SoftFileLock):  # which a file system without locks gets: the file is the lock
        with contextlib.suppress(OSError):  # Windows lets nobody write to a locked file
            path.write_text(f"process {os.getpid()} on {socket.gethostname()}", encoding="utf-8")
    return lock
