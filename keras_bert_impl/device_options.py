"""The options that select the devices."""

import dataclasses
import typing

Kind = typing.Literal["single", "mirrored", "multi_worker", "tpu", "data_parallel", "model_parallel"]


@dataclasses.dataclass(kw_only=True)
class Distribution:
    """The devices to train on: the options of `distributed` and of the commands.

    Args:
        distribution (str, optional): single; on TensorFlow mirrored (all GPUs of this machine), multi_worker (those of
            all machines in TF_CONFIG) or tpu; on JAX data_parallel (all devices) or model_parallel (each weight matrix
            split over some of them). On JAX several processes train together on the hosts of a TPU slice, under SLURM's
            srun or Open MPI's mpirun, or if KERAS_DISTRIBUTION_JOB_ADDRESSES, _NUM_PROCESSES and _PROCESS_ID are set.
            batch_size counts the examples of all devices together.
        devices (int, optional): number of devices to use; without an accelerator, the number of parts of the CPU, for
            trials. By default all.
        model_devices (int, optional): for model_parallel, the number of devices that share one copy of the model.
        shard_optimizer (bool, optional): for data_parallel, whether the devices share the optimizer's state (ZeRO,
            stage 1) instead of each keeping all of it; AdamW's moments are twice the size of the weights.
        tpu (str, optional): for tpu, the name of the TPU; default is "local", the TPU of this machine.
    """

    TITLE: typing.ClassVar = "devices"
    OUTPUTS: typing.ClassVar = ("gs://",)  # where a run on many machines may write

    distribution: Kind = "single"
    devices: int | None = None
    model_devices: int = 1
    shard_optimizer: bool = False
    tpu: str = "local"
