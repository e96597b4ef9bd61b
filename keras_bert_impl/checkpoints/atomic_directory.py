"""Files of a directory that are replaced all or none, whatever happens meanwhile, and read all old or all new."""

import contextlib
import fnmatch
import functools
import json
import os
import pathlib
import shutil

WRITING, WRITTEN = ".being-written", ".written"
SUPERSEDED = "superseded.json"
# The files that make up a checkpoint of any format; others in its directory, a log for one, may change at any time.
CHECKPOINT_FILES = (
    "*config.json",
    "modules.json",
    "tokenizer.json",
    "vocab.txt",
    "*.safetensors",
    "*.bin",
    "*.index*",
    "*.data-*",
    "*.h5",
)
ATTEMPTS = 20


@contextlib.contextmanager
def replaced_together(directory, supersedes):
    """Yields a directory to write files to, which then take their places in `directory`; others there stay.

    A crash while they are written leaves the old files whole. One rename then decides; a crash after it, while the
    files move up, leaves the new ones, and `finish` moves the rest up before the directory is next read or written.

    Args:
        directory: made if missing.
        supersedes: function from the names of the new files to patterns of the old ones that go.
    """
    directory = pathlib.Path(directory)
    is_new = not directory.exists()
    directory.mkdir(parents=True, exist_ok=True)
    finish(directory)
    writing = directory / WRITING
    shutil.rmtree(writing, ignore_errors=True)  # of a crash
    writing.mkdir()
    try:
        yield writing
        new = {path.name for path in writing.iterdir()}
        old = {path.name for pattern in supersedes(new) for path in directory.glob(pattern)}
        (writing / SUPERSEDED).write_text(json.dumps(sorted(old - new)), encoding="utf-8")
    except BaseException:
        shutil.rmtree(writing)
        if is_new:
            with contextlib.suppress(OSError):  # not empty: another has written to it
                directory.rmdir()
        raise
    writing.rename(directory / WRITTEN)
    finish(directory)


def finish(directory):
    """Moves up what a save had written whole but not yet moved when it ended.

    The process that saves and any number of readers may be doing so at the same moment: nobody can tell a save that
    crashed from one that is about to move its files. So every step may find that another has taken it already, and
    only files that are in their places and directories that are empty are ever removed.
    """
    directory = pathlib.Path(directory)
    written = directory / WRITTEN
    with contextlib.suppress(FileNotFoundError):
        for name in json.loads((written / SUPERSEDED).read_text(encoding="utf-8")):
            # The name alone: what a file says never leads out of the directory.
            (directory / pathlib.PurePath(name).name).unlink(missing_ok=True)
        (written / SUPERSEDED).unlink()
    for folder, _, names in os.walk(written, topdown=False):
        place = directory / pathlib.Path(folder).relative_to(written)
        if place.is_symlink():
            raise ValueError(f"{place} is a link, which could lead anywhere: a checkpoint's folders are its own.")
        for name in sorted(names):
            with contextlib.suppress(FileNotFoundError):
                place.mkdir(exist_ok=True)
                os.replace(pathlib.Path(folder) / name, place / name)
        with contextlib.suppress(OSError):  # gone, or another save's already
            os.rmdir(folder)


def open_unchanged(directory, open_files):
    """What `open_files(directory)` gives, where no save replaced the directory's files meanwhile.

    Returns: the result, and a function that raises ValueError once a save has replaced a file since: what is read
        later, weights for the most part, is then another checkpoint's.
    Raises: the errors of `open_files`; ValueError if saves followed each other faster than the files are opened.
    """
    for _ in range(ATTEMPTS):
        try:
            finish(directory)
        except OSError as error:
            raise ValueError(
                f"{directory} holds a save that ended before its files were in their places, and they cannot be moved "
                f"there: {error}. Make the directory writable, or save again."
            ) from error
        before = _files(directory)
        try:
            opened = open_files(directory)
        except ValueError:
            if _files(directory) == before and not (directory / WRITTEN).exists():
                raise
            continue  # old and new files do not agree
        if _files(directory) == before and not (directory / WRITTEN).exists():
            return opened, functools.partial(_check_files, directory, before)
    raise ValueError(f"{directory} is saved again and again while it is opened: open it once the saves have ended.")


def _files(directory):
    """What tells each file of a checkpoint from the one that replaces it: number, time and size, by its path."""
    found = {}
    with os.scandir(directory) as entries:
        for entry in entries:
            if any(fnmatch.fnmatch(entry.name, pattern) for pattern in CHECKPOINT_FILES):
                found |= _identity(entry.path)
    return found


def _identity(path):
    try:
        stat = os.stat(path)
    except FileNotFoundError:
        return {}
    return {path: (stat.st_ino, stat.st_mtime_ns, stat.st_size)}


def _check_files(directory, before):
    for path, identity in before.items():
        if _identity(path) != {path: identity}:
            raise ValueError(
                f"{directory} was saved anew while it was read ({pathlib.Path(path).name} is another file now): "
                "read it again."
            )
