"""The processes that train together: which one this is, what they tell one another, and how they end together."""

import contextlib
import os
import secrets
import signal
import subprocess
import sys
import time

import keras
import numpy as np

# Parts of the error messages of TensorFlow and JAX when another process does not answer.
SIGNS_OF_LOSS = ("Collective ops is aborted", "Gloo", "heartbeat", "UNAVAILABLE", "Connection reset", "Socket closed")


def active_strategy():
    """The `tf.distribute.Strategy` whose scope is active; None if there is none."""
    if keras.backend.backend() != "tensorflow":
        return None
    import tensorflow as tf

    return tf.distribute.get_strategy() if tf.distribute.has_strategy() else None


def num_processes():
    """Returns the number of processes that train together: 1, unless multi_worker or several JAX processes are used."""
    return process_number_and_count()[1]


def is_chief():
    """Returns whether this process is the one that prints and writes files, a bool."""
    return process_number_and_count()[0] == 0


def process_number_and_count():
    """(number of this process, how many there are)."""
    if keras.distribution.distribution() is not None:
        import jax

        return jax.process_index(), jax.process_count()
    strategy = active_strategy()
    return (0, 1) if strategy is None else _place_in_cluster(strategy.cluster_resolver)


def _place_in_cluster(resolver):
    """(number of this process, how many there are) by TensorFlow's resolver, numbered as its strategies do.

    A chief trains like a worker; it comes first, and worker 0 is then the second process.
    """
    import tensorflow as tf

    if not isinstance(resolver, tf.distribute.cluster_resolver.TFConfigClusterResolver):
        return 0, 1  # a single process controls all hosts of a TPU
    cluster = resolver.cluster_spec().as_dict()
    chiefs, workers = (len(cluster.get(kind, ())) for kind in ("chief", "worker"))
    if chiefs + workers < 2:
        return 0, 1
    return resolver.task_id + (chiefs if resolver.task_type == "worker" else 0), chiefs + workers


def gathered_from_processes(number):
    """The whole numbers, 0 to 2**31 - 1, that the processes give, in the order of their own numbers. All must call it.

    For decisions that all have to make alike, such as which saved state to restore.
    """
    place, count = process_number_and_count()
    if count == 1:
        return [number]
    if keras.backend.backend() == "jax":
        from jax.experimental import multihost_utils

        return multihost_utils.process_allgather(np.int32(number)).tolist()
    import tensorflow as tf

    strategy = active_strategy()
    own = np.arange(count, dtype="int32") == place
    each = strategy.run(lambda: tf.constant(own * np.int32(number)))
    summed = strategy.reduce("SUM", each, axis=None).numpy()
    return (summed // (strategy.num_replicas_in_sync // count)).tolist()  # every replica of a process has given it


def from_chief(number):
    """Returns the number that the chief process passes, in all processes, all of which must call it.

    Args:
        number (int): a whole number from 0 to 2**31 - 1; those of other processes are ignored.
    """
    return gathered_from_processes(int(number))[0]


SECONDS_BETWEEN_LOOKS = 10.0


class SharedClock:
    """A clock that strikes in all processes after the same execution, as the clock of the first one says.

    The processes ask the first one only every ten seconds or so: after a number of executions that it tells them each
    time, from the speed of the last ones.

    Args:
        minutes: the time between two strikes; None never strikes.
    """

    def __init__(self, minutes):
        self.minutes, self.until_look = minutes, 1
        self.start = self.last_look = time.monotonic()
        self.executions = 0

    def restart(self):
        """Begins the time anew."""
        self.start = time.monotonic()

    def is_time(self):
        """Whether the time is over; all processes must call it after each execution of a training step."""
        if self.minutes is None:
            return False
        if num_processes() == 1:
            return time.monotonic() - self.start > 60 * self.minutes
        self.executions += 1
        if self.executions < self.until_look:
            return False
        now = time.monotonic()
        seconds = (now - self.last_look) / self.executions
        next_look = from_chief(min(1000, max(1, int(SECONDS_BETWEEN_LOOKS / max(seconds, 1e-6)))))
        self.until_look, self.executions, self.last_look = next_look, 0, now
        return bool(from_chief(now - self.start > 60 * self.minutes))


@contextlib.contextmanager
def failing_together():
    """If one process fails within this context, all end with an error; otherwise the others would wait for it.

    Within the context, no process may wait for another one.
    """
    try:
        yield
    except (ValueError, OSError, ImportError):
        gathered_from_processes(1)
        raise
    failed = [number for number, has_failed in enumerate(gathered_from_processes(0)) if has_failed]
    if failed:
        raise ValueError(f"Process {failed[0]} has ended with an error: see its output.")


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


@contextlib.contextmanager
def ending_with_the_others():
    """Ends this process with a one-line message if another process of the same training is lost."""
    number, count = process_number_and_count()
    if count == 1:
        yield
        return
    line = (
        f"error: process {number} of {count} has ended because it or another one was killed or cannot be reached. "
        "Run the same command again in all of them: training resumes from the last saved state."
    )
    # A shell prints the line: if the first process is lost, JAX may abort before Python sees an exception.
    shell = subprocess.Popen(["sh", "-c", 'read ended || echo "$0" >&2', line], stdin=subprocess.PIPE)
    try:
        yield
    except Exception as error:
        if any(sign in str(error) for sign in SIGNS_OF_LOSS):
            sys.stdout.flush()
            os._exit(1)  # at once: JAX would first wait for the lost process to disconnect
        raise
    finally:
        shell.communicate(b"ended\n")


class EndSignal:
    """Whether this process was asked to end: by SIGTERM, which preemptible machines send seconds before they stop, or
    by SIGINT, which Ctrl-C sends. A second Ctrl-C ends it at once.

    With several JAX processes, whether any of them was asked by SIGTERM: all learn it after the same step, and can save
    together; Ctrl-C ends them at once. A TensorFlow process knows only of its own signal; if it ends, the others lose
    it.

    Attributes:
        number: of the signal that has arrived, None before.
    """

    def __init__(self):
        self.number, self.executions, self.earlier_handlers = None, 0, {}

    def listen(self):
        """Starts listening; JAX processes already have a handler for SIGTERM. An ignored SIGINT, as that of a process
        in the background, stays ignored."""
        if self._is_of_jax_processes():
            return
        for number in (signal.SIGTERM, signal.SIGINT):
            if signal.getsignal(number) != signal.SIG_IGN:
                self.earlier_handlers[number] = signal.signal(number, self._note)

    def after_execution(self):
        """Whether to end now; all processes must call it after each execution of a training step."""
        self.executions += 1
        if self._is_of_jax_processes():
            from jax.experimental import multihost_utils

            if multihost_utils.reached_preemption_sync_point(self.executions):
                self.number = signal.SIGTERM
        return self.number is not None

    def stop_listening(self):
        """Restores the previous handlers, where they were replaced."""
        while self.earlier_handlers:
            signal.signal(*self.earlier_handlers.popitem())

    def _note(self, number, frame):
        self.number = number
        if number == signal.SIGINT:
            signal.signal(number, self.earlier_handlers.pop(number))
            # Not by print, which the signal may have interrupted.
            os.write(2, b"\n  The state is saved after this step; Ctrl-C again ends at once.\n")

    @staticmethod
    def _is_of_jax_processes():
        return keras.backend.backend() == "jax" and num_processes() > 1
