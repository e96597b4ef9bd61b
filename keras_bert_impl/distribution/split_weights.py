"""How a layer says over which axis its weights are split where several devices share a model.

As in Shoeybi et al. 2019 ("Megatron-LM", section 3): the kernels of query, key, value and of the first half of a
feed-forward network by columns, those that follow them by rows, so that a block needs two sums over its devices; the
vocabulary by words. (In a gated feed-forward network, whose first kernel has values and gates side by side, the devices
also exchange these.) Weights of which no layer says anything are whole on every device.
"""

import contextlib
import contextvars

BY_COLUMNS = {"kernel": (None, "model"), "bias": ("model",)}
BY_ROWS = {"kernel": ("model", None)}
BY_WORDS = {"embeddings": ("model", None), "output_bias": ("model",)}

_declared = contextvars.ContextVar("declared", default=None)


@contextlib.contextmanager
def split(layer, axes):
    """Within this context, the weights that `layer` adds are split.

    Args:
        layer: which is built within the context.
        axes: for the name of a weight, the axis of the mesh for each of its own, None for one that is not split.
    """
    token = _declared.set(axes)
    try:
        yield
    finally:
        _declared.reset(token)
    for weight in layer.weights:
        if weight.name in axes:
            weight.split_axes = axes[weight.name]


def axes_of_weight(weight, model_devices):
    """The axis of the mesh over which each axis of a weight is split; None for an axis that is whole on all devices.

    A weight that cannot be split evenly is whole on all devices, too: 30,522 words cannot be split by 4, a multiple of
    128 can.

    Args:
        weight: a variable, built or being built.
        model_devices: the number of devices that share a model.
    """
    whole = (None,) * len(weight.shape)
    # A variable that is being built, which asks for its layout, has no attributes yet.
    axes = getattr(weight, "split_axes", None) or (_declared.get() or {}).get(weight.name, whole)
    devices = {None: 1, "model": model_devices}
    is_even = all(size % devices[axis] == 0 for axis, size in zip(axes, weight.shape, strict=True))
    return tuple(axis if devices[axis] > 1 else None for axis in axes) if is_even else whole
