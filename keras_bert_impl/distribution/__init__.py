"""Chooses the devices that compute, so that models and scripts are the same on one CPU and on a TPU slice.

TensorFlow distributes by strategies, which run a model once on each device, each on its part of a batch ("replicas").
JAX distributes by meshes: one program sees the whole batch, and the compiler divides it. Every sum over a batch
therefore goes through `sum_over_replicas`. Each backend is imported only in the functions that use it.
"""

from keras_bert_impl.distribution.devices import Distribution, Kind, axes_of_weight, distributed
from keras_bert_impl.distribution.processes import EndSignal, is_chief, num_processes
from keras_bert_impl.distribution.replicas import (
    can_compile,
    check_batch_size,
    compiles_steps,
    gathered_from_replicas,
    is_shared,
    num_processors,
    num_replicas,
    outputs_of_batch,
    part_of_batch,
    replica_number,
    shared,
    sum_over_replicas,
    to_numpy,
)

__all__ = [
    "Distribution", "EndSignal", "Kind", "axes_of_weight", "can_compile", "check_batch_size", "compiles_steps",
    "distributed", "gathered_from_replicas", "is_chief", "is_shared", "num_processes", "num_processors", "num_replicas",
    "outputs_of_batch", "part_of_batch", "replica_number", "shared", "sum_over_replicas", "to_numpy",
]  # fmt: skip
