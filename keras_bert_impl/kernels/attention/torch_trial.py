"""Compares a form of attention of torch with the plain one: values and gradients of a small batch."""

import torch

from keras_bert_impl.kernels.attention.plain import by_ops
from keras_bert_impl.kernels.attention.trial import is_near


def differing(attend, inputs, outer):
    """Which of "values" and "gradients" of a form differ from the plain form's; None if neither does.

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
    """The mixed values of a form, and the gradients of queries, keys and values side by side."""
    arrays = [array.detach().requires_grad_() for array in (inputs.query, inputs.key, inputs.value)]
    value = form(inputs._replace(query=arrays[0], key=arrays[1], value=arrays[2], fused=None))
    value.backward(outer)
    return value.detach(), torch.cat([array.grad for array in arrays], dim=-1)
