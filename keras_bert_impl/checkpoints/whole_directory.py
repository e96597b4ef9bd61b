"""Files of a directory that are replaced all or none, whatever happens meanwhile."""

import contextlib
import json
import os
import pathlib
import shutil

WRITING, WRITTEN = ".being-written", ".written"
SUPERSEDED = "superseded.json"


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
        raise
    writing.rename(directory / WRITTEN)
    finish(directory)


def finish(directory):
    """Moves up what a save had written whole but not yet moved when it ended."""
    written = pathlib.Path(directory) / WRITTEN
    if not written.is_dir():
        return
    superseded = written / SUPERSEDED
    if superseded.is_file():
        for name in json.loads(superseded.read_text(encoding="utf-8")):
            # The name alone: what a file says never leads out of the directory.
            (written.parent / pathlib.PurePath(name).name).unlink(missing_ok=True)
        superseded.unlink()
    for path in sorted(written.iterdir()):
        os.replace(path, written.parent / path.name)
    written.rmdir()
