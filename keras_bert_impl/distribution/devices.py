"""The devices that a script's options select: TensorFlow's strategies, JAX's meshes."""

import contextlib
import os
import warnings

import keras

from keras_bert_impl.device_options import Distribution as Distribution
from keras_bert_impl.device_options import Kind as Kind
from keras_bert_impl.distribution import keras_patches
from keras_bert_impl.distribution.launchers import (
    DETECTED_BY_JAX,
    JAX_COUNT,
    SLICE,
    TF_CONFIG_EXAMPLE,
    check_all_joined,
    cluster_in_environment,
    processes_in_environment,
)
from keras_bert_impl.distribution.meshes import first_devices, mesh_distribution, platforms
from keras_bert_impl.distribution.processes import ending_with_the_others

# The backend that each kind needs; "single" runs on every backend.
BACKENDS = {
    "mirrored": "tensorflow",
    "multi_worker": "tensorflow",
    "tpu": "tensorflow",
    "data_parallel": "jax",
    "model_parallel": "jax",
}
# The launchers whose processes train together; the other kinds run in one process.
JOINED_BY = {"multi_worker": ("TF_CONFIG",)} | dict.fromkeys(
    ("data_parallel", "model_parallel"), (JAX_COUNT, *DETECTED_BY_JAX)
)


@contextlib.contextmanager
def distributed(options):
    """Context in which models are built on several devices, which later also train them.

    Enter it before anything is computed: devices cannot be divided afterwards.

    Args:
        options (Distribution): the devices, or an object with the same attributes.

    Raises: ValueError for a kind that the backend or the machine does not support, naming the alternatives.

    Example:
        >>> from keras_bert_impl.distribution import Distribution, distributed, num_replicas
        >>> options = Distribution(distribution="single")  # on JAX, for example, "data_parallel"
        >>> with distributed(options):
        ...     model = kbi.TextClassifier.from_pretrained("small_english", num_classes=2)
        ...     num_replicas()
        1
    """
    kind, backend = options.distribution, keras.backend.backend()
    _check_processes(kind)
    if kind == "single":
        _mention_idle_devices()
        yield
        return
    if BACKENDS[kind] != backend:
        possible = [name for name, needed in BACKENDS.items() if needed == backend]
        raise ValueError(
            f"--distribution {kind} needs KERAS_BACKEND={BACKENDS[kind]}, but this is {backend}, which supports "
            f"{', '.join(['single', *possible])}."
        )
    if backend == "tensorflow":
        with _strategy(options).scope(), ending_with_the_others():
            yield
        return
    before = keras.distribution.distribution()
    keras.distribution.set_distribution(mesh_distribution(options))
    keras_patches.take_any_batch()
    try:
        with ending_with_the_others():
            yield
    finally:
        keras.distribution.set_distribution(before)


def _check_processes(kind):
    """Raises ValueError if a launcher has started several processes that this kind would not join."""
    counts = processes_in_environment()
    if any(counts[launcher] > 1 for launcher in JOINED_BY.get(kind, ())):
        return
    for launcher, count in counts.items():
        if count > 1:
            raise ValueError(
                f"{launcher} names {count} {'hosts' if launcher == SLICE else 'processes'}, each of which would train "
                f"alone with --distribution {kind} and overwrite the others' files: {_remedy(launcher)}."
            )


def _remedy(launcher):
    backend = keras.backend.backend()
    joining = [name for name, launchers in JOINED_BY.items() if launcher in launchers and BACKENDS[name] == backend]
    choice = f"choose --distribution {' or '.join(joining)}"
    if not joining:
        choice = f"start them with KERAS_BACKEND=jax, {JAX_COUNT} and the others of --distribution data_parallel"
    return choice if launcher == SLICE else f"{choice}, or unset {launcher}"


def _mention_idle_devices():
    """Warns if this process sees several accelerators, of which it will use one."""
    backend = keras.backend.backend()
    if backend == "jax":
        if platforms() <= {"cpu"}:
            return  # without starting JAX
        import jax

        check_all_joined()
        count, remedy = jax.local_device_count(), "--distribution data_parallel uses all"
    elif backend == "torch":
        import torch

        count = torch.cuda.device_count()
        remedy = "Keras does not distribute models on torch; on JAX, --distribution data_parallel uses all"
    else:
        import tensorflow as tf

        count, remedy = len(tf.config.list_physical_devices("GPU")), "--distribution mirrored uses all"
    if count > 1:
        warnings.warn(f"{count} accelerators are visible, but only one is used: {remedy}.", stacklevel=2)


def _strategy(options):
    """The `tf.distribute.Strategy` of the options."""
    import tensorflow as tf

    if not os.environ.get("TF_CONFIG", "set").strip():
        del os.environ["TF_CONFIG"]  # some launchers leave it blank, which TensorFlow takes for broken JSON
    if options.distribution == "tpu":
        return _tpu_strategy(options.tpu)
    if options.distribution == "multi_worker":
        _check_cluster()
        keras_patches.take_any_batch()
        return tf.distribute.MultiWorkerMirroredStrategy()
    gpus = tf.config.list_logical_devices("GPU") if tf.config.list_physical_devices("GPU") else []
    if gpus:
        return tf.distribute.MirroredStrategy([device.name for device in first_devices(gpus, options.devices)])
    if options.devices is None:
        raise ValueError(
            "--distribution mirrored found no GPU: --devices 2 divides the CPU, to try it out; --distribution single "
            "trains on the whole CPU."
        )
    cpu = tf.config.list_physical_devices("CPU")[0]
    parts = [tf.config.LogicalDeviceConfiguration()] * options.devices
    if tf.config.get_logical_device_configuration(cpu) != parts:
        tf.config.set_logical_device_configuration(cpu, parts)
    return tf.distribute.MirroredStrategy([f"CPU:{index}" for index in range(options.devices)])


def _check_cluster():
    """Raises ValueError if TF_CONFIG names no process that trains, or if this process is not one of them."""
    import tensorflow as tf

    kind = tf.distribute.cluster_resolver.TFConfigClusterResolver().task_type
    if kind not in ("chief", "worker") or not cluster_in_environment().get(kind):
        raise ValueError(
            f"--distribution multi_worker needs the environment variable TF_CONFIG everywhere: {TF_CONFIG_EXAMPLE}. "
            f"Only the chief and workers train, but TF_CONFIG names this process {kind!r}: do not start it."
        )


def _tpu_strategy(name):
    import tensorflow as tf

    resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu=name)
    tf.config.experimental_connect_to_cluster(resolver)
    tf.tpu.experimental.initialize_tpu_system(resolver)
    return tf.distribute.TPUStrategy(resolver)
