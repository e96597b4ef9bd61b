"""Runs that several processes share: each claims one by a file before it begins."""

import contextlib
import os
import socket
import time

from keras_bert_impl import distribution

WAIT_SECONDS = 5  # between two looks at what other processes are doing


@contextlib.contextmanager
def claimed(directory, wait=False):
    """Within this context other processes leave a run alone; gives whether it is ours.

    A file beside the run's directory holds host and process; that of a process of this host which no longer lives is
    removed. With `wait`, waits until it is ours.
    """
    path = directory.with_name(directory.name + ".claim")
    path.parent.mkdir(parents=True, exist_ok=True)
    while not (is_ours := claim(path)) and wait:
        time.sleep(WAIT_SECONDS)
    try:
        yield is_ours
    finally:
        if is_ours:
            path.unlink(missing_ok=True)


def claim(path):
    """Writes the file of a claim unless another process has; returns whether this process wrote it."""
    if not distribution.is_chief():
        return True  # the first of several processes of one run claims for all
    own = f"{socket.gethostname()} {os.getpid()}"
    with contextlib.suppress(FileNotFoundError):
        host, _, process = path.read_text().partition(" ")
        if host == socket.gethostname() and process.isdigit() and not is_alive(int(process)):
            path.unlink(missing_ok=True)
    try:
        with open(path, "x", encoding="utf-8") as file:
            file.write(own)
    except FileExistsError:
        return False
    return True


def is_alive(process):
    """Whether a process of this machine is running."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
