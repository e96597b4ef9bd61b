"""The state of the optimizer divided over the devices that share a batch: ZeRO, stage 1 (Rajbhandari et al. 2020).

With data parallelism every device keeps the whole model and, of AdamW, two moments of the same size each. Divided,
each keeps a part of the moments and computes the update of that part of the weights, and all devices then gather the
new weights. Nothing else changes; the compiler divides the work by the layouts alone.
"""

import keras


class DataParallelWithDividedState(keras.distribution.DataParallel):
    """`DataParallel` whose devices also divide what the optimizer keeps for each weight."""


def axes_of_state(shape, replicas):
    """The mesh axis over which each axis of the state of a weight is divided; None for one that is whole everywhere.

    The first axis that can be divided evenly is. Biases and norms stay whole: they are small, and each would cost
    messages of its own.
    """
    axes = [None] * len(shape)
    if len(shape) > 1:
        place = next((place for place, size in enumerate(shape) if size % replicas == 0), None)
        if place is not None:
            axes[place] = "batch"
    return tuple(axes)


def layout_of_state(shape):
    """The `TensorLayout` of a variable that the optimizer keeps for a weight; None where the state is not divided."""
    distribution = keras.distribution.distribution()
    if not isinstance(distribution, DataParallelWithDividedState):
        return None
    return keras.distribution.TensorLayout(
        axes_of_state(shape, distribution.num_model_replicas), distribution.device_mesh
    )


def divided_as_state(gradients):
    """Gradients, summed over the devices and then each divided as the state of its weight is."""
    if keras.distribution.distribution() is None:
        return gradients
    layouts = [layout_of_state(gradient.shape) for gradient in gradients]
    return [
        gradient if layout is None else keras.distribution.distribute_tensor(whole(gradient), layout)
        for gradient, layout in zip(gradients, layouts, strict=True)
    ]


def whole(array):
    """An array, whole on every device.

    Of a gradient: without this, the layout of its parts reaches back into the product that makes it. The TPU compiler
    then divides the product itself, sends activations around in 495 messages, and moves 1.9 times the bytes of an
    undivided step.
    """
    distribution = keras.distribution.distribution()
    layout = keras.distribution.TensorLayout((None,) * len(array.shape), distribution.device_mesh)
    return keras.distribution.distribute_tensor(array, layout)
