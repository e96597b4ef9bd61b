"""The devices that a script's options select: TensorFlow's strategies, JAX's meshes."""

import contextlib
import dataclasses
import os
import re
import typing

import keras

from keras_bert_impl.distribution import keras_patches
from keras_bert_impl.distribution.processes import (
    JAX_COUNT,
    TF_CONFIG_EXAMPLE,
    cluster_in_environment,
    ending_with_the_others,
    join_processes,
    processes_in_environment,
)

# The backend that each kind needs; "single" runs on every backend.
BACKENDS = {
    "mirrored": "tensorflow",
    "multi_worker": "tensorflow",
    "tpu": "tensorflow",
    "data_parallel": "jax",
    "model_parallel": "jax",
}
# The environment variable that names the processes which train together; the other kinds run in one process.
JOINED_BY = {"multi_worker": "TF_CONFIG", "data_parallel": JAX_COUNT, "model_parallel": JAX_COUNT}
Kind = typing.Literal["single", "mirrored", "multi_worker", "tpu", "data_parallel", "model_parallel"]


@dataclasses.dataclass
class Distribution:
    """The options of a script that select the devices.

    Args:
        distribution: single; on TensorFlow mirrored (all GPUs of this machine), multi_worker (those of all machines in
            TF_CONFIG) or tpu; on JAX data_parallel (all devices) or model_parallel (each weight matrix split over some
            of them), with several processes on the hosts of a TPU slice, or if KERAS_DISTRIBUTION_JOB_ADDRESSES,
            _NUM_PROCESSES and _PROCESS_ID are set.
        devices: the number of devices to use; without an accelerator, the number of parts of the CPU, to try things
            out.
        model_devices: for model_parallel, the number of devices that share one copy of the model.
        tpu: for tpu, the name of the TPU; default is "local", the TPU of this machine.
    """

    distribution: Kind = "single"
    devices: int | None = None
    model_devices: int = 1
    tpu: str = "local"


@contextlib.contextmanager
def distributed(options):
    """Within this context, models are built on the devices of these options, which later also train them.

    It must be entered before anything is computed: devices cannot be divided afterwards.

    Args:
        options: a Distribution, or an object with its attributes.

    Raises: ValueError for a kind that the backend or the machine does not support, naming the alternatives.
    """
    kind, backend = options.distribution, keras.backend.backend()
    _check_processes(kind)
    if kind == "single":
        yield
        return
    if BACKENDS[kind] != backend:
        possible = [name for name, needed in BACKENDS.items() if needed == backend]
        raise ValueError(
            f"--distribution {kind} needs KERAS_BACKEND={BACKENDS[kind]}, but this is {backend}, which supports "
            f"{', '.join(['single', *possible])}."
        )
    if kind != "model_parallel" and options.model_devices != 1:
        raise ValueError(f"model_devices {options.model_devices} is for --distribution model_parallel, not for {kind}.")
    if backend == "tensorflow":
        with _strategy(options).scope(), ending_with_the_others():
            yield
        return
    before = keras.distribution.distribution()
    keras.distribution.set_distribution(_mesh_distribution(options))
    try:
        with ending_with_the_others():
            yield
    finally:
        keras.distribution.set_distribution(before)


def _check_processes(kind):
    """Raises ValueError if the environment names several processes that this kind would not join."""
    counts = processes_in_environment()
    if kind in JOINED_BY and counts[JOINED_BY[kind]] > 1:
        return
    for variable, count in counts.items():
        if count > 1:
            raise ValueError(
                f"{variable} names {count} processes, each of which would train alone with --distribution {kind} and "
                f"overwrite the others' files: choose another distribution, or unset {variable}."
            )


def _strategy(options):
    """The `tf.distribute.Strategy` of the options."""
    import tensorflow as tf

    if not os.environ.get("TF_CONFIG", "set").strip():
        del os.environ["TF_CONFIG"]  # some launchers leave it blank, which TensorFlow takes for broken JSON
    if options.distribution == "tpu":
        return _tpu_strategy(options.tpu)
    if options.distribution == "multi_worker":
        _check_cluster()
        keras_patches.make_multi_worker_fit_work()
        return tf.distribute.MultiWorkerMirroredStrategy()
    gpus = tf.config.list_logical_devices("GPU") if tf.config.list_physical_devices("GPU") else []
    if gpus:
        return tf.distribute.MirroredStrategy([device.name for device in _first(gpus, options.devices)])
    if options.devices is None:
        raise ValueError(
            "--distribution mirrored found no GPU: --devices 2 divides the CPU, to try it out; --distribution single "
            "trains on the whole CPU."
        )
    cpu = tf.config.list_physical_devices("CPU")[0]
    try:
        parts = [tf.config.LogicalDeviceConfiguration()] * options.devices
        if tf.config.get_logical_device_configuration(cpu) != parts:
            tf.config.set_logical_device_configuration(cpu, parts)
    except RuntimeError as error:
        raise ValueError(
            f"The CPU can be divided into {options.devices} only before TensorFlow computes: {error}."
        ) from None
    return tf.distribute.MirroredStrategy([f"CPU:{index}" for index in range(options.devices)])


def _check_cluster():
    """Raises ValueError if TF_CONFIG names no process that trains, or if this process is not one of them."""
    import tensorflow as tf

    trained_by = ("chief", "worker")
    if not any(cluster_in_environment().get(kind) for kind in trained_by):
        raise ValueError(
            f"--distribution multi_worker needs the environment variable TF_CONFIG, on every machine: "
            f"{TF_CONFIG_EXAMPLE}."
        )
    kind = tf.distribute.cluster_resolver.TFConfigClusterResolver().task_type
    if kind not in trained_by:
        raise ValueError(
            f"TF_CONFIG calls this process {kind!r}: --distribution multi_worker trains with a chief and workers, and "
            "needs no other kind of process. Do not start any."
        )


def _tpu_strategy(name):
    import tensorflow as tf

    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu=name)
        tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
    except (ValueError, RuntimeError, tf.errors.OpError) as error:
        raise ValueError(
            f"No TPU {name!r} answers TensorFlow ({str(error).splitlines()[0][:200]}). On a TPU VM and in Colab its "
            "name is 'local'. We recommend KERAS_BACKEND=jax with --distribution data_parallel instead."
        ) from None
    return tf.distribute.TPUStrategy(resolver)


def _mesh_distribution(options):
    """The `keras.distribution` of the options."""
    import jax

    join_processes()
    if options.devices is not None and _platforms() <= {"cpu"}:
        try:
            jax.config.update("jax_num_cpu_devices", options.devices)
            # A sum over devices blocks a thread of each until all have arrived. With two steps at once, or only as many
            # threads as cores, some would wait for ever. (XLA reads the number of threads from NPROC.)
            jax.config.update("jax_cpu_enable_async_dispatch", False)
            os.environ["NPROC"] = str(max(os.cpu_count(), 4 * options.devices))
        except RuntimeError as error:
            raise ValueError(f"The CPU can be divided only before JAX computes: {error}.") from None
    devices = _first(jax.devices(), options.devices)
    if options.distribution == "data_parallel":
        return keras.distribution.DataParallel(devices=devices, auto_shard_dataset=False)  # `shared` does it
    if options.model_devices < 2 or len(devices) % options.model_devices:
        raise ValueError(
            f"--model_devices {options.model_devices} must be at least 2 and divide the {len(devices)} devices."
        )
    shape = (len(devices) // options.model_devices, options.model_devices)
    mesh = keras.distribution.DeviceMesh(shape, ("batch", "model"), devices)
    return ModelParallel(mesh)


# The axis along which a weight is split over the devices that share a model, as in Shoeybi et al. 2019 ("Megatron-LM",
# section 3): query, key, value and the first feed-forward kernel by columns, the kernels that follow them by rows, so
# that a block needs two sums over its devices; the vocabulary by words. Other weights are whole on every device.
LAYOUT = {
    r".*attention/query_key_value/kernel": (None, "model"),
    r".*attention/query_key_value/bias": ("model",),
    r".*attention/output/kernel": ("model", None),
    r".*intermediate/kernel": (None, "model"),
    r".*intermediate/bias": ("model",),
    r".*block_\d+/output/kernel": ("model", None),
    r".*token_embedding/embeddings": ("model", None),
    r".*masked_lm_head/output_bias": ("model",),
}


def axes_of_weight(path, shape, model_devices):
    """The mesh axis over which each axis of a weight is split; None for an axis that is whole on all devices.

    A weight that cannot be split evenly is whole on all devices, too: 30,522 words cannot be split by 4, a multiple of
    128 can.
    """
    axes = next((axes for pattern, axes in LAYOUT.items() if re.fullmatch(pattern, path)), (None,) * len(shape))
    is_even = all(axis is None or size % model_devices == 0 for axis, size in zip(axes, shape, strict=True))
    return axes if is_even else (None,) * len(shape)


class ModelParallel(keras.distribution.ModelParallel):
    """`keras.distribution.ModelParallel` according to LAYOUT, over a mesh with the axes "batch" and "model"."""

    def __init__(self, mesh):
        layout = keras.distribution.LayoutMap(mesh)
        super().__init__(layout_map=layout, batch_dim_name="batch", auto_shard_dataset=False)  # `shared` does it

    def get_variable_layout(self, variable):
        axes = axes_of_weight(variable.path, variable.shape, self.device_mesh.shape[1])
        return keras.distribution.TensorLayout(axes, self.device_mesh)


def _first(devices, count):
    if count is not None and count > len(devices):
        raise ValueError(f"--devices {count}, but there are {len(devices)}: {', '.join(map(str, devices))}.")
    return devices[:count]


def _platforms():
    """The platforms that JAX will use, without starting it."""
    import jax

    wanted = jax.config.jax_platforms
    if wanted:
        return set(wanted.split(","))
    from jax._src import hardware_utils  # what JAX itself asks before it starts

    has_tpu = hardware_utils.num_available_tpu_chips_and_device_id()[0] > 0
    has_gpu = os.path.exists("/dev/nvidia0") or os.path.exists("/dev/kfd")
    return {"tpu"} if has_tpu else {"gpu"} if has_gpu else {"cpu"}
