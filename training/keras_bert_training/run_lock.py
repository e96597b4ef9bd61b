"""Which process runs in a directory: no other one may write there, or resume the run, at the same time.

The operating system holds these locks and releases them when their process ends, however it ends. File systems that
several hosts share pass them on, NFS for one; a mounted bucket does not, and there a lock holds on its own host only.
"""

import contextlib
import os
import pathlib
import socket

import filelock

from keras_bert_impl.process_group import failing_together, is_chief

LOCK = "run.lock"


@contextlib.contextmanager
def locked(directory):
    """Within this context no other process runs in a directory, which is created and, if it stays empty, removed.

    Of several processes that train together, the first one locks for all.

    Raises: ValueError naming the process that runs there, in all processes.
    """
    directory, lock = pathlib.Path(directory), None
    missing = [place for place in (directory, *directory.parents) if not place.exists()]
    with failing_together():
        if is_chief() and (lock := take(directory / LOCK)) is None:
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


def take(path):
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
