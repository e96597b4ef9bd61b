"""The processes that train together: which one this is, and how it learns that it or another one has to end."""

import contextlib
import json
import os
import signal
import subprocess
import sys

import keras

HEARTBEAT_SECONDS = 30  # a JAX process that is silent for longer is considered lost; JAX's own default is 100

JAX_COUNT = "KERAS_DISTRIBUTION_NUM_PROCESSES"
TF_CONFIG_EXAMPLE = (
    """'{"cluster": {"worker": ["host1:2222", "host2:2222"]}, "task": {"type": "worker", "index": 0}}'"""
)

# Parts of the error messages of TensorFlow and JAX when another process does not answer.
SIGNS_OF_LOSS = ("Collective ops is aborted", "Gloo", "heartbeat", "UNAVAILABLE", "Connection reset", "Socket closed")


def active_strategy():
    """The `tf.distribute.Strategy` whose scope is active; None if there is none."""
    if keras.backend.backend() != "tensorflow":
        return None
    import tensorflow as tf

    return tf.distribute.get_strategy() if tf.distribute.has_strategy() else None


def join_processes():
    """Joins the other processes of a JAX program, if the environment names them or this is a host of a TPU slice.

    Like `keras.distribution.initialize`, which has no argument for the heartbeat.
    """
    import jax

    names = ("KERAS_DISTRIBUTION_JOB_ADDRESSES", JAX_COUNT, "KERAS_DISTRIBUTION_PROCESS_ID")
    found = [name for name in names if os.environ.get(name)]
    if jax.distributed.is_initialized():
        return
    if found:
        if len(found) < len(names):
            raise ValueError(f"Only {' and '.join(found)} set: all three of {', '.join(names)} are needed.")
        addresses, number, index = (os.environ[name] for name in names)
        jax.distributed.initialize(
            addresses.split(",")[0], int(number), int(index), heartbeat_timeout_seconds=HEARTBEAT_SECONDS
        )
    elif len(os.environ.get("TPU_WORKER_HOSTNAMES", "").split(",")) > 1:
        jax.distributed.initialize(heartbeat_timeout_seconds=HEARTBEAT_SECONDS)


def processes_in_environment():
    """How many processes each backend's environment variable names: {"TF_CONFIG": 1, ...}, 1 if it names none."""
    cluster = cluster_in_environment()
    number = os.environ.get(JAX_COUNT) or "1"
    if not number.isdecimal():
        raise ValueError(f"{JAX_COUNT} is {number!r}, expected a number of processes.")
    return {"TF_CONFIG": max(1, sum(map(len, cluster.values()))), JAX_COUNT: max(1, int(number))}


def cluster_in_environment():
    """The addresses of each kind of task that TF_CONFIG names: {"chief": [...], "worker": [...]}; {} if it is blank."""
    text = os.environ.get("TF_CONFIG", "").strip()
    try:
        found = json.loads(text or "{}")
        return {kind: list(addresses) for kind, addresses in (found.get("cluster") or {}).items()}
    except (ValueError, AttributeError, TypeError):
        raise ValueError(f"TF_CONFIG is {text[:80]!r}, expected {TF_CONFIG_EXAMPLE}.") from None


def num_processes():
    """The number of processes that train together: 1 except with multi_worker and in JAX programs of several."""
    return process_number_and_count()[1]


def is_chief():
    """Whether this process is the one that prints and writes."""
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
    """Whether this process was asked to end by SIGTERM, which preemptible machines send seconds before they stop.

    With several JAX processes, whether any of them was asked: all learn it after the same step, and can save together.
    A TensorFlow process knows only of its own signal; if it ends, the others lose it.
    """

    def __init__(self):
        self.is_asked, self.executions, self.earlier_handler = False, 0, None

    def listen(self):
        """Starts listening; JAX processes already have a handler for the signal."""
        if not self._is_of_jax_processes():
            self.earlier_handler = signal.signal(signal.SIGTERM, self._note)

    def after_execution(self):
        """Whether to end now; all processes must call it after each execution of a training step."""
        self.executions += 1
        if self._is_of_jax_processes():
            from jax.experimental import multihost_utils

            return multihost_utils.reached_preemption_sync_point(self.executions)
        return self.is_asked

    def stop_listening(self):
        """Restores the previous handler, if it was replaced."""
        if self.earlier_handler is not None:
            signal.signal(signal.SIGTERM, self.earlier_handler)
            self.earlier_handler = None

    def _note(self, number, frame):
        self.is_asked = True

    @staticmethod
    def _is_of_jax_processes():
        return keras.backend.backend() == "jax" and num_processes() > 1
