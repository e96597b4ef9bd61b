"""The private names of JAX that the library uses: if a version renames one, a test here names it."""

import importlib

import pytest
from tiers import on

pytestmark = on("jax")  # the other backends do not need JAX
# The module, the name in it, and what goes wrong without it.
USED = (
    ("jax._src.clusters", "GceTpuCluster", "hosts of a slice of Compute Engine each train alone"),
    ("jax._src.clusters", "GkeTpuCluster", "hosts of a slice of GKE each train alone"),
    ("jax._src.hardware_utils", "num_available_tpu_chips_and_device_id", "a CPU is divided where there are TPUs"),
)


@pytest.mark.parametrize(("module", "name", "consequence"), USED, ids=[name for _, name, _ in USED])
def test_jax_still_has_the_private_name(module, name, consequence):
    import jax

    found = importlib.import_module(module)
    assert hasattr(found, name), f"JAX {jax.__version__} has no {module}.{name}, so that {consequence}."


def test_a_kind_of_cluster_tells_whether_it_is_there_and_how_many_processes_it_has():
    from jax._src import clusters

    for kind in (clusters.GceTpuCluster, clusters.GkeTpuCluster):
        assert not kind.is_env_present() and callable(kind.get_process_count)
