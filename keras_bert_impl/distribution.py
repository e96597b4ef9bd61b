"""Which devices compute: decided here alone, so that models and scripts are the same on one CPU and on a TPU slice.

TensorFlow distributes by strategies, which run a model once on each device, each on its part of a batch ("replicas").
JAX distributes by meshes: one program that sees the whole batch, cut up by the compiler. Whatever is summed over a
batch therefore goes through `sum_over_replicas`. Both backends are imported here where they are asked for, nowhere
else.
"""

import contextlib
import dataclasses
import functools
import json
import os
import re
import signal
import subprocess
import sys
import typing

import keras
import numpy as np

from keras_bert_impl import mended_keras

# What each needs; "single" runs on every backend.
BACKENDS = {
    "mirrored": "tensorflow",
    "multi_worker": "tensorflow",
    "tpu": "tensorflow",
    "data_parallel": "jax",
    "model_parallel": "jax",
}
Kind = typing.Literal["single", "mirrored", "multi_worker", "tpu", "data_parallel", "model_parallel"]
# What TensorFlow and JAX say where another process does not answer.
SIGNS_OF_LOSS = ("Collective ops is aborted", "Gloo", "heartbeat", "UNAVAILABLE", "Connection reset", "Socket closed")
HEARTBEAT_SECONDS = 30  # a JAX process that is silent for so long is taken for lost; JAX itself waits 100


@dataclasses.dataclass
class Distribution:
    """The options of a script that say which devices compute.

    Args:
        distribution: single; on TensorFlow mirrored (all GPUs of this machine), multi_worker (those of the machines in
            TF_CONFIG), tpu; on JAX data_parallel (all devices), or model_parallel (each weight matrix over some of
            them), of several processes on the hosts of a TPU slice, or where KERAS_DISTRIBUTION_JOB_ADDRESSES,
            _NUM_PROCESSES and _PROCESS_ID are set.
        devices: use so many devices; where there is no accelerator, so many parts of the CPU, to try things out.
        model_devices: for model_parallel, the devices that share one copy of the model.
        tpu: for tpu, the name of the TPU; default is that of this machine, "local".
    """

    distribution: Kind = "single"
    devices: int | None = None
    model_devices: int = 1
    tpu: str = "local"


@contextlib.contextmanager
def distributed(options):
    """Within it, models are built on the devices of these options, and trained by them wherever `fit` is called.

    To be entered before anything is computed: devices cannot be parted afterwards.

    Args:
        options: a Distribution, or what has its attributes.

    Raises: ValueError for a kind that the backend or the machine cannot do, saying what could.
    """
    kind, backend = options.distribution, keras.backend.backend()
    if kind == "single":
        yield
        return
    if BACKENDS[kind] != backend:
        possible = [name for name, needed in BACKENDS.items() if needed == backend]
        raise ValueError(
            f"--distribution {kind} needs KERAS_BACKEND={BACKENDS[kind]}, this is {backend}; here there is "
            f"{', '.join(['single', *possible])}."
        )
    if kind != "model_parallel" and options.model_devices != 1:
        raise ValueError(f"model_devices {options.model_devices} is for --distribution model_parallel, not for {kind}.")
    if backend == "tensorflow":
        with _strategy(options).scope(), _ending_with_the_others():
            yield
        return
    before = keras.distribution.distribution()
    keras.distribution.set_distribution(_mesh_distribution(options))
    try:
        with _ending_with_the_others():
            yield
    finally:
        keras.distribution.set_distribution(before)


@contextlib.contextmanager
def _ending_with_the_others():
    """Ends this process with one line if another one of the same training is gone."""
    if num_processes() == 1:
        yield
        return
    line = (
        f"error: process {_processes()[0]} of {num_processes()} has ended, for it or another one was killed or is out "
        "of reach. Give all of them the same command again: it goes on from the last saved state."
    )
    # A shell has the last word: if the first process is gone, JAX may abort before Python meets an exception.
    shell = subprocess.Popen(["sh", "-c", 'read ended || echo "$0" >&2', line], stdin=subprocess.PIPE)
    try:
        yield
    except Exception as error:
        if any(sign in str(error) for sign in SIGNS_OF_LOSS):
            sys.stdout.flush()
            os._exit(1)  # at once: JAX would first wait for the lost one to say goodbye
        raise
    finally:
        shell.communicate(b"ended\n")


def _strategy(options):
    """The `tf.distribute.Strategy` of the options."""
    import tensorflow as tf

    if options.distribution == "tpu":
        return _tpu_strategy(options.tpu)
    if options.distribution == "multi_worker":
        cluster = json.loads(os.environ.get("TF_CONFIG", "{}")).get("cluster", {})
        if not cluster.get("worker"):
            raise ValueError(
                "--distribution multi_worker needs the environment variable TF_CONFIG, on every machine: "
                '\'{"cluster": {"worker": ["host1:2222", "host2:2222"]}, "task": {"type": "worker", "index": 0}}\'.'
            )
        mended_keras.make_multi_worker_fit_work()
        return tf.distribute.MultiWorkerMirroredStrategy()
    gpus = tf.config.list_logical_devices("GPU") if tf.config.list_physical_devices("GPU") else []
    if gpus:
        return tf.distribute.MirroredStrategy([device.name for device in _first(gpus, options.devices)])
    if options.devices is None:
        raise ValueError(
            "--distribution mirrored found no GPU: --devices 2 parts the CPU, to try it out; --distribution single "
            "trains on the whole CPU."
        )
    cpu = tf.config.list_physical_devices("CPU")[0]
    try:
        parts = [tf.config.LogicalDeviceConfiguration()] * options.devices
        if tf.config.get_logical_device_configuration(cpu) != parts:
            tf.config.set_logical_device_configuration(cpu, parts)
    except RuntimeError as error:
        raise ValueError(
            f"The CPU can be parted into {options.devices} only before TensorFlow computes: {error}."
        ) from None
    return tf.distribute.MirroredStrategy([f"CPU:{index}" for index in range(options.devices)])


def _tpu_strategy(name):
    import tensorflow as tf

    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu=name)
        tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
    except (ValueError, RuntimeError, tf.errors.OpError) as error:
        raise ValueError(
            f"No TPU {name!r} answers TensorFlow ({str(error).splitlines()[0][:200]}). On a TPU VM it is 'local', in "
            "Colab too; KERAS_BACKEND=jax with --distribution data_parallel is the way we recommend."
        ) from None
    return tf.distribute.TPUStrategy(resolver)


def _mesh_distribution(options):
    """The `keras.distribution` of the options."""
    import jax

    _join_processes()
    if options.devices is not None and _platforms() <= {"cpu"}:
        try:
            jax.config.update("jax_num_cpu_devices", options.devices)
            # A sum over devices holds a thread of each until all are there. Two steps at once, or threads for the cores
            # alone, and some wait for ever. (NPROC is where XLA reads how many threads to make.)
            jax.config.update("jax_cpu_enable_async_dispatch", False)
            os.environ["NPROC"] = str(max(os.cpu_count(), 4 * options.devices))
        except RuntimeError as error:
            raise ValueError(f"The CPU can be parted only before JAX computes: {error}.") from None
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


# Which axis of a weight lies over the devices that share a model, as Shoeybi et al. 2019 ("Megatron-LM", section 3):
# query, key, value and the first feed-forward kernel by columns, the kernels that follow them by rows, so that a block
# needs two sums over its devices; the vocabulary by words. Other weights are on all devices.
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
    """The mesh axis over which each axis of a weight lies, None for one that is whole on all devices.

    So is that of a weight that cannot be cut evenly: 30,522 words are not, by 4; a vocabulary of a multiple of 128 is.
    """
    axes = next((axes for pattern, axes in LAYOUT.items() if re.fullmatch(pattern, path)), (None,) * len(shape))
    is_even = all(axis is None or size % model_devices == 0 for axis, size in zip(axes, shape, strict=True))
    return axes if is_even else (None,) * len(shape)


class ModelParallel(keras.distribution.ModelParallel):
    """`keras.distribution.ModelParallel` by LAYOUT over a mesh with the axes "batch" and "model"."""

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


def _join_processes():
    """Joins the other processes of a JAX program, if the environment names them or this is a host of a TPU slice.

    As `keras.distribution.initialize`, which knows no heartbeat.
    """
    import jax

    names = ("KERAS_DISTRIBUTION_JOB_ADDRESSES", "KERAS_DISTRIBUTION_NUM_PROCESSES", "KERAS_DISTRIBUTION_PROCESS_ID")
    found = [name for name in names if name in os.environ]
    if jax.distributed.is_initialized():
        return
    if found:
        if len(found) < len(names):
            raise ValueError(f"Of {', '.join(names)} only {', '.join(found)} is set: all three are needed.")
        addresses, number, index = (os.environ[name] for name in names)
        jax.distributed.initialize(
            addresses.split(",")[0], int(number), int(index), heartbeat_timeout_seconds=HEARTBEAT_SECONDS
        )
    elif len(os.environ.get("TPU_WORKER_HOSTNAMES", "").split(",")) > 1:
        jax.distributed.initialize(heartbeat_timeout_seconds=HEARTBEAT_SECONDS)


def num_processes():
    """Processes that train together, 1 in all but multi_worker and JAX programs of several."""
    return _processes()[1]


def is_chief():
    """Whether this process is the one that prints and writes."""
    return _processes()[0] == 0


def _processes():
    """(number of this process, how many there are)."""
    if keras.distribution.distribution() is not None:
        import jax

        return jax.process_index(), jax.process_count()
    strategy = _active_strategy()
    if strategy is not None and strategy.cluster_resolver is not None and "TF_CONFIG" in os.environ:
        task = json.loads(os.environ["TF_CONFIG"])
        return task["task"]["index"], len(task["cluster"]["worker"])
    return 0, 1


class EndSignal:
    """Whether this process was asked to end, by SIGTERM: preemptible machines send it some seconds before they go.

    Of several JAX processes, whether any was: all are told after the same step, and can save together. TensorFlow's
    know of their own only; where one ends, the others lose it.
    """

    def __init__(self):
        self.is_asked, self.executions, self.earlier_handler = False, 0, None

    def listen(self):
        """From now on; JAX processes have a handler for the signal already."""
        if not self._is_of_jax_processes():
            self.earlier_handler = signal.signal(signal.SIGTERM, self._note)

    def after_execution(self):
        """Whether to end now; to be called after each execution of a training step, by all processes alike."""
        self.executions += 1
        if self._is_of_jax_processes():
            from jax.experimental import multihost_utils

            return multihost_utils.reached_preemption_sync_point(self.executions)
        return self.is_asked

    def stop_listening(self):
        """Puts back the handler that was there before."""
        if not self._is_of_jax_processes():
            signal.signal(signal.SIGTERM, self.earlier_handler)

    def _note(self, number, frame):
        self.is_asked = True

    @staticmethod
    def _is_of_jax_processes():
        return keras.backend.backend() == "jax" and num_processes() > 1


def num_replicas():
    """Parts into which a batch is cut."""
    strategy = _active_strategy()
    if strategy is not None:
        return strategy.num_replicas_in_sync
    distribution = keras.distribution.distribution()
    return 1 if distribution is None else distribution.num_model_replicas


def num_processors():
    """Devices that compute at once, of all processes; the parts of a CPU are one."""
    distribution = keras.distribution.distribution()
    if distribution is not None:
        devices = distribution.device_mesh.devices.ravel()
        return num_processes() if devices[0].platform == "cpu" else len(devices)
    strategy = _active_strategy()
    if strategy is None:
        return 1
    on_cpu = all(":CPU:" in device.upper() for device in strategy.extended.worker_devices)
    return num_processes() if on_cpu else strategy.num_replicas_in_sync


def shared(dataset):
    """A `tf.data.Dataset` of whole global batches, of which the replicas of a strategy take their rows.

    By rows, not by files: the batches stay those of a single process. In JAX a process is to be given its
    `part_of_batch` only.
    """
    if _active_strategy() is None:
        return dataset
    import tensorflow as tf

    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    return dataset.with_options(options)


def part_of_batch():
    """(number, of how many): the part of a global batch that this process has to read; (0, 1) for the whole.

    TensorFlow's strategies take the parts themselves, see `shared`.
    """
    distribution = keras.distribution.distribution()
    if distribution is None:
        return 0, 1
    if distribution.num_model_replicas >= num_processes():
        return _processes()
    # Processes that hold parts of one copy of the model are given the same rows.
    return distribution.data_shard_id, distribution.num_model_replicas


def can_compile():
    """Whether `jit_compile` can be: TensorFlow compiles nothing that sums over replicas, but on a TPU, where it always
    does."""
    return _active_strategy() is None or num_replicas() == 1


def check_batch_size(batch_size):
    """Raises ValueError if the replicas cannot share batches of so many rows evenly."""
    if batch_size % num_replicas():
        raise ValueError(f"batch_size {batch_size} cannot be shared evenly by {num_replicas()} devices.")


def outputs_of_batch(model, inputs):
    """What `model.predict_on_batch` gives, as NumPy arrays, but each replica computes its part of the rows alone.

    All processes are to call it with the same whole batch, and get the outputs of all its rows.

    Args:
        model: a keras.Model.
        inputs: nested arrays, (batch, ...); a batch that cannot be shared evenly is filled up with its first rows.
    """
    if not is_shared():
        return keras.tree.map_structure(keras.ops.convert_to_numpy, model.predict_on_batch(inputs))
    replicas, rows = num_replicas(), len(keras.tree.flatten(inputs)[0])
    rounded = -(-rows // replicas) * replicas
    filled = keras.tree.map_structure(lambda array: np.resize(array, (rounded, *array.shape[1:])), inputs)
    compute = _outputs_of_replicas if _active_strategy() is not None else _outputs_of_mesh
    return keras.tree.map_structure(lambda array: np.asarray(array)[:rows], compute(model, filled))


def _outputs_of_replicas(model, inputs):
    """Of a strategy: each replica is given its part, and Keras joins their outputs."""
    strategy, replicas, processes = _active_strategy(), num_replicas(), num_processes()
    devices = replicas // processes

    def part(context):
        # Keras puts the first replicas of all processes before the second ones.
        process, device = divmod(context.replica_id_in_sync_group, devices)
        place = device * processes + process
        return keras.tree.map_structure(lambda array: keras.ops.array(np.split(array, replicas)[place]), inputs)

    return model.predict_on_batch(strategy.experimental_distribute_values_from_function(part))


def _outputs_of_mesh(model, inputs):
    """Of a mesh: the compiler shares the rows, and gives the outputs to all devices."""
    import jax

    mesh = keras.distribution.distribution()

    def spread(array):
        sharding = mesh.get_data_layout(array.shape).backend_layout
        return jax.make_array_from_callback(array.shape, sharding, lambda index: array[index])

    weights = [[weight.value for weight in kind] for kind in (model.trainable_variables, model.non_trainable_variables)]
    return _compiled_for_mesh(model)(*weights, keras.tree.map_structure(spread, inputs))


@functools.lru_cache(maxsize=1)  # of the model that was asked last: it is asked again after each epoch
def _compiled_for_mesh(model):
    import jax

    def outputs(trainable, others, inputs):
        return model.stateless_call(trainable, others, inputs, training=False)[0]

    mesh = keras.distribution.distribution().device_mesh.backend_mesh
    return jax.jit(outputs, out_shardings=jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec()))


def is_shared():
    """Whether several devices or processes share a batch."""
    return num_replicas() > 1 or num_processes() > 1


def _active_strategy():
    if keras.backend.backend() != "tensorflow":
        return None
    import tensorflow as tf

    return tf.distribute.get_strategy() if tf.distribute.has_strategy() else None


def _replica_context():
    """TensorFlow's, within a replica of a strategy; else None."""
    if _active_strategy() is None:
        return None
    import tensorflow as tf

    return tf.distribute.get_replica_context()


def sum_over_replicas(values):
    """An array, or a list of them, summed over the replicas of a strategy.

    Elsewhere, on one device and in JAX's meshes, what a program sees is the whole already.
    """
    context = _replica_context()
    return values if context is None else context.all_reduce("sum", values)


def replica_number():
    """The number of the replica that computes, from 0, as a number or scalar tensor; 0 where there are none."""
    context = _replica_context()
    return 0 if context is None else context.replica_id_in_sync_group


def to_numpy(variable):
    """A variable's whole value on this process, also where other processes hold parts of it: all must call it."""
    if keras.backend.backend() == "jax":
        value = variable.value
        if not (value.is_fully_addressable or value.is_fully_replicated):
            from jax.experimental import multihost_utils

            return multihost_utils.process_allgather(value, tiled=True)
    return keras.ops.convert_to_numpy(variable)
