"""Kernels compiled for TPUs that are not here."""

import importlib.util

import jax
import pytest

only_with_compiler = pytest.mark.skipif(importlib.util.find_spec("libtpu") is None, reason="libtpu is not installed")


def compiled_for(topology, shape, attend, others):
    """Value and gradient of attention, compiled.

    Args:
        topology: of which the first chip is taken.
        shape: of the outputs (batch, length, width), in bfloat16; queries, keys and values are fused.
        attend: function of a tuple of the fused array and of others.
        others: the shapes of these, of integers.
    """
    from jax.experimental import topologies
    from jax.sharding import SingleDeviceSharding

    device = topologies.get_topology_desc(platform="tpu", topology_name=topology).devices[0]

    def of_shape(*axes, dtype="int32"):
        return jax.ShapeDtypeStruct(axes, dtype, sharding=SingleDeviceSharding(device))

    def value_and_gradient(array, outer, *others):
        value, pull = jax.vjp(lambda array: attend((array,), *others), array)
        return value, pull(outer)

    *rows, width = shape
    arrays = (of_shape(*rows, count * width, dtype="bfloat16") for count in (3, 1))
    return jax.jit(value_and_gradient).lower(*arrays, *(of_shape(*axes) for axes in others)).compile()
