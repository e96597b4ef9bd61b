"""JAX's meshes: the devices of all processes in the order in which batches and weights are divided over them."""

import collections
import os

import keras

from keras_bert_impl.distribution.divided_state import DataParallelWithDividedState
from keras_bert_impl.distribution.launchers import check_all_joined, join_processes
from keras_bert_impl.distribution.split_weights import axes_of_weight


def mesh_distribution(options):
    """The `keras.distribution` of the options."""
    import jax

    join_processes()
    if options.devices is not None and platforms() <= {"cpu"}:
        jax.config.update("jax_num_cpu_devices", options.devices)
        # A sum over devices blocks a thread of each until all have arrived. With two steps at once, or only as many
        # threads as cores, some would wait for ever. (XLA reads the number of threads from NPROC.)
        jax.config.update("jax_cpu_enable_async_dispatch", False)
        os.environ["NPROC"] = str(max(os.cpu_count(), 4 * options.devices))
    check_all_joined()
    devices = by_slice_and_host(first_devices(jax.devices(), options.devices), jax.process_count())
    if options.distribution == "data_parallel":
        is_divided = getattr(options, "shard_optimizer", False)  # which fine-tuning, of small models, does not know
        kind = DataParallelWithDividedState if is_divided else keras.distribution.DataParallel
        return kind(devices=devices, auto_shard_dataset=False)  # `shared` does it
    check_model_devices(devices, options.model_devices)
    shape = (len(devices) // options.model_devices, options.model_devices)
    mesh = keras.distribution.DeviceMesh(shape, ("batch", "model"), devices)
    return ModelParallel(mesh)


def by_slice_and_host(devices, hosts):
    """The devices with those of a host together, and the hosts of a slice together.

    JAX orders the chips of a slice by their place in its torus, which mixes hosts. In this order a host holds a run of
    the batch's rows, which are the ones it reads, and only the outermost axis of a mesh crosses the network between
    slices: the order of `jax.experimental.mesh_utils.create_hybrid_device_mesh`, which for TPUs would also place a copy
    of the model along an axis of the torus, on several hosts.

    Args:
        devices: of JAX.
        hosts: the number of processes.

    Raises: ValueError if hosts have different numbers of these devices.
    """
    counts = collections.Counter(device.process_index for device in devices)
    if len({counts[host] for host in range(hosts)}) > 1:
        numbers = ", ".join(f"{counts[host]} of host {host}" for host in range(hosts))
        raise ValueError(
            f"A batch is divided evenly among hosts, but these {len(devices)} devices are {numbers}: give a --devices "
            "that is the same number for each host, or leave it out."
        )
    return sorted(devices, key=lambda device: (getattr(device, "slice_index", 0), device.process_index, device.id))


def check_model_devices(devices, model_devices):
    """Raises ValueError if the devices of each host cannot be grouped into copies of the model.

    A copy exchanges activations several times in each block: over the network between hosts this would take longer than
    computing them, and two hosts would have to read the same rows.
    """
    hosts = len({device.process_index for device in devices})
    of_host = len(devices) // hosts
    if model_devices > 1 and of_host % model_devices == 0:
        return
    possible = [str(number) for number in range(2, of_host + 1) if of_host % number == 0]
    remedy = f"give {' or '.join(possible)}" if possible else "choose --distribution data_parallel"
    raise ValueError(
        f"--model_devices {model_devices} must be at least 2 and divide the {of_host} devices of a host (there are "
        f"{len(devices)} on {hosts}), since a copy of the model must not extend over hosts: {remedy}."
    )


class ModelParallel(keras.distribution.ModelParallel):
    """Splits weights as their layers say (`split_weights`), over a mesh with the axes "batch" and "model"."""

    def __init__(self, mesh):
        layout = keras.distribution.LayoutMap(mesh)
        super().__init__(layout_map=layout, batch_dim_name="batch", auto_shard_dataset=False)  # `shared` does it

    def get_variable_layout(self, variable):
        axes = axes_of_weight(variable, self.device_mesh.shape[1])
        return keras.distribution.TensorLayout(axes, self.device_mesh)


def first_devices(devices, count):
    """The first `count` of the devices, None for all. Raises ValueError if there are fewer."""
    if count is not None and count > len(devices):
        raise ValueError(f"--devices {count}, but there are {len(devices)}: {', '.join(map(str, devices))}.")
    return devices[:count]


def platforms():
    """The platforms that JAX will use, without starting it."""
    import jax

    wanted = jax.config.jax_platforms
    if wanted:
        return set(wanted.split(","))
    from jax._src import hardware_utils  # what JAX itself asks before it starts

    has_tpu = hardware_utils.num_available_tpu_chips_and_device_id()[0] > 0
    has_gpu = os.path.exists("/dev/nvidia0") or os.path.exists("/dev/kfd")
    return {"tpu"} if has_tpu else {"gpu"} if has_gpu else {"cpu"}
