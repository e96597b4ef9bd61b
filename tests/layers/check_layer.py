"""Checks the properties that every layer must have, in one call."""

import keras
import numpy as np
from keras import ops

from keras_bert_impl.layers.configured_layer import arguments_of


def check_layer(make, *inputs):
    """Asserts what holds for every layer of the library.

    It can be rebuilt from its configuration; a model with it saves and reloads with equal outputs; it accepts batch
    sizes and lengths that are unknown when it is built; under mixed precision it returns bfloat16 and keeps its weights
    in float32; every weight gets a gradient.

    Args:
        make: function that makes the layer; takes `dtype`.
        inputs: arrays for its positional call arguments.
    """
    layer = make(dtype="float32")
    symbols = [
        keras.Input((None, *array.shape[2:]) if array.ndim > 1 else (), dtype=str(array.dtype)) for array in inputs
    ]
    model = keras.Model(symbols, layer(*symbols))
    expected = ops.convert_to_numpy(layer(*inputs))
    np.testing.assert_allclose(model.predict(list(inputs), verbose=0), expected, atol=1e-6)

    assert arguments_of(type(layer)) <= layer.get_config().keys()
    copy = type(layer).from_config(layer.get_config())
    copy(*inputs)
    assert [weight.shape for weight in copy.weights] == [weight.shape for weight in layer.weights]
    copy.set_weights(layer.get_weights())
    np.testing.assert_allclose(ops.convert_to_numpy(copy(*inputs)), expected, atol=1e-6)

    mixed = make(dtype="mixed_bfloat16")
    assert keras.backend.standardize_dtype(mixed(*inputs).dtype) == "bfloat16"
    assert all(weight.dtype == "float32" for weight in mixed.weights)
    check_gradients(layer, inputs)


def check_gradients(layer, inputs):
    """Asserts that a step of plain gradient descent changes every trainable weight of the layer."""
    symbols = [keras.Input(array.shape[1:], dtype=str(array.dtype)) for array in inputs]
    outputs = layer(*symbols)
    # The target below is random: the mean of a normalised output would have no gradient.
    outputs = keras.layers.Rescaling(1.0, dtype="float32")(outputs)
    model = keras.Model(symbols, outputs)
    model.compile(optimizer=keras.optimizers.SGD(1.0), loss="mse")
    before = [weight.copy() for weight in layer.get_weights()]
    target = np.random.default_rng(0).normal(size=(inputs[0].shape[0], *outputs.shape[1:])).astype("float32")
    model.train_on_batch(list(inputs), target)
    for weight, old in zip(layer.weights, before, strict=True):
        assert np.abs(ops.convert_to_numpy(weight) - old).max() > 0, f"{weight.path} got no gradient"
