"""A batch divided over devices: its parts, sums over them, outputs of a whole batch."""

import contextlib
import functools
import zlib

import keras
import numpy as np

from keras_bert_impl.distribution import keras_patches
from keras_bert_impl.distribution.processes import (
    active_strategy,
    gathered_from_processes,
    num_processes,
    process_number_and_count,
)


def in_scope_of_model(method):
    """Decorator for a method of a Keras model: it runs in the scope of the `tf.distribute` strategy in which the model
    was made, so that `fit` may be called outside it, as Keras' own may. Batches need no even number of rows."""

    @functools.wraps(method)
    def call(model, *arguments, **options):
        strategy = getattr(model, "distribute_strategy", None)  # Keras' TensorFlow trainer has it
        with contextlib.nullcontext() if strategy is None else strategy.scope():
            if is_shared():
                keras_patches.take_any_batch()
            return method(model, *arguments, **options)

    return call


def num_replicas():
    """Returns the number of parts that a batch is divided into, an int: 1 outside `distributed`."""
    strategy = active_strategy()
    if strategy is not None:
        return strategy.num_replicas_in_sync
    distribution = keras.distribution.distribution()
    return 1 if distribution is None else distribution.num_model_replicas


def num_processors():
    """The number of devices that compute at once, in all processes; the parts of a CPU count as one."""
    distribution = keras.distribution.distribution()
    if distribution is not None:
        devices = distribution.device_mesh.devices.ravel()
        return num_processes() if devices[0].platform == "cpu" else len(devices)
    strategy = active_strategy()
    if strategy is None:
        return 1
    on_cpu = all(":CPU:" in device.upper() for device in strategy.extended.worker_devices)
    return num_processes() if on_cpu else strategy.num_replicas_in_sync


def is_shared():
    """Whether several devices or processes share a batch."""
    return num_replicas() > 1 or num_processes() > 1


def needs_equal_shapes():
    """Whether all batches of a stream must have one shape: where each process reads a stream of its own, since they
    would not agree on a length, and on a TPU under TensorFlow, which does not compile for varying lengths."""
    return num_processes() > 1 or type(active_strategy()).__name__.startswith("TPUStrategy")


def shared(dataset):
    """Sets a `tf.data.Dataset` of global batches to be divided by rows among the replicas of a strategy.

    By rows, not by files, so that the batches stay those of a single process. In JAX, the dataset of a process must
    hold only its `part_of_batch`.
    """
    if active_strategy() is None:
        return dataset
    import tensorflow as tf

    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    return dataset.with_options(options)


def part_of_batch():
    """(index, number of parts): the part of a batch that this process has to read of a stream; (0, 1) for the whole.

    TensorFlow's strategies take the parts themselves, see `shared`.
    """
    return (0, 1) if keras.distribution.distribution() is None else process_number_and_count()


class WholeBatch(np.ndarray):
    """An array with all rows of a batch, on every one of several JAX processes."""


def batch_of_all(batch):
    """A batch, nested arrays (rows, ...), that every process holds whole; devices of a JAX mesh take their parts."""
    if keras.distribution.distribution() is None:
        return batch
    return keras.tree.map_structure(lambda array: None if array is None else np.asarray(array).view(WholeBatch), batch)


def check_same_batch(batch):
    """Raises ValueError in all processes if they hold other rows of a batch that is whole."""
    arrays = [array for array in keras.tree.flatten(batch) if isinstance(array, WholeBatch)]
    if num_processes() == 1 or not arrays:
        return
    found = zlib.crc32(b"".join(array.tobytes() for array in arrays))
    if len(set(gathered_from_processes(found >> 1))) > 1:
        raise ValueError(
            "The processes hold different lists or arrays, or the same in another order. Call "
            "keras.utils.set_random_seed(0) in every process and give each one all examples: its devices take their "
            "part. Only a dataset may hold another part of the examples in each process."
        )


def spread(array, is_even=True):
    """An array (rows, ...) that all processes hold, as a JAX array: divided by rows over the devices of the mesh, or
    else whole on each of them."""
    import jax

    mesh, array = keras.distribution.distribution(), np.asarray(array)
    whole = jax.sharding.NamedSharding(mesh.device_mesh.backend_mesh, jax.sharding.PartitionSpec())
    layout = mesh.get_data_layout(array.shape).backend_layout if is_even else whole
    return jax.make_array_from_callback(array.shape, layout, lambda index: array[index])


def can_compile():
    """Whether `jit_compile` is possible: not with several replicas of a TensorFlow strategy, also on GPUs.

    TensorFlow itself can compile the function that `strategy.run` calls on each GPU (`mirrored_run.py`). Keras 3.15
    compiles `strategy.run` as a whole instead, and XLA refuses variables of another device than the first; a compiled
    `train_step` within it fails at the optimizer's counter, whose update waits for the other replicas. On a TPU
    TensorFlow compiles in any case.
    """
    return active_strategy() is None or num_replicas() == 1


def check_can_compile():
    """Raises ValueError if `jit_compile` was asked for and is not possible."""
    if not can_compile():
        raise ValueError(
            f"--jit_compile on: Keras {keras.__version__} cannot compile steps for {num_replicas()} replicas of a "
            "TensorFlow strategy. Leave the option out, or train with KERAS_BACKEND=jax and --distribution "
            "data_parallel, which always compiles."
        )


def compiles_each_shape(model):
    """Whether each new shape of a batch is compiled; on torch, one program is for all lengths but the first."""
    return bool(model.jit_compile) and keras.backend.backend() != "torch"


def compiles_steps(model):
    """Whether Keras traces or compiles the steps of a model: always but on torch, where `jit_compile` says it."""
    return not model.run_eagerly and (bool(model.jit_compile) or keras.backend.backend() != "torch")


def check_batch_size(batch_size):
    """Raises ValueError if the replicas cannot share batches of so many rows evenly."""
    if batch_size % num_replicas():
        raise ValueError(f"batch_size {batch_size} cannot be shared evenly by {num_replicas()} devices.")


def sum_over_replicas(values):
    """An array, or a list of them, summed over the replicas of a strategy.

    On one device and in JAX's meshes, where a program sees the whole batch, they are returned as they are.
    """
    context = _replica_context()
    return values if context is None else context.all_reduce("sum", values)


def equal_share(share):
    """A replica's share of a sum over the batch, in value as large as that of every other replica.

    Keras averages what the replicas return, weighted by their rows, which is the loss of the batch only if all return
    the same. The gradient stays that of the replica's own rows.
    """
    if _replica_context() is None:
        return share
    return share + keras.ops.stop_gradient(sum_over_replicas(share) / num_replicas() - share)


def adds_up_replicas():
    """Whether `sum_over_replicas` adds anything up: the replicas are those of a `tf.distribute` strategy."""
    return active_strategy() is not None and num_replicas() > 1


def gathered_from_replicas(array):
    """The rows of an array, (batch, ...), of all replicas of a strategy, one after the other; gradients flow back.

    On one device and in JAX's meshes, where a program sees the whole batch, it is returned as it is.
    """
    context = _replica_context()
    return array if context is None else context.all_gather(array, axis=0)


def replica_number():
    """The number of the replica that computes, from 0, as a number or scalar tensor; 0 where there are none."""
    context = _replica_context()
    return 0 if context is None else context.replica_id_in_sync_group


def _replica_context():
    """TensorFlow's replica context within a replica of a strategy; otherwise None."""
    if active_strategy() is None:
        return None
    import tensorflow as tf

    return tf.distribute.get_replica_context()


def outputs_of_batch(model, inputs):
    """The outputs of `model.predict_on_batch` as NumPy arrays, where each replica computes only its part of the rows.

    All processes must call it with the same whole batch; each gets the outputs of all rows.

    Args:
        model: a keras.Model.
        inputs: nested arrays, (batch, ...); a batch that cannot be shared evenly is filled up with its first rows.
    """
    if not is_shared():
        return keras.tree.map_structure(keras.ops.convert_to_numpy, model.predict_on_batch(inputs))
    replicas, rows = num_replicas(), len(keras.tree.flatten(inputs)[0])
    rounded = -(-rows // replicas) * replicas
    filled = keras.tree.map_structure(lambda array: np.resize(array, (rounded, *array.shape[1:])), inputs)
    compute = _outputs_of_replicas if active_strategy() is not None else _outputs_of_mesh
    return keras.tree.map_structure(lambda array: np.asarray(array)[:rows], compute(model, filled))


def _outputs_of_replicas(model, inputs):
    """For a strategy: each replica gets its part, and Keras joins their outputs."""
    strategy, replicas, processes = active_strategy(), num_replicas(), num_processes()
    devices = replicas // processes

    def part(context):
        # Keras puts the first replicas of all processes before the second ones.
        process, device = divmod(context.replica_id_in_sync_group, devices)
        place = device * processes + process
        return keras.tree.map_structure(lambda array: keras.ops.array(np.split(array, replicas)[place]), inputs)

    return model.predict_on_batch(strategy.experimental_distribute_values_from_function(part))


def _outputs_of_mesh(model, inputs):
    """For a mesh: the compiler divides the rows, and all devices get all outputs."""
    weights = [[weight.value for weight in kind] for kind in (model.trainable_variables, model.non_trainable_variables)]
    return _compiled_for_mesh(model)(*weights, keras.tree.map_structure(spread, inputs))


@functools.lru_cache(maxsize=1)  # keeps the last model, which is evaluated again after each epoch
def _compiled_for_mesh(model):
    import jax

    def outputs(trainable, others, inputs):
        return model.stateless_call(trainable, others, inputs, training=False)[0]

    mesh = keras.distribution.distribution().device_mesh.backend_mesh
    return jax.jit(outputs, out_shardings=jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec()))


def assign_whole(variable, value):
    """Gives a variable a whole value: a NumPy array that all processes have, or a JAX array in the variable's layout.

    Each device receives only its part. `variable.assign` of a NumPy array would first compare it with those of all
    other processes, and hold it whole on every device.
    """
    if keras.distribution.distribution() is not None and isinstance(value, np.ndarray):
        import jax

        present = variable.value
        whole = value.astype(present.dtype)
        value = jax.make_array_from_callback(whole.shape, present.sharding, lambda index: whole[index])
    variable.assign(value)


def to_numpy(variable):
    """A variable's whole value, even if other processes hold parts of it: all processes must call this function."""
    if keras.backend.backend() == "jax":
        value = variable.value
        if not (value.is_fully_addressable or value.is_fully_replicated):
            from jax.experimental import multihost_utils

            return multihost_utils.process_allgather(value, tiled=True)
    return keras.ops.convert_to_numpy(variable)
