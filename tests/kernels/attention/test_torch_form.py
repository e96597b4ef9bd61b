"""torch's scaled_dot_product_attention, on a CPU: what it computes, and when it would be used on a GPU."""

import types

import keras
import numpy as np
import pytest
from tiers import on

if keras.backend.backend() != "torch":
    pytest.skip("torch's form", allow_module_level=True)

import torch

from keras_bert_impl.kernels import attention
from keras_bert_impl.kernels.attention import attend, device_check, plain, torch_form
from keras_bert_impl.kernels.attention.device_check import value_and_gradient

pytestmark = on("torch")


def forgets_the_mask(inputs):
    return torch_form.by_sdpa(inputs._replace(mask=None))


def has_a_wrong_gradient(inputs):
    array = inputs.query
    return torch_form.by_sdpa(inputs._replace(query=array - 0.1 * (array - array.detach())))


def drops_nothing(inputs):
    return torch_form.by_sdpa(inputs._replace(dropout_rate=0.0))


def does_not_rescale(inputs):
    return torch_form.by_sdpa(inputs) * (1 - inputs.dropout_rate)


@pytest.mark.parametrize(
    ("form", "found"),
    [
        (torch_form.by_sdpa, None),
        (forgets_the_mask, "values"),
        (has_a_wrong_gradient, "gradients"),
        (drops_nothing, "does not drop"),
        (does_not_rescale, "does not drop"),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_wrong_form_is_found_on_a_small_batch(form, found, dtype):
    difference = torch_form.difference(3, 8, dtype, form)
    assert difference is None if found is None else found in difference


def test_a_form_that_the_device_cannot_compute_is_said():
    def fails(inputs):
        raise RuntimeError("No available kernel. Aborting execution.")

    difference = torch_form.difference(2, 16, "float32", fails)
    assert difference == "this device cannot compute it (RuntimeError: No available kernel. Aborting execution.)"


@pytest.mark.parametrize("masking", ["keys", "sequences"])
@pytest.mark.parametrize("bias", [None, 3.0])
@pytest.mark.parametrize("form", [torch_form.by_sdpa, plain.by_keras])
def test_gradients_are_those_of_the_plain_form_where_queries_see_no_key(form, bias, masking):
    """The second row is padding alone; of packed rows, the first one ends in padding."""
    inputs, outer = device_check.random_inputs(2, 40, 3, 8, masking, "float32")
    inputs.mask[1] = False
    inputs = inputs._replace(bias=None if bias is None else bias * torch.randn(1, 3, 40, 40))
    computed = zip(*(value_and_gradient(one, inputs, outer) for one in (form, plain.by_ops)), strict=True)
    for found, expected in computed:
        np.testing.assert_allclose(found, expected, atol=1e-5)


def on(device, seed=None):
    array = types.SimpleNamespace(device=torch.device(device), dtype=torch.bfloat16, shape=(2, 5, 8))
    return plain.AttentionInputs(
        array, array, array, 2, dropout_rate=0.1, seed=types.SimpleNamespace(_initial_seed=seed)
    )


def test_a_gpu_gets_it_where_dropout_needs_it(monkeypatch):
    monkeypatch.setattr(torch_form, "_what_is_wrong", lambda *sizes: None)
    assert torch_form.form_for(on("cuda")) is torch_form.by_sdpa
    assert torch_form.form_for(on("cuda")._replace(dropout_rate=0.0)) is torch_form.by_sdpa
    assert torch_form.form_for(on("cuda", seed=3)) is None
    assert torch_form.form_for(on("cpu")) is None


def test_a_gpu_on_which_it_is_wrong_keeps_the_plain_form_with_a_warning(monkeypatch):
    monkeypatch.setattr(torch_form, "_what_is_wrong", lambda *sizes: "its values differ")
    with pytest.warns(UserWarning, match="in memory, since its values differ"):
        assert torch_form.form_for(on("cuda")) is plain.by_ops


def test_attention_on_a_cpu_draws_what_it_always_drew():
    """The plain form with the dropout of `kernels.dropout`: runs are resumed and repeated by it."""
    inputs, _ = device_check.random_inputs(2, 5, 2, 4, "keys", "float32")
    inputs = inputs._replace(dropout_rate=0.5, seed=keras.random.SeedGenerator())
    results = []
    for form in (attention.attend, plain.by_ops):
        torch.manual_seed(5)
        results.append(form(inputs))
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("masking", ["keys", "sequences", None])
@pytest.mark.parametrize("scores", [1, 2 * 3 * 7 * 7])  # parts of one row, of two
@pytest.mark.parametrize("dtype, limit", [("float32", 1e-6), ("bfloat16", 2e-2)])
def test_parts_give_what_the_plain_form_gives(masking, scores, dtype, limit, monkeypatch):
    monkeypatch.setattr(torch_form, "SCORES", scores)
    inputs, _ = device_check.random_inputs(5, 7, 3, 4, masking or "keys", dtype)
    inputs = inputs if masking else inputs._replace(mask=None, sequence_ids=None)
    found, expected = torch_form.by_parts(inputs), plain.by_ops(inputs)
    np.testing.assert_allclose(found.float(), expected.float(), atol=limit)


def test_one_mask_for_all_rows_is_taken():
    inputs, _ = device_check.random_inputs(3, 5, 2, 4, "keys", "float32")
    inputs = inputs._replace(mask=inputs.mask[:1])
    np.testing.assert_allclose(torch_form.by_parts(inputs), plain.by_ops(inputs), atol=1e-6)


def test_parts_are_used_in_bfloat16_where_no_gradient_is_kept(monkeypatch):
    used = []
    monkeypatch.setattr(torch_form, "by_parts", lambda inputs: used.append(inputs.query.dtype))
    for dtype in ("bfloat16", "float32"):
        inputs, _ = device_check.random_inputs(2, 5, 2, 4, "keys", dtype)
        attend(inputs)
        with torch.no_grad():
            attend(inputs)
    assert used == [torch.bfloat16]
