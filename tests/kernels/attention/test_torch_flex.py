"""torch's flex attention, computed on a CPU as written: values, gradients, and when it would be used on a GPU."""

import types

import keras
import numpy as np
import pytest
from tiers import full_but, on

if keras.backend.backend() != "torch":
    pytest.skip("torch's form", allow_module_level=True)

import torch
from torch.nn.attention import flex_attention

from keras_bert_impl.kernels.attention import device_check, plain, torch_flex, torch_form, windows

pytestmark = [on("torch"), pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")]


@pytest.fixture(autouse=True)
def computes_gradients_on_a_cpu(monkeypatch):
    """torch refuses them there, though its form as written has them."""
    monkeypatch.setattr(flex_attention, "_validate_device", lambda *tensors: None)


SIZES = [(1, 3), (129, 1), (129, None), (300, 64), (300, 127), (300, 128)]


@pytest.mark.parametrize("masking", full_but(["none", "keys", "sequences"], "keys", "sequences"))
@pytest.mark.parametrize(("length", "window"), full_but(SIZES, (129, None), (300, 127)))
def test_values_are_those_of_the_plain_form(masking, length, window):
    inputs, _ = device_check.random_inputs(2, length, 3, 8, masking, "float32")
    inputs = inputs._replace(window=window)
    np.testing.assert_allclose(torch_flex.by_flex(inputs), plain.by_ops(inputs), atol=2e-6)


def has_another_window(inputs):
    return torch_flex.by_flex(inputs._replace(window=inputs.window and inputs.window + 1, mask=inputs.mask.clone()))


def forgets_sequences(inputs):
    is_token = windows.numbers_of(inputs) > 0
    return torch_flex.by_flex(inputs._replace(mask=is_token[:, None, None], sequence_ids=None))


def has_a_wrong_gradient(inputs):
    array = inputs.query
    return torch_flex.by_flex(inputs._replace(query=array - 0.1 * (array - array.detach())))


@pytest.mark.parametrize(
    ("form", "found"),
    [
        (torch_flex.by_flex, None),
        (has_another_window, "values"),
        (forgets_sequences, "values"),
        (has_a_wrong_gradient, "gradients"),
    ],
)
def test_a_wrong_form_is_found_on_a_small_batch(form, found):
    difference = torch_flex.difference(2, 8, torch.float32, 3, form, length=40)
    assert difference is None if found is None else f"the {found} of" in difference


def test_layers_make_the_blocks_of_their_common_mask_once(monkeypatch):
    made = []
    create = torch_flex._block_mask
    monkeypatch.setattr(torch_flex, "_block_mask", lambda inputs: made.append(inputs.window) or create(inputs))
    inputs, _ = device_check.random_inputs(2, 40, 2, 8, "sequences", "float32")
    for window in (3, None, 3):
        torch_flex.by_flex(inputs._replace(window=window))
    assert made == [3, None]
    torch_flex.by_flex(inputs._replace(window=3, mask=inputs.mask.clone()))
    assert made == [3, None, 3]


def test_a_mask_that_was_changed_in_place_or_has_other_sequences_gets_other_blocks():
    inputs, _ = device_check.random_inputs(2, 40, 2, 8, "sequences", "float32")
    torch_flex.by_flex(inputs)
    others = inputs._replace(sequence_ids=inputs.sequence_ids + 1)  # other numbers of the same sequences
    np.testing.assert_allclose(torch_flex.by_flex(others), torch_flex.by_flex(inputs), atol=1e-6)
    inputs.mask[..., 10:] = False
    is_token = windows.numbers_of(inputs) > 0
    found, expected = torch_flex.by_flex(inputs), plain.by_ops(inputs)
    np.testing.assert_allclose(found[is_token], expected[is_token], atol=2e-6)


def test_its_trial_computes_gradients_while_a_user_predicts_in_inference_mode():
    torch_flex._what_is_wrong.cache_clear()
    with torch.inference_mode():
        assert torch_flex._what_is_wrong(2, 8, torch.float32, torch.device("cpu"), 3) is None
        inputs, _ = device_check.random_inputs(2, 40, 2, 8, "keys", "float32")
        assert torch_flex.by_flex(inputs).shape == (2, 40, 16)


@pytest.mark.full
def test_other_masks_and_further_lengths_are_not_compiled_again(monkeypatch):
    from torch._dynamo.utils import counters

    pair = flex_attention.flex_attention, flex_attention.create_block_mask
    compiled = tuple(torch.compile(function, backend="eager") for function in pair)
    monkeypatch.setattr(torch_flex, "_functions", lambda is_cpu: compiled)
    torch._dynamo.reset()
    counts = []
    for batch, length in ((2, 150), (2, 150), (3, 260), (2, 400), (4, 300)):
        inputs, _ = device_check.random_inputs(batch, length, 2, 8, "sequences", "float32")
        torch_flex.by_flex(inputs._replace(window=20))
        counts.append(counters["frames"]["ok"])
    assert counts[1] == counts[0] and counts[2] == counts[3] == counts[4]


def on_device(device, length, **fields):
    array = types.SimpleNamespace(device=torch.device(device), dtype=torch.bfloat16, shape=(2, length, 8))
    return plain.AttentionInputs(array, array, array, 2, **fields)


def test_a_gpu_gets_it_for_windows_and_long_packed_rows(monkeypatch):
    monkeypatch.setattr(torch_flex, "_what_is_wrong", lambda *sizes: None)
    packed = {"mask": torch.ones(2, 1, 1, 1), "sequence_ids": torch.ones(2, 1)}
    array = types.SimpleNamespace(device=torch.device("cuda"), dtype=torch.bfloat16, shape=(0, 512, 8))
    assert torch_flex.form_for(plain.AttentionInputs(array, array, array, 2, window=64)) is None  # no rows
    for fields, length, is_flex in (
        ({"window": 64}, 256, True),
        ({"window": 64}, 255, False),  # the fused form computes all of so short a row
        ({"window": 64, "dropout_rate": 0.1, "seed": types.SimpleNamespace(_initial_seed=1)}, 512, False),
        ({"window": 64, "bias": torch.ones(1)}, 512, False),
        ({"window": 64, "global_places": torch.zeros(1, 1)}, 512, False),
        ({}, 4096, False),  # nothing is hidden
        (packed, torch_flex.SHORT, False),
        (packed, torch_flex.SHORT + 1, True),
    ):
        form = torch_form.form_for(on_device("cuda", length, **fields))
        assert (form is torch_flex.by_flex) is is_flex, (fields, length)
        assert torch_form.form_for(on_device("cpu", length, **fields)) is not torch_flex.by_flex


def test_a_gpu_on_which_it_is_wrong_goes_on_with_a_warning(monkeypatch):
    monkeypatch.setattr(torch_flex, "_what_is_wrong", lambda *sizes: "its values differ")
    with pytest.warns(UserWarning, match="than necessary, because its values differ"):
        assert torch_form.form_for(on_device("cuda", 512, window=64)) is None
