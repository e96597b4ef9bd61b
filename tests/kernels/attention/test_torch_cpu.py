"""Attention by parts is the plain form's, whatever is masked and however many rows a part has."""

import keras
import numpy as np
import pytest
from tiers import on

if keras.backend.backend() != "torch":
    pytest.skip("torch's form", allow_module_level=True)

import torch

from keras_bert_impl.kernels.attention import attend, plain, torch_cpu, trial

pytestmark = on("torch")


@pytest.mark.parametrize("masking", ["keys", "sequences", None])
@pytest.mark.parametrize("scores", [1, 2 * 3 * 7 * 7])  # parts of one row, of two
@pytest.mark.parametrize("dtype, limit", [("float32", 1e-6), ("bfloat16", 2e-2)])
def test_parts_give_what_the_plain_form_gives(masking, scores, dtype, limit, monkeypatch):
    monkeypatch.setattr(torch_cpu, "SCORES", scores)
    inputs, _ = trial.random_inputs(5, 7, 3, 4, masking or "keys", dtype)
    inputs = inputs if masking else inputs._replace(mask=None, sequence_ids=None)
    found, expected = torch_cpu.by_parts(inputs), plain.by_ops(inputs)
    np.testing.assert_allclose(found.float(), expected.float(), atol=limit)


def test_one_mask_for_all_rows_is_taken():
    inputs, _ = trial.random_inputs(3, 5, 2, 4, "keys", "float32")
    inputs = inputs._replace(mask=inputs.mask[:1])
    np.testing.assert_allclose(torch_cpu.by_parts(inputs), plain.by_ops(inputs), atol=1e-6)


def test_it_is_used_in_bfloat16_where_no_gradient_is_kept(monkeypatch):
    used = []
    monkeypatch.setattr(torch_cpu, "by_parts", lambda inputs: used.append(inputs.query.dtype))
    for dtype in ("bfloat16", "float32"):
        inputs, _ = trial.random_inputs(2, 5, 2, 4, "keys", dtype)
        attend(inputs)
        with torch.no_grad():
            attend(inputs)
    assert used == [torch.bfloat16]
