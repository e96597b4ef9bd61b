"""The directory that an export writes: refused if it holds something else, and replaced when everything is written."""

import contextlib
import pathlib
import tempfile


def check_destination(directory, main_file, overwrite):
    """Raises ValueError if there is something in the directory, unless it is an export with this main file that is to
    be replaced."""
    directory = pathlib.Path(directory)
    if not directory.exists() or (directory.is_dir() and not any(directory.iterdir())):
        return
    if not overwrite or not (directory / main_file).is_file():
        raise ValueError(
            f"{directory} exists: name another directory, remove it, or, if it holds {main_file}, pass overwrite=True."
        )


@contextlib.contextmanager
def replaced_when_whole(directory):
    """Yields a path next to `directory` to write to, which replaces `directory` unless an exception is raised."""
    directory = pathlib.Path(directory).absolute()
    directory.parent.mkdir(parents=True, exist_ok=True)
    # Next to it and hence on the same disk: only there a rename happens completely or not at all.
    with tempfile.TemporaryDirectory(prefix=f".{directory.name}.", dir=directory.parent) as beside:
        written, replaced = pathlib.Path(beside, "written"), pathlib.Path(beside, "replaced")
        yield written
        if directory.exists():
            directory.rename(replaced)
        try:
            written.rename(directory)
        except OSError:
            if replaced.exists():
                replaced.rename(directory)
            raise
