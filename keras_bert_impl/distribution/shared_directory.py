"""Whether the processes that train together see the same directory."""

import secrets
import time

from keras_bert_impl.distribution.processes import (
    failing_together,
    from_chief,
    is_chief,
    num_processes,
    process_number_and_count,
)

SHARED_TOKEN = "shared-"  # begins the names of the files that are written here
SECONDS_TO_APPEAR = 10.0  # network file systems show a new file to other hosts within seconds


def check_shared(directory):
    """Checks that a file that the chief writes into a directory can be read by all processes, which must call this.

    Args:
        directory: a path, local or remote; created if it is missing.

    Raises: ValueError in all processes, if one of them does not see the file.
    """
    if num_processes() == 1:
        return
    token = str(from_chief(secrets.randbelow(2**31)))
    # No earlier look for this name can have been kept in a cache, that it is missing.
    path = directory / f"{SHARED_TOKEN}{token}"
    with failing_together():
        if is_chief():
            directory.mkdir(parents=True, exist_ok=True)
            path.write_text(token)
    try:
        with failing_together():
            _check_appears(path, token)
    finally:
        if is_chief():
            path.unlink(missing_ok=True)


def _check_appears(path, token):
    until = time.monotonic() + SECONDS_TO_APPEAR
    while not (path.exists() and path.read_text() == token):
        if time.monotonic() > until:
            number, count = process_number_and_count()
            raise ValueError(
                f"{path.parent} on the machine of process {number} of {count} is not the directory of the first "
                "process: all hosts must share it. Name a directory on a file system that they share, such as a "
                "Filestore or a mounted bucket."
            )
        time.sleep(0.1)
