"""The Pallas kernel, computed by an interpreter on a CPU and compiled for TPUs that are not here."""

import functools

import keras
import numpy as np
import pytest
from tiers import full_but, on
from tpu_compiler import compiled_for, only_with_compiler

if keras.backend.backend() != "jax":
    pytest.skip("the kernel is JAX's", allow_module_level=True)

import jax
import jax.numpy as jnp

from keras_bert_impl.kernels.attention import device_check, jax_forms, plain, tpu

pytestmark = on("jax")


def sizes(masking="keys", rate=0.25, num_heads=2, head_width=64, interpret=True, window=None):
    return tpu.Sizes(num_heads, head_width, masking, rate, interpret, window)


def assert_same(found, expected):
    np.testing.assert_allclose(found, expected, atol=1e-5, rtol=1e-5)


CASES = [
    (length, case, is_fused)
    for is_fused in (True, False)
    for length, case in (
        (16, sizes("none", rate=0.0)),
        (24, sizes("keys")),
        (37, sizes("sequences")),  # odd
        (19, sizes("sequences", num_heads=4, head_width=32)),  # four heads fill a register
        (37, sizes("sequences", window=5)),
        (24, sizes("none", window=3)),
    )
]


@pytest.mark.parametrize(("length", "case", "is_fused"), full_but(CASES, CASES[1], CASES[4], CASES[9]))
def test_the_kernel_computes_what_the_plain_form_does(length, case, is_fused):
    for found, expected in jax_forms.computed_both_ways(case, length, "float32", is_fused=is_fused).values():
        assert_same(found, expected)


@pytest.mark.parametrize(
    ("window", "is_fused"), full_but([(None, True), (None, False), (130, True), (130, False)], (130, True))
)
def test_a_long_row_is_computed_in_blocks_of_queries(window, is_fused, monkeypatch):
    monkeypatch.setattr(tpu, "SCORES", 256 * tpu.LANES)
    assert tpu.Blocks(sizes(), (jnp.zeros((2, 256, 384)),)).query_count == tpu.LANES
    case = sizes("sequences", window=window)
    for found, expected in jax_forms.computed_both_ways(case, 256, "float32", is_fused=is_fused).values():
        assert_same(found, expected)


@pytest.mark.parametrize("masking", full_but(["keys", "sequences"], "sequences"))
def test_a_row_of_padding_alone_is_computed_as_in_the_plain_form(masking):
    inputs, outer = device_check.random_inputs(2, 5, 2, 64, masking, "float32")
    inputs = inputs._replace(mask=jnp.zeros_like(inputs.mask))
    ids, seeds = jax_forms.numbers_of_sequences(inputs), jnp.zeros((2, 2), "int32")

    def by_kernel(array):
        return tpu.attend(sizes(masking, rate=0.0), (array,), ids, seeds, jnp.zeros(1, "int32"))

    def plainly(array):
        return plain.by_ops(plain.of_fused(array, 2, inputs.mask))

    (found, pull), (expected, pull_expected) = (jax.vjp(form, inputs.fused) for form in (by_kernel, plainly))
    assert_same(found, expected)
    assert_same(pull(outer)[0], pull_expected(outer)[0])


def test_rows_computed_together_are_computed_alike():
    """A program takes three of six short rows; each alone gives the same, dropout included."""
    array = jnp.array(np.random.default_rng(0).normal(size=(6, 130, 3 * 128)), "float32")
    ids, seeds = jnp.ones((6, 1, 130), "int32"), tpu.seeds_of_rows(jnp.array([1, 2], "uint32"), 6)
    assert tpu.Blocks(sizes(), (array,)).rows == 3

    @jax.jit
    def mixed(array, ids, seeds):
        return tpu.attend(sizes(), (array,), ids, seeds, jnp.zeros(1, "int32"))

    assert_same(mixed(array, ids, seeds)[4:5], mixed(array[4:5], ids[4:5], seeds[4:5]))


def kept_units(*seed_and_sizes):
    seed, *others = seed_and_sizes
    return np.array(jax.jit(tpu.kept_units, static_argnums=(1, 2, 3, 4))(jnp.array(seed, "uint32"), *others))


def test_dropout_keeps_its_share_and_other_units_in_each_row_and_head():
    kept = kept_units([3, 5], 3, 4, 128, 0.1)
    assert kept.shape == (3, 4, 128, 128)
    # 196,608 units: a standard deviation of 0.0007. Of each query and each key, as of all:
    assert abs(kept.mean() - 0.9) < 0.003
    assert abs(kept.mean(axis=(0, 1, 2)) - 0.9).max() < 0.04 and abs(kept.mean(axis=(0, 1, 3)) - 0.9).max() < 0.04
    heads = kept.reshape(12, -1) - 0.9
    agreement = np.corrcoef(heads) - np.eye(12)
    assert abs(agreement).max() < 5 / 128  # of independent draws, 1 / 128 is the standard deviation
    # Nor do neighbours go together.
    for shifted in (np.roll(kept, 1, axis=2), np.roll(kept, 1, axis=3)):
        assert abs(np.corrcoef(kept.ravel(), shifted.ravel())[0, 1]) < 0.012


def test_another_seed_drops_other_units():
    first, again, other = (kept_units(seed, 1, 1, 64, 0.5) for seed in ([1, 2], [1, 2], [1, 3]))
    np.testing.assert_array_equal(first, again)
    assert 0.4 < (first == other).mean() < 0.6


@only_with_compiler
@pytest.mark.parametrize("topology", full_but(["v5e:2x2", "v6e:2x2"], "v5e:2x2"))
@pytest.mark.parametrize(
    ("batch", "length", "num_heads"),
    full_but(
        [(4, 37, 2), (64, 128, 12), (64, 512, 16), (4, 1024, 12), (4, tpu.MOST_TOKENS, 16)],
        (4, 37, 2),
    ),
)  # fmt: skip
def test_the_tpu_compiler_takes_both_kernels(topology, batch, length, num_heads, without_chips):
    case = sizes("sequences", num_heads=num_heads, interpret=False)
    others = [(batch, 1, length), (batch, 2), (1,)]
    compiled = compiled_for(topology, (batch, length, case.width), functools.partial(tpu.attend, case), others)
    # Nothing of length x length leaves the chip.
    assert compiled.memory_analysis().temp_size_in_bytes < batch * num_heads * length**2 / 2
    array = 2 * batch * length * 64 * num_heads
    if array > 2**26:  # of smaller arrays, the compiler adds copies into the chip's memory
        # Forward 3 in and 1 out, backward 4 in and 3 out: the kernels' own estimate, on which the planner relies.
        assert compiled.cost_analysis()["bytes accessed"] == pytest.approx(11 * array, rel=0.05)
