"""How many processes a launcher has started, and how JAX's processes find one another.

Launchers tell a process by environment variables that it is one of several; a TPU slice tells it by its metadata. What
JAX can detect by itself (slices, SLURM, Open MPI) is left to JAX.
"""

import functools
import json
import os

import keras

HEARTBEAT_SECONDS = 30  # a JAX process that is silent for longer is considered lost; JAX's own default is 100

ADDRESSES, JAX_COUNT, JAX_NUMBER = (
    f"KERAS_DISTRIBUTION_{name}" for name in ("JOB_ADDRESSES", "NUM_PROCESSES", "PROCESS_ID")
)
SLICE = "The TPU slice"
# SLURM_NTASKS would not do: a batch script has it, too, without srun.
SRUN, MPIRUN = "SLURM_STEP_NUM_TASKS", "OMPI_COMM_WORLD_SIZE"
COUNTS = (JAX_COUNT, "WORLD_SIZE", SRUN, MPIRUN)
DETECTED_BY_JAX = (SRUN, MPIRUN, SLICE)
TF_CONFIG_EXAMPLE = (
    """'{"cluster": {"worker": ["host1:2222", "host2:2222"]}, "task": {"type": "worker", "index": 0}}'"""
)


def processes_in_environment():
    """How many processes each launcher has started: {"TF_CONFIG": 1, "WORLD_SIZE": 4, ...}; 1 where it names none."""
    counts = {"TF_CONFIG": sum(map(len, cluster_in_environment().values()))}
    for variable in COUNTS:
        counts[variable] = int(os.environ.get(variable) or "1")
    counts[SLICE] = hosts_of_slice() or 1
    return {name: max(1, count) for name, count in counts.items()}


def cluster_in_environment():
    """The addresses of each kind of task that TF_CONFIG names: {"chief": [...], "worker": [...]}; {} if it is blank."""
    found = json.loads(os.environ.get("TF_CONFIG", "").strip() or "{}")
    return {kind: list(addresses) for kind, addresses in (found.get("cluster") or {}).items()}


@functools.cache
def hosts_of_slice():
    """The number of hosts of the TPU slice, or slices, that this machine belongs to.

    None if it has no TPU of Google Cloud, or if JAX does not compute.

    Asks as `jax.distributed.initialize` does: GKE's environment variables, or the metadata server of Compute Engine.
    """
    if keras.backend.backend() != "jax":
        return None
    from jax._src import clusters  # see tests/test_private_jax.py

    try:
        kinds = (clusters.GkeTpuCluster, clusters.GceTpuCluster)
        kind = next((kind for kind in kinds if kind.is_env_present()), None)
        return None if kind is None else kind.get_process_count()
    except OSError:  # no metadata server answers
        return None  # a TPU elsewhere, as in Colab; `check_all_joined` notices a slice


def join_processes():
    """Joins the other processes of a JAX program: those in Keras' environment variables, or those that JAX detects.

    On a TPU this is always done, even for one host: without it there is no heartbeat, and no host learns of the SIGTERM
    of another. Unlike `keras.distribution.initialize`, it sets the time of the heartbeat.

    Raises: KeyError if only some of the variables are set.
    """
    import jax

    names = (ADDRESSES, JAX_COUNT, JAX_NUMBER)
    if jax.distributed.is_initialized():
        return
    if any(os.environ.get(name) for name in names):
        addresses, count, number = (os.environ[name] for name in names)
        jax.distributed.initialize(
            addresses.split(",")[0], int(count), int(number), heartbeat_timeout_seconds=HEARTBEAT_SECONDS
        )
        return
    counts = processes_in_environment()
    if hosts_of_slice() is not None or any(counts[name] > 1 for name in DETECTED_BY_JAX):
        jax.distributed.initialize(heartbeat_timeout_seconds=HEARTBEAT_SECONDS)


def check_all_joined():
    """Raises ValueError if JAX sees the devices of hosts that it was not told of."""
    import jax

    if jax.process_count() > 1 and not jax.distributed.is_initialized():
        raise ValueError(
            f"This machine is one of {jax.process_count()} hosts of a TPU slice, and neither its metadata nor its "
            f"environment says which: set {ADDRESSES}, {JAX_COUNT} and {JAX_NUMBER} on each host, and choose "
            "--distribution data_parallel."
        )
