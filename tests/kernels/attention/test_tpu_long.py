"""Splash, for long rows on TPUs, computed by an interpreter on a CPU and compiled for TPUs that are not here."""

import keras
import numpy as np
import pytest
from tiers import full_but, on
from tpu_compiler import compiled_for, only_with_compiler

if keras.backend.backend() != "jax":
    pytest.skip("the kernel is JAX's", allow_module_level=True)


from keras_bert_impl.kernels import attention
from keras_bert_impl.kernels.attention import device_check, jax_forms, tpu, tpu_long

pytestmark = on("jax")

INTERPRETED = attention.Placement("tpu", is_here=False, interpret=True)


@pytest.fixture
def short_blocks(monkeypatch):
    """Rows of a few blocks, which an interpreter computes in seconds."""
    monkeypatch.setattr(tpu_long, "BLOCK", 128)
    monkeypatch.setattr(tpu_long, "BLOCK_IN_WINDOW", 128)


CASES = [
    (masking, window, length)
    for masking in ("none", "keys", "sequences")
    for window in (None, 130)
    for length in (256, 300)
]


@pytest.mark.parametrize(("masking", "window", "length"), full_but(CASES, ("sequences", 130, 300)))
def test_it_computes_what_the_plain_form_does(masking, window, length, short_blocks):
    sizes = tpu.Sizes(2, 64, masking, 0.0, interpret=True, window=window)
    for found, expected in jax_forms.computed_both_ways(sizes, length, "float32", tpu_long.attend).values():
        np.testing.assert_allclose(found, expected, atol=2e-6)


@pytest.mark.parametrize(
    ("length", "is_long"), [(512, False), (513, True), (640, False), (2048, False), (2049, True), (8192, True)]
)
def test_rows_that_the_kernel_of_tpu_py_does_not_take_are_long(length, is_long):
    assert tpu_long.is_for(length) is is_long
    assert jax_forms.kernel_for(length) is (tpu_long.attend if is_long else tpu.attend)
    long, _ = device_check.random_inputs(1, length, 2, 64, "sequences", "bfloat16")
    with attention.placed(INTERPRETED):
        assert jax_forms.form_for(long._replace(window=64)).func is jax_forms.by_kernel


@only_with_compiler
@pytest.mark.parametrize("window", full_but([None, 64], 64))
@pytest.mark.parametrize("topology", ["v5e:2x2", pytest.param("v6e:2x2", marks=pytest.mark.full)])
def test_the_tpu_compiler_keeps_nothing_of_length_times_length(topology, window, without_chips):
    sizes, length = tpu.Sizes(12, 64, "sequences", 0.0, window=window), 8192

    def attend(arrays, ids):
        return tpu_long.attend(sizes, arrays, ids, None, None)

    compiled = compiled_for(topology, (1, length, 768), attend, [(1, 1, length)])
    # Heads of 64 columns take registers of 128, and sums stand in all of their lanes.
    assert compiled.memory_analysis().temp_size_in_bytes < 30 * 2 * length * 768
