"""Which form of attention JAX's devices get, the comparison before it is used, and the kernel over a mesh."""

import os
import subprocess
import sys

import keras
import numpy as np
import pytest
from tiers import full_but, on

if keras.backend.backend() != "jax":
    pytest.skip("JAX's forms", allow_module_level=True)

import jax
import jax.numpy as jnp

from keras_bert_impl import BertConfig, BertEncoder
from keras_bert_impl.kernels import attention
from keras_bert_impl.kernels.attention import device_check, jax_forms, plain, tpu

pytestmark = on("jax")

ON_TPU = attention.Placement("tpu")
INTERPRETED = attention.Placement("tpu", is_here=False, interpret=True)


def inputs(batch=2, length=8, num_heads=2, head_width=64, masking="keys", dtype="float32", **changes):
    return device_check.random_inputs(batch, length, num_heads, head_width, masking, dtype)[0]._replace(**changes)


def forgets_the_mask(sizes, arrays, ids, *others):
    return tpu.attend(sizes, arrays, jnp.ones_like(ids), *others)


def drops_other_units(sizes, arrays, ids, seeds, first_head):
    return tpu.attend(sizes, arrays, ids, seeds + 1, first_head)


def has_a_wrong_gradient(sizes, arrays, *others):
    changed = tuple(array - 0.1 * (array - jax.lax.stop_gradient(array)) for array in arrays)
    return tpu.attend(sizes, changed, *others)


def test_a_kernel_that_the_device_cannot_compute_is_said():
    def fails(*arguments):  # as Pallas does for a kind of chip that it does not know
        raise ValueError("Unsupported TPU device kind: TPU v9")

    difference = jax_forms.difference(tpu.Sizes(2, 64, "keys", 0.1, interpret=True), 24, "float32", fails)
    assert difference == "this device cannot compute it (ValueError: Unsupported TPU device kind: TPU v9)"


@pytest.mark.parametrize(
    ("kernel", "found"),
    [
        (tpu.attend, None),
        (forgets_the_mask, "values"),
        (drops_other_units, "values"),
        (has_a_wrong_gradient, "gradients"),
    ],
)
@pytest.mark.parametrize("dtype", full_but(["float32", "bfloat16"], "float32"))
def test_a_wrong_kernel_is_found_on_a_small_batch(kernel, found, dtype):
    difference = jax_forms.difference(tpu.Sizes(2, 64, "keys", 0.1, interpret=True), 24, dtype, kernel)
    assert difference is None if found is None else f"its {found} differ" in difference


def test_a_kernel_that_is_wrong_on_the_device_is_replaced_with_a_warning(monkeypatch):
    monkeypatch.setattr(jax_forms, "_what_is_wrong", lambda *sizes: "on this device, its values differ")
    with attention.placed(ON_TPU), pytest.warns(UserWarning, match="without the TPU kernel: .* its values differ"):
        assert jax_forms.form_for(inputs()) is plain.by_ops


def test_the_comparison_computes_while_a_step_is_traced():
    def traced(x):
        assert jax_forms._what_is_wrong(tpu.Sizes(2, 64, "keys", 0.1, interpret=True), 24, "float32", True) is None
        return x

    jax.jit(traced)(1.0)


def test_a_cpu_keeps_the_plain_form_and_a_tpu_without_dropout_never_gets_keras_own():
    assert jax_forms.form_for(inputs()) is plain.by_ops
    with attention.placed(INTERPRETED):
        assert jax_forms.form_for(inputs()).func is jax_forms.by_kernel


@pytest.mark.parametrize(
    ("case", "place", "reason"),
    [
        (inputs(num_heads=3), ON_TPU, "3 heads of width 64 do not have a multiple of 128 columns"),
        (inputs(length=tpu.MOST_UNEVEN_TOKENS + 1, dropout_rate=0.1), ON_TPU, "sequences of 513 tokens"),
        (inputs(length=2 * tpu.MOST_TOKENS, batch=1, dropout_rate=0.1), ON_TPU, "sequences of 4096 tokens"),
        (inputs(dtype="float16"), ON_TPU, "not float16"),
        (inputs(masking="sequences", sequence_ids=None), ON_TPU, "no sequence_ids"),
        (inputs(bias=jnp.zeros((1, 2, 8, 8))), ON_TPU, "it does not support a bias"),
        (inputs(window=3, global_places=jnp.zeros((2, 1), "int32")), ON_TPU, "it does not support global tokens"),
    ],
)
def test_what_the_kernel_cannot_compute_is_computed_plainly_with_a_warning(case, place, reason):
    with attention.placed(place), pytest.warns(UserWarning, match=reason):
        assert jax_forms.form_for(case) is plain.by_ops


def test_ids_of_the_kernel_hide_what_the_mask_hides():
    """Also where padding_mask and sequence_ids disagree, and where 0 numbers tokens. Padding sees itself alone."""
    ids = jnp.array([[1, 1, 2, 2, 0, 0]])
    visible = jnp.array([[1, 1, 1, 0, 1, 0]], bool)
    mask = (visible[:, None, :] & (ids[:, :, None] == ids[:, None, :]))[:, None]
    case = plain.of_fused(jnp.zeros((1, 6, 3 * 128)), 2, mask, sequence_ids=ids)
    assert jax_forms.numbers_of_sequences(case).tolist() == [[[2, 2, 3, -4, 1, -6]]]


@pytest.mark.full
@pytest.mark.parametrize("rematerialize", [False, True])
def test_an_encoder_with_the_kernel_gives_the_same_outputs_and_gradients(rematerialize):
    config = BertConfig(53, hidden_size=128, num_layers=2, num_heads=2, intermediate_size=21, max_length=11,
                        hidden_dropout_rate=0.0, attention_dropout_rate=0.0)  # fmt: skip
    encoder = BertEncoder(config, packed=True, rematerialize=rematerialize)
    random = np.random.default_rng(0)
    ids = np.array([[1, 1, 1, 2, 2, 2, 0], [1, 2, 2, 2, 3, 3, 3]], "int32")
    batch = {
        "token_ids": random.integers(5, 53, (2, 7)).astype("int32"),
        "segment_ids": np.zeros((2, 7), "int32"),
        "padding_mask": (ids > 0).astype("int32"),
        "position_ids": np.tile(np.arange(7, dtype="int32"), (2, 1)),
        "sequence_ids": ids,
    }

    def loss(weights):
        outputs, _ = encoder.stateless_call(weights, encoder.non_trainable_variables, batch, training=True)
        return (outputs["sequence_output"] ** 3 * batch["padding_mask"][..., None]).sum()

    weights = [variable.value for variable in encoder.trainable_variables]
    expected = jax.jit(jax.value_and_grad(loss))(weights)
    with attention.placed(INTERPRETED):
        lowered = jax.jit(jax.value_and_grad(lambda weights: loss(weights))).lower(weights)
    found = lowered.compile()(weights)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4 * max(1, abs(other).max()))


def test_a_gpu_gets_a_mask_that_cudnn_takes(monkeypatch):
    """`check_layout` is JAX's own, which Keras' fused attention calls."""
    from jax._src.cudnn import fused_attention_stablehlo as cudnn

    def fused(query, key, value, mask, flash_attention):
        assert flash_attention is None
        bias = cudnn.combine_bias_and_mask(None, mask, query.dtype)
        cudnn.check_layout(query, key, value, bias, *[None] * 6, cudnn.AttentionLayout.BTNH)
        return query

    monkeypatch.setattr(keras.ops, "dot_product_attention", fused)
    with attention.placed(attention.Placement("gpu")):
        attention.attend(inputs(dtype="bfloat16"))


OVER_A_MESH = """
import jax, jax.numpy as jnp, keras, numpy as np
from keras_bert_impl.kernels import attention
from keras_bert_impl.kernels.attention import jax_forms, plain, tpu_long, device_check

if is_long:
    tpu_long.is_for, tpu_long.BLOCK = lambda length: True, 128

class Seed:
    def next(self):
        return jnp.array([1, 2], "uint32")

def made(rows):
    found, _ = device_check.random_inputs(rows, 200 if is_long else 8, 4, 64, "sequences", "float32")
    return found if is_long else found._replace(dropout_rate=0.25, seed=Seed())

def results(inputs, place):
    given = {name: value for name, value in inputs._asdict().items() if name not in ("query", "key", "value", "fused")}
    form = lambda array: jax_forms.by_kernel(plain.of_fused(array, **given), place)
    value, pull = jax.jit(lambda array: jax.vjp(form, array))(inputs.fused)
    return value, pull(jnp.cos(value))[0]

# Three rows cannot be shared evenly; whether they can does not depend on the kernel.
given = {rows: made(rows) for rows in rows_of_batches}
expected = {rows: results(inputs, attention.Placement("tpu", interpret=True)) for rows, inputs in given.items()}
both = keras.distribution.DeviceMesh((2, 2), ("batch", "model"), jax.devices())
layout = keras.distribution.LayoutMap(both)
for distribution in (
    keras.distribution.ModelParallel(layout_map=layout, batch_dim_name="batch"),
    *(() if is_quick else (keras.distribution.DataParallel(devices=jax.devices()),)),
):
    place = attention.of_distribution(distribution)._replace(interpret=True)
    assert place.parts(place.batch_axis) * place.parts(place.heads_axis) == 4, place
    for rows, inputs in given.items():
        for found, wanted in zip(results(inputs, place), expected[rows]):
            assert len(found.sharding.device_set) == 4
            np.testing.assert_allclose(found, wanted, atol=1e-5)
"""


# Of a program: whether a single mesh is enough, whether rows are long, and how many there are.
QUICK, *OTHERS = [(True, False, [4]), (False, False, [4, 3]), (False, True, [4])]


@pytest.mark.parametrize("settings", [QUICK, *(pytest.param(one, marks=pytest.mark.full) for one in OTHERS)])
def test_devices_compute_their_rows_and_heads_with_the_dropout_of_one_device(settings):
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=4"
    environment = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    program = f"is_quick, is_long, rows_of_batches = {settings}\n{OVER_A_MESH}"
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
