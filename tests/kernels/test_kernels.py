"""What each kernel of this backend computes, against the plain form in `keras.ops` or the formula in NumPy."""

import math

import keras
import numpy as np
import pytest
from keras import ops

from keras_bert_impl.kernels import adamw, dropout, gelu


def arrays(*shape, count=1, seed=0):
    return np.random.default_rng(seed).normal(size=(count, *shape)).astype("float32")


def by_kernel_and_plainly_adamw():
    """Weight and both moments after three updates with decay."""
    results = []
    for apply in (adamw.apply, adamw.by_ops):
        weight, first, second = (keras.Variable(array) for array in (*arrays(5, 7), *np.zeros((2, 5, 7), "float32")))
        for step, gradient in enumerate(arrays(5, 7, count=3, seed=1), start=1):
            update = adamw.Update(
                variable=weight,
                first=first,
                second=second,
                gradient=ops.convert_to_tensor(gradient),
                step=ops.convert_to_tensor(step),
                rate=ops.convert_to_tensor(0.1),
                keep=ops.convert_to_tensor(0.99),
                beta_1=0.9,
                beta_2=0.999,
                epsilon=1e-6,
            )
            apply(update, lambda variable, value: variable.assign(value))
        results.append(np.stack([ops.convert_to_numpy(variable) for variable in (weight, first, second)]))
    return results


def by_kernel_and_plainly_dropout():
    """Which values come out, and how often a unit is dropped; the random numbers are others."""
    inputs, rate = ops.ones((400, 500)), 0.1
    results = []
    for drop in (dropout.drop, dropout.drop_by_keras):
        dropped = ops.convert_to_numpy(drop(inputs, rate, keras.random.SeedGenerator()))
        values = np.unique(dropped)
        # 200,000 units: the share has a standard deviation of 0.0007.
        results.append(np.array([*values, np.round((dropped == 0).mean() / 0.004)]))
    return results


def by_kernel_and_plainly_gelu(name):
    x = arrays(11, 13)[0] * 3
    exact = np.vectorize(lambda value: value * 0.5 * (1 + math.erf(value / math.sqrt(2))))
    formulas = {
        "gelu": exact,
        "gelu_tanh": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
        "relu": lambda x: np.maximum(x, 0),
    }
    return ops.convert_to_numpy(gelu.activation_function(name)(ops.convert_to_tensor(x))), formulas[name](x)


KERNELS = {
    "adamw": by_kernel_and_plainly_adamw,
    "dropout": by_kernel_and_plainly_dropout,
    **{name: lambda name=name: by_kernel_and_plainly_gelu(name) for name in gelu.ACTIVATIONS},
}


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_computes_what_its_plain_form_does(name):
    found, expected = KERNELS[name]()
    np.testing.assert_allclose(found, expected, atol=2e-6, rtol=2e-6)


def test_bfloat16_activations_are_rounded_once():
    x = arrays(11, 13)[0]
    found = gelu.activation_function("gelu")(ops.cast(ops.convert_to_tensor(x), "bfloat16"))
    assert keras.backend.standardize_dtype(found.dtype) == "bfloat16"
    rounded = ops.cast(ops.cast(ops.convert_to_tensor(x), "bfloat16"), "float32")
    expected = ops.cast(gelu.activation_function("gelu")(rounded), "bfloat16")
    np.testing.assert_array_equal(*(ops.convert_to_numpy(ops.cast(each, "float32")) for each in (found, expected)))
