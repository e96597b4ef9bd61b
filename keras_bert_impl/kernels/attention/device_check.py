"""A small batch with which a form is compared with the plain one on the device that will use it."""

import keras
import numpy as np
from keras import ops

from keras_bert_impl.kernels.attention.plain import by_ops, of_fused

NEAR = 2e-2  # of the largest value; bfloat16 rounds by 4e-3


def random_inputs(batch, length, num_heads, head_width, masking, dtype):
    """(AttentionInputs of one fused array, without dropout; gradient of the mixed values) of rows with padding;
    `masking` is "none", "keys" to hide the padding, or "sequences" for packed rows."""
    random, width = np.random.default_rng(0), num_heads * head_width
    query_key_value = random.normal(size=(batch, length, 3 * width))
    outer = random.normal(size=(batch, length, width))
    # Three sequences of unequal lengths, then padding; less of it in each further row.
    places, row = np.arange(length), np.arange(batch)[:, None]
    ids = 1 + (places >= length // 5) + (places >= length // 2) - 3 * (places >= length * (3 + row) // (4 + row))
    ids = np.maximum(ids, 0).astype("int32")  # (batch, length)
    mask = {
        "none": None,
        "keys": (ids > 0)[:, None, None, :],
        "sequences": ((ids[:, :, None] == ids[:, None, :]) & (ids > 0)[:, None, :])[:, None],
    }[masking]
    inputs = of_fused(
        ops.cast(ops.convert_to_tensor(query_key_value, "float32"), keras.backend.standardize_dtype(dtype)),
        num_heads,
        None if mask is None else ops.convert_to_tensor(mask),
        sequence_ids=ops.convert_to_tensor(ids) if masking == "sequences" else None,
    )
    return inputs, ops.cast(ops.convert_to_tensor(outer, "float32"), inputs.query.dtype)


def cannot_compute(error):
    """What is wrong, in words, where a form ends in an error on this device."""
    return f"this device cannot compute it ({type(error).__name__}: {(str(error).splitlines() or [''])[0][:200]})"


def is_near(found, expected):
    """Whether two arrays differ by at most NEAR of the largest value, and hold no NaN."""
    found, expected = (ops.convert_to_numpy(ops.cast(array, "float32")) for array in (found, expected))
    return bool(np.abs(found - expected).max() <= NEAR * np.abs(expected).max())


def differing(attend, inputs, outer):
    """Which of "values" and "gradients" of a form for torch differ from the plain form's; None if neither does.

    Args:
        attend: the form.
        inputs: AttentionInputs, without dropout.
        outer: the gradient of the mixed values.
    """
    pairs = zip(*(value_and_gradient(form, inputs, outer) for form in (attend, by_ops)), strict=True)
    for what, (found, expected) in zip(("values", "gradients"), pairs, strict=True):
        if not is_near(found, expected):
            return what
    return None


def value_and_gradient(form, inputs, outer):
    """The mixed values of a form, and the gradients of queries, keys and values side by side, on torch."""
    import torch

    arrays = [array.detach().requires_grad_() for array in (inputs.query, inputs.key, inputs.value)]
    value = form(inputs._replace(query=arrays[0], key=arrays[1], value=arrays[2], fused=None))
    value.backward(outer)
    return value.detach(), torch.cat([array.grad for array in arrays], dim=-1)
