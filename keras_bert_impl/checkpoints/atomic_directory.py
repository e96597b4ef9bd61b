"""Replaces the files of a directory all together or not at all, and reads them either all old or all new."""

import contextlib
import fnmatch
import functools
import json
import os
import pathlib
import shutil

WRITING, WRITTEN = ".being-written", ".written"
SUPERSEDED = "superseded.json"
# The files that make up a checkpoint of any format; other files in its directory, such as a log, may always change.
CHECKPOINT_FILES = (
    "*config.json",
    "modules.json",
    "tokenizer.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "spiece.model",
    "sentencepiece.bpe.model",
    "*.safetensors",
    "*.bin",
    "*.index*",
    "*.data-*",
    "*.h5",
)
ATTEMPTS = 20


@contextlib.contextmanager
def replaced_together(directory, supersedes):
    """Yields a directory to write files to, which are then moved to `directory`; other files there stay.

    A crash while they are written leaves the old files intact. A single rename then commits the new files; after a
    crash while they are moved, `finish` moves the rest before the directory is next read or written.

    Args:
        directory: created if missing.
        supersedes: function from the paths of the new files to patterns of the old ones to delete, both within
            `directory`, or within a folder there.
    """
    directory = pathlib.Path(directory)
    is_new = not directory.exists()
    directory.mkdir(parents=True, exist_ok=True)
    finish(directory)
    writing = directory / WRITING
    shutil.rmtree(writing, ignore_errors=True)  # left by a crash
    writing.mkdir()
    try:
        yield writing
        new = {path.relative_to(writing).as_posix() for path in writing.rglob("*")}
        found = (path for pattern in supersedes(new) for path in directory.glob(pattern))
        old = {path.relative_to(directory).as_posix() for path in found}
        (writing / SUPERSEDED).write_text(json.dumps(sorted(old - new)), encoding="utf-8")
        # safetensors writes files that only their owner can read: a server often runs as another user.
        usual = (writing / SUPERSEDED).stat().st_mode
        for path in writing.rglob("*"):
            if path.is_file():
                path.chmod(usual)
    except BaseException:
        shutil.rmtree(writing)
        if is_new:
            with contextlib.suppress(OSError):  # not empty: another process has written to it
                directory.rmdir()
        raise
    writing.rename(directory / WRITTEN)
    finish(directory)


def finish(directory):
    """Moves the files that a save had written completely, but not yet moved, when it ended.

    The process that saves and any number of readers may do this at the same time: a save that crashed cannot be told
    from one that is about to move its files. So another process may have done any step already, and only superseded
    files and empty directories are ever removed.
    """
    directory = pathlib.Path(directory)
    written = directory / WRITTEN
    with contextlib.suppress(FileNotFoundError):
        for name in json.loads((written / SUPERSEDED).read_text(encoding="utf-8")):
            if path := _within(directory, name):
                path.unlink(missing_ok=True)
                if path.parent != directory:
                    with contextlib.suppress(OSError):  # not empty, or removed already
                        path.parent.rmdir()
        (written / SUPERSEDED).unlink()
    home = directory.resolve()
    for folder, _, names in os.walk(written, topdown=False):
        folder = pathlib.Path(folder)
        place = directory / folder.relative_to(written)
        for path in (folder, place):
            if path.resolve() != home / path.relative_to(directory):
                raise ValueError(f"{path} is a link, or within one, which could lead anywhere: remove the link.")
        for name in sorted(names):
            with contextlib.suppress(FileNotFoundError):
                place.mkdir(parents=True, exist_ok=True)
                os.replace(folder / name, place / name)
        with contextlib.suppress(OSError):  # already removed, or in use by another save
            os.rmdir(folder)


def _within(directory, name):
    """The path of a file in the directory or in a folder there; None for a name that leads out of it: names are read
    from a file, which anybody may have written."""
    path = pathlib.PurePath(name)
    *folders, _ = path.parts or ("",)
    leads_out = path.anchor or ".." in path.parts or any((directory / folder).is_symlink() for folder in folders)
    return None if leads_out or not path.name or len(folders) > 1 else directory / path


def open_unchanged(directory, open_files):
    """Calls `open_files(directory)`, again if a save replaced the directory's files meanwhile.

    Returns: the result, and a function that raises ValueError if a save has replaced a file since then: what is read
        later, mostly weights, would belong to another checkpoint.
    Raises: the errors of `open_files`; ValueError if saves follow each other faster than the files are opened.
    """
    for _ in range(ATTEMPTS):
        finish(directory)
        before = _files(directory)
        try:
            opened = open_files(directory)
        except ValueError:
            if _files(directory) == before and not (directory / WRITTEN).exists():
                raise
            continue  # a mix of old and new files
        if _files(directory) == before and not (directory / WRITTEN).exists():
            return opened, functools.partial(_check_files, directory, before)
    raise ValueError(f"{directory} was saved repeatedly while it was opened: open it after the saves have ended.")


def _files(directory):
    """What differs between each file of a checkpoint and one that replaces it, by path: inode, time and size."""
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
                f"{directory} was saved again while it was read ({pathlib.Path(path).name} has been replaced): "
                "read it again."
            )
