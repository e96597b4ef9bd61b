"""What each kernel of this backend computes, against the plain form in `keras.ops` or the formula in NumPy."""

import functools
import math

import keras
import numpy as np
import pytest
from gradients import outputs_and_gradient
from keras import ops
from tiers import every_backend, on

from keras_bert_impl.kernels import (
    activated_product,
    adamw,
    biased_product,
    cross_entropy,
    dropout,
    gather,
    gelu,
    global_norm,
)
from keras_bert_impl.kernels.attention import Placement, placed

pytestmark = every_backend


def arrays(*shape, count=1, seed=0):
    return np.random.default_rng(seed).normal(size=(count, *shape)).astype("float32")


def by_kernel_and_plainly_adamw():
    """Weights and both moments after three updates of weights of two rates and two decays, also of none."""
    results = []
    for apply in (adamw.apply, adamw.by_ops):
        kinds = [(0.5, 0.1), (1.0, 0.1), (1.0, 0.0), (0.0, 0.1), (1.0, 0.1)]
        variables = [
            [keras.Variable(array) for array in (*arrays(5, 7, seed=place), *np.zeros((2, 5, 7), "float32"))]
            for place in range(len(kinds))
        ]
        for step, gradient in enumerate(arrays(5, 7, count=3, seed=9), start=1):
            updates = [
                adamw.Update(
                    *three,
                    gradient=ops.convert_to_tensor(gradient * (1 + place / 5)),
                    step=ops.convert_to_tensor(step),
                    learning_rate=ops.convert_to_tensor(0.01),
                    rate=rate,
                    decay=decay,
                    beta_1=0.9,
                    beta_2=0.999,
                    epsilon=1e-6,
                )
                for place, ((rate, decay), three) in enumerate(zip(kinds, variables, strict=True))
            ]
            apply(updates, lambda variable, value: variable.assign(value))
        results.append(np.stack([ops.convert_to_numpy(variable) for three in variables for variable in three]))
    return results


def outputs_and_gradients(compute, arguments):
    """What a function of named arrays returns, and its gradients of each of them, in one row."""
    tensors = {name: ops.convert_to_tensor(array) for name, array in arguments.items()}
    parts = [
        part
        for name, array in arguments.items()
        for part in outputs_and_gradient(lambda value, name=name: compute(**{**tensors, name: value}), array)
    ]
    return np.concatenate([part.ravel() for part in parts])


def by_kernel_and_plainly_biased_product():
    """For inputs with two axes before the last."""
    inputs, kernel, bias = arrays(2, 3, 5)[0], arrays(5, 7, seed=1)[0], arrays(7, seed=2)[0]
    kernels = biased_product.biased_product, biased_product.biased_product_by_ops
    results = [outputs_and_gradients(each, {"inputs": inputs, "kernel": kernel, "bias": bias}) for each in kernels]
    np.testing.assert_allclose(results[1][:42].reshape(2, 3, 7), inputs @ kernel + bias, atol=2e-6)
    return results


def by_kernel_and_plainly_product_with_rows():
    vectors, table = arrays(3, 5)[0], arrays(7, 5, seed=1)[0]
    kernels = biased_product.product_with_rows, biased_product.product_with_rows_by_ops
    results = [outputs_and_gradients(each, {"vectors": vectors, "table": table}) for each in kernels]
    np.testing.assert_allclose(results[1][:21].reshape(3, 7), vectors @ table.T, atol=2e-6)
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
        "quick_gelu": lambda x: x / (1 + np.exp(-1.702 * x)),
        "relu2": lambda x: np.maximum(x, 0) ** 2,
    }
    return ops.convert_to_numpy(gelu.activation_function(name)(ops.convert_to_tensor(x))), formulas[name](x)


def by_kernel_and_plainly_cross_entropy():
    """Losses and their gradient, for a logit that is far away from the others, too."""
    logits, labels = arrays(7, 11)[0] * 3, np.array([0, 10, 3, 3, 5, 9, 1])
    logits[2, 4], logits[3, 3] = 300, -300
    kernels = cross_entropy.cross_entropy_of_rows, cross_entropy.cross_entropy_by_keras
    return [
        np.concatenate([part.ravel() for part in outputs_and_gradient(functools.partial(kernel, labels), logits)])
        for kernel in kernels
    ]


def by_kernel_and_plainly_gather():
    """Vectors at positions, one of them taken twice, and the gradient."""
    vectors, positions = arrays(3, 5, 7)[0], ops.array([[4, 0], [2, 2], [0, 1]], dtype="int32")
    kernels = gather.gather, gather.gather_by_indices
    results = [
        outputs_and_gradient(lambda array, kernel=kernel: kernel(array, positions), vectors) for kernel in kernels
    ]
    return [np.concatenate([part.ravel() for part in result]) for result in results]


def by_kernel_and_plainly_global_norm():
    gradients = [ops.array(array) for array in (*arrays(5, 7, count=2), arrays(3)[0], np.float32(2))]
    return [ops.convert_to_numpy(norm(gradients)) for norm in (global_norm.global_norm, global_norm.global_norm_by_ops)]


KERNELS = {
    "adamw": by_kernel_and_plainly_adamw,
    "biased_product": by_kernel_and_plainly_biased_product,
    "product_with_rows": by_kernel_and_plainly_product_with_rows,
    "cross_entropy": by_kernel_and_plainly_cross_entropy,
    "gather": by_kernel_and_plainly_gather,
    "global_norm": by_kernel_and_plainly_global_norm,
    "dropout": by_kernel_and_plainly_dropout,
    **{name: lambda name=name: by_kernel_and_plainly_gelu(name) for name in gelu.ACTIVATIONS},
}


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_computes_what_its_plain_form_does(name):
    found, expected = KERNELS[name]()
    np.testing.assert_allclose(found, expected, atol=2e-6, rtol=2e-6)


def test_cross_entropy_of_bfloat16_logits_is_computed_in_float32():
    logits, labels = arrays(7, 11)[0] * 3, np.array([0, 10, 3, 3, 5, 9, 1])

    def of_rounded(kernel):
        found = outputs_and_gradient(lambda array: kernel(labels, ops.cast(array, "bfloat16")), logits)
        return np.concatenate([part.ravel() for part in found])

    # The gradient comes back in bfloat16, which keeps eight bits.
    kernels = cross_entropy.cross_entropy_of_rows, cross_entropy.cross_entropy_by_keras
    np.testing.assert_allclose(*map(of_rounded, kernels), rtol=1e-2, atol=1e-5)


@on("torch")
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_dense_layer_with_a_bias_is_one_operation_on_torch(dtype):
    """And with LoRA, whose kernel is a sum, it is that layer's own product."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    from keras_bert_impl.layers import Dense

    layer, inputs = Dense(7, dtype=f"mixed_{dtype}" if dtype != "float32" else dtype), torch.ones(2, 3, 5)
    layer.build((2, 3, 5))
    layer.bias.assign(np.arange(7))
    layer.enable_lora(2)
    layer.lora_kernel_b.assign(np.ones((2, 7)))
    with torch.no_grad(), profile(activities=[ProfilerActivity.CPU]) as measured:
        found = layer(inputs)
    assert "aten::addmm" in {event.name for event in measured.events()}
    kernel = ops.convert_to_numpy(layer._kernel) + ops.convert_to_numpy(layer.lora_kernel_a) @ np.ones((2, 7))
    expected = np.ones((2, 3, 5)) @ kernel + np.arange(7)
    np.testing.assert_allclose(ops.convert_to_numpy(found.float()), expected, atol=0.1 if dtype != "float32" else 1e-5)


def test_bfloat16_activations_are_rounded_once():
    x = arrays(11, 13)[0]
    found = gelu.activation_function("gelu")(ops.cast(ops.convert_to_tensor(x), "bfloat16"))
    assert keras.backend.standardize_dtype(found.dtype) == "bfloat16"
    rounded = ops.cast(ops.cast(ops.convert_to_tensor(x), "bfloat16"), "float32")
    expected = ops.cast(gelu.activation_function("gelu")(rounded), "bfloat16")
    np.testing.assert_array_equal(*(ops.convert_to_numpy(ops.cast(each, "float32")) for each in (found, expected)))


def test_the_gradient_of_a_kernel_of_gelu_is_that_of_its_plain_form():
    x = arrays(11, 13)[0] * 3
    found, expected = (
        outputs_and_gradient(functools.partial(function, approximate=False), x)
        for function in (gelu.gelu, gelu.gelu_in_float32)
    )
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


def test_the_gradient_of_dropout_drops_the_units_that_it_dropped():
    seed = keras.random.SeedGenerator(5)
    state = ops.convert_to_numpy(seed.state)

    class Again(keras.random.SeedGenerator):
        """The same seed at each call: the gradient is compared with the outputs of another call."""

        def __init__(self):
            self._initial_seed = 5

        def next(self, ordered=True):
            return ops.array(state)

    x = arrays(11, 13)[0]
    outputs, gradient = outputs_and_gradient(lambda array: dropout.drop(array, 0.4, Again()), x)
    # Of half the squares of x / 0.6 where it is kept.
    np.testing.assert_allclose(gradient, outputs / 0.6, rtol=1e-5)
    assert (outputs == 0).any()


def test_the_norm_of_many_numbers_is_exact():
    """torch adds 15 million squares up one after the other on a CPU: its own norm is wrong by 3e-4."""
    gradients = [ops.ones((4096, 512)) * 3, ops.ones((4096, 512)) * 4]
    found = float(global_norm.global_norm(gradients))
    assert found == pytest.approx(math.sqrt(25 * 4096 * 512), rel=2e-6)


@on("tensorflow", "torch")  # JAX has no float64 unless it is told to
def test_the_norm_of_gradients_in_float64_is_that_of_all_gradients():
    assert float(global_norm.global_norm([ops.ones((2, 2), "float64") * 2, ops.ones((3, 3))])) == 5


only_jax = on("jax")  # a kernel of JAX alone


def kept_units(first, second, count=200_000):
    """Which of `count` units dropout of rate 0.5 keeps with this key, as 1 and -1."""
    words = dropout.random_words(ops.array([first, second], dtype="uint32"), (count,))
    return np.where(np.array(words) >> 31, 1.0, -1.0)


@only_jax
def test_masks_of_layers_and_steps_have_nothing_in_common():
    """Keras' keys are a random number of the layer and the number of the step, which grows by one."""
    keys = [(seed, step) for seed in (7, 8, 7 + 2**16) for step in (0, 1, 2, 64)] + [(2**32 - 1, 2**32 - 1), (0, 7)]
    masks = np.stack([kept_units(*key) for key in keys])
    between = masks @ masks.T / masks.shape[1]
    # 91 correlations and 14 means of standard deviation 1 / sqrt(200,000).
    assert np.abs(between - np.eye(len(keys))).max() < 4.5 / masks.shape[1] ** 0.5
    assert np.abs(masks.mean(axis=1)).max() < 4 / masks.shape[1] ** 0.5


@only_jax
def test_every_position_is_dropped_as_often_as_the_rate_says_over_many_steps():
    masks = np.stack([kept_units(11, step, 500) for step in range(400)])
    shares = masks.mean(axis=0) * 400**0.5  # of standard deviation 1
    assert abs(shares.std() - 1) < 0.15 and np.abs(shares).max() < 4.5
    in_turn = (masks[1:] * masks[:-1]).mean(axis=0) * 399**0.5
    assert abs(in_turn.std() - 1) < 0.15


@only_jax
def test_more_than_four_billion_units_take_other_numbers():
    import jax

    def operations(*shape):
        program = jax.make_jaxpr(lambda key: dropout.random_words(key, shape))(np.zeros(2, "uint32"))
        return [one.primitive.name for one in program.eqns]

    assert operations(5, 2**31).count("iota") == operations(2, 2**31).count("iota") + 1


@only_jax
def test_products_that_pick_vectors_are_exact_on_every_device():
    """By default, TPUs multiply float32 in bfloat16 and GPUs in TF32: only the program can show it here."""
    import jax

    def picked(vectors, positions):
        return gather.gather(vectors, positions).sum()

    program = str(jax.make_jaxpr(jax.grad(picked))(arrays(3, 5, 7)[0], np.zeros((3, 2), "int32")))
    table = str(
        jax.make_jaxpr(jax.grad(lambda table: gather.exact_product(np.ones((3, 2), "float32"), table).sum()))(
            arrays(2, 7)[0]
        )
    )
    for each in (program, table):
        assert each.count("dot_general") == each.count("Precision.HIGHEST, Precision.HIGHEST") > 0


@only_jax
def test_the_gradient_keeps_nothing_wider_than_the_arrays_themselves():
    """Of bfloat16 arrays, only these, numbers of single rows and keys are kept; no mask, no float32 copy."""
    import jax

    def kept(function, *arrays):
        _, pullback = jax.vjp(function, *arrays)
        return [leaf for leaf in jax.tree.leaves(pullback) if getattr(leaf, "size", 0) > 7]

    x = jax.numpy.ones((7, 11), "bfloat16")
    seed = keras.random.SeedGenerator(3)
    labels = np.zeros(7, "int32")
    for function, most in (
        (gelu.activation_function("gelu"), 1),
        (gelu.activation_function("gelu_tanh"), 1),
        (lambda x: dropout.drop(x, 0.1, seed), 0),
        (lambda x: cross_entropy.cross_entropy_of_rows(labels, x), 1),
    ):
        found = kept(function, x)
        assert len(found) <= most and all(leaf.dtype == "bfloat16" for leaf in found), found


@only_jax
def test_on_a_tpu_activated_values_are_computed_again_for_the_gradient():
    """The weights' gradient needs them; kept, they would be the largest array of a layer beside their own input."""
    import jax

    x, weights, upstream = arrays(5, 11)[0], arrays(11, 3)[0], arrays(5, 3)[0]
    activate = gelu.activation_function("gelu")

    def product(x, weights):
        return activated_product.project_activated(activate, lambda activated: activated @ weights, x)

    def kept_and_gradients():
        _, pullback = jax.vjp(product, x, weights)
        return [leaf.shape for leaf in jax.tree.leaves(pullback)].count(x.shape), pullback(upstream)

    count, gradients = kept_and_gradients()
    with placed(Placement("tpu", is_here=False)):
        count_on_tpu, on_tpu = kept_and_gradients()
    assert (count, count_on_tpu) == (2, 1)
    for ours, theirs in zip(on_tpu, gradients, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6)


@on("torch")
def test_the_gradient_of_the_table_of_words_lies_in_memory_as_the_table_does():
    """Else torch copies it, twice in each step of training."""
    import torch

    from keras_bert_impl.layers import TokenEmbedding

    words = TokenEmbedding(11, 5, dtype="mixed_bfloat16")
    words.build()
    strides = []
    words.embeddings.value.register_hook(lambda gradient: strides.append(gradient.stride()))
    words(torch.ones(3, 5, dtype=torch.bfloat16), reverse=True).sum().backward()
    assert strides == [(5, 1)]
