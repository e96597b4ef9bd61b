"""A linear layer of activated values, the second half of a feed-forward network."""

import keras

from keras_bert_impl.kernels.attention.placement import placement


def project_activated(activate, project, inputs):
    """`project(activate(inputs))`.

    On a TPU, JAX computes the activated values again for the gradient, from `inputs`, which the gradient of the
    activation needs anyway: kept beside them, they are the largest array of a layer, batch x length x 4 width, a second
    time. A CPU would spend more time on computing them than on reading them.
    """

    def projected(inputs):
        return project(activate(inputs))

    is_on_tpu = keras.backend.backend() == "jax" and placement().platform == "tpu"
    return keras.remat(projected)(inputs) if is_on_tpu else projected(inputs)
