"""Where JAX computes: the kind of device, and the mesh over which batches and heads are divided."""

import contextlib
import typing

import keras


class Placement(typing.NamedTuple):
    """What computes a step.

    Attributes:
        platform: "cpu", "gpu" or "tpu".
        mesh: the `jax.sharding.Mesh` of the devices; None for one device.
        batch_axis: the axis of the mesh along which the rows of a batch are divided.
        heads_axis: the axis along which the heads are divided; None if each device computes all heads of its rows.
        is_here: False if a program is compiled for devices that this machine does not have.
        interpret: whether a TPU's kernels are computed by an interpreter, on any device; for tests.
    """

    platform: str
    mesh: typing.Any = None
    batch_axis: str | None = None
    heads_axis: str | None = None
    is_here: bool = True
    interpret: bool = False

    def parts(self, axis):
        """The number of devices along an axis."""
        return self.mesh.shape[axis] if self.mesh is not None and axis else 1


_elsewhere = None


@contextlib.contextmanager
def placed(placement):
    """Within this context, programs are made for this Placement, such as that of a chip which is not here."""
    global _elsewhere
    before, _elsewhere = _elsewhere, placement
    try:
        yield
    finally:
        _elsewhere = before


def placement():
    """The Placement of what is being computed or compiled: that of `placed`, of Keras' distribution, or one device."""
    if _elsewhere is not None:
        return _elsewhere
    distribution = keras.distribution.distribution()
    if distribution is not None:
        return of_distribution(distribution)
    import jax

    device = jax.config.jax_default_device or jax.devices()[0]  # a device, a platform's name, or None
    return Placement(device if isinstance(device, str) else device.platform)


def of_distribution(distribution):
    """The Placement of a `keras.distribution`; models are divided along an axis of the mesh called "model", as
    `distribution.meshes` does."""
    mesh = distribution.device_mesh.backend_mesh
    batch_axis = distribution.batch_dim_name
    heads_axis = "model" if "model" in mesh.axis_names and batch_axis != "model" else None
    return Placement(mesh.devices.flat[0].platform, mesh, batch_axis, heads_axis)
