"""A linear layer of activated values, the second half of a feed-forward network."""

import keras

from keras_bert_impl.kernels.attention.placement import placement


def project_activated(activate, project, inputs):
    """`project(activate(inputs))`, by the current backend's kernel."""
    return KERNELS.get(keras.backend.backend(), _by_ops)(activate, project, inputs)


def _by_ops(activate, project, inputs):
    return project(activate(inputs))


def _in_jax(activate, project, inputs):
    """On a TPU, the gradient computes the activated values again from `inputs`, which the gradient of the activation
    needs anyway: kept beside them, they are the largest array of a layer, batch x length x 4 width, a second time. A
    CPU would spend more time on computing them than on reading them.
    """
    if placement().platform != "tpu":
        return _by_ops(activate, project, inputs)
    return keras.remat(lambda inputs: project(activate(inputs)))(inputs)


KERNELS = {"jax": _in_jax}
