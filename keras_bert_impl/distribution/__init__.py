"""Chooses the devices that compute, so that models and scripts are the same on one CPU and on a TPU slice.

TensorFlow distributes by strategies, which run a model once on each device, each on its part of a batch ("replicas").
JAX distributes by meshes: one program sees the whole batch, and the compiler divides it. Every sum over a batch
therefore goes through `sum_over_replicas`. Each backend is imported only in the functions that use it.
"""

import sys

from keras_bert_impl import process_group
from keras_bert_impl.distribution.devices import Distribution, Kind, distributed
from keras_bert_impl.distribution.divided_state import axes_of_state, divided_as_state, layout_of_state
from keras_bert_impl.distribution.interrupted_steps import kept_step, weights_given_back
from keras_bert_impl.distribution.processes import (
    SHARED_TOKEN,
    EndSignal,
    SharedClock,
    check_shared,
    failing_together,
    from_chief,
    gathered_from_processes,
    is_chief,
    num_processes,
)
from keras_bert_impl.distribution.replicas import (
    adds_up_replicas,
    assign_whole,
    batch_of_all,
    can_compile,
    check_batch_size,
    check_can_compile,
    compiles_each_shape,
    compiles_steps,
    equal_share,
    gathered_from_replicas,
    in_scope_of_model,
    is_shared,
    needs_equal_shapes,
    num_processors,
    num_replicas,
    outputs_of_batch,
    part_of_batch,
    replica_number,
    shared,
    sum_over_replicas,
    to_numpy,
)
from keras_bert_impl.distribution.split_weights import BY_COLUMNS, BY_ROWS, BY_WORDS, axes_of_weight, split

__all__ = [
    "BY_COLUMNS", "BY_ROWS", "BY_WORDS", "SHARED_TOKEN", "Distribution", "EndSignal", "Kind", "SharedClock",
    "adds_up_replicas", "assign_whole", "axes_of_state", "axes_of_weight", "batch_of_all", "can_compile",
    "check_batch_size", "check_can_compile", "check_shared", "compiles_each_shape",
    "compiles_steps", "distributed", "divided_as_state",
    "equal_share", "failing_together", "from_chief", "gathered_from_processes", "gathered_from_replicas",
    "in_scope_of_model", "is_chief", "is_shared", "kept_step", "layout_of_state", "needs_equal_shapes", "num_processes",
    "num_processors", "num_replicas", "outputs_of_batch", "part_of_batch", "replica_number", "shared", "split",
    "sum_over_replicas", "to_numpy", "weights_given_back",
]  # fmt: skip

process_group.group = sys.modules[__name__]
