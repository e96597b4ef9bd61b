"""The private names of JAX that the library uses: if a version renames one, a test here names it."""

import importlib

from tiers import on

pytestmark = on("jax")  # the other backends do not need JAX
# The module and the names in it.
USED = (
    ("jax._src.clusters", "GceTpuCluster"),  # else hosts of a slice each train alone
    ("jax._src.clusters", "GkeTpuCluster"),
    ("jax._src.hardware_utils", "num_available_tpu_chips_and_device_id"),  # else a CPU is divided where there are TPUs
)


def test_jax_still_has_the_private_names():
    for module, name in USED:
        assert hasattr(importlib.import_module(module), name), (module, name)


def test_a_kind_of_cluster_tells_whether_it_is_there_and_how_many_processes_it_has():
    from jax._src import clusters

    for kind in (clusters.GceTpuCluster, clusters.GkeTpuCluster):
        assert not kind.is_env_present() and callable(kind.get_process_count)
