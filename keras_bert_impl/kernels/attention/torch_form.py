"""Which form torch's devices get: `scaled_dot_product_attention`, which keeps no probabilities, with dropout on a GPU
alone; another without dropout on a CPU in bfloat16, as `predict` needs it. That of long rows on a GPU is in
`torch_flex.py`. (Keras' own asks torch at each call which of its kernels it may take, which its compiler cannot
follow, and copies queries, keys and values.)

On a CPU with dropout the plain form stays, whose random numbers runs there are resumed with: with 16 rows of 128 tokens
and 8 heads, forward and backward took 1.3 times as long by torch's function in bfloat16, and 0.74 times in float32.
"""

import functools
import math
import warnings

import torch

from keras_bert_impl.kernels.attention import torch_flex, windows
from keras_bert_impl.kernels.attention.device_check import cannot_compute, differing, random_inputs
from keras_bert_impl.kernels.attention.plain import added, by_heads, by_ops, joined

# Scores that `by_parts` computes at a time, in numbers: 2 MB, which a core's cache holds.
SCORES = 1 << 20


def form_for(inputs):
    """The form for the device that holds the inputs; None where the plain form or that of windows suffices."""
    array = inputs.query
    if array.device.type == "cuda" and (form := torch_flex.form_for(inputs)):
        return form
    if windows.suits(inputs):
        return None
    if not inputs.dropout_rate:
        is_for_parts = array.dtype == torch.bfloat16 and not torch.is_grad_enabled()
        return by_parts if array.device.type == "cpu" and is_for_parts else by_sdpa
    if array.device.type != "cuda":
        return None
    if inputs.seed._initial_seed is not None:
        return None  # only the plain form draws the numbers of a given seed
    wrong = _what_is_wrong(inputs.num_heads, inputs.head_width, array.dtype, array.device)
    if not wrong:
        return by_sdpa
    warnings.warn(f"Attention keeps its probabilities in memory, since {wrong}.", stacklevel=2)
    return by_ops


def by_sdpa(inputs):
    """`scaled_dot_product_attention`; it drops by torch's generator of the device."""
    query, key, value = (part.transpose(1, 2) for part in by_heads(inputs))
    mixed = torch.nn.functional.scaled_dot_product_attention(
        query, key, value, attn_mask=added(inputs), dropout_p=inputs.dropout_rate
    )
    return joined(mixed.transpose(1, 2))


def by_parts(inputs):
    """The mixed values (batch, length, width), computed for as many rows at a time as the cache holds the scores of.

    torch's own attention on a CPU, which goes through the keys by blocks, takes 1.5 to 2 times as long in bfloat16 with
    heads of 32 units and rows of 64 to 512 tokens (on a CPU with instructions for bfloat16, and without AMX). The
    scores are rounded, as they are in Hugging Face's eager form: vectors of sentences keep a cosine of 0.9999 with
    those of float32. In float32, torch's own is faster.
    """
    query, key, value = by_heads(inputs)
    batch, length, heads, head_width = query.shape
    query = (query * (1 / math.sqrt(head_width))).transpose(1, 2)  # (batch, heads, length, head_width)
    key, value = key.permute(0, 2, 3, 1), value.transpose(1, 2)
    mixed = torch.empty(batch, length, heads, head_width, dtype=value.dtype)
    rows, hidden = max(1, SCORES // (heads * length * length)), added(inputs)
    for start in range(0, batch, rows):
        part = slice(start, start + rows)
        scores = torch.matmul(query[part], key[part])
        if hidden is not None:
            scores += hidden[part] if len(hidden) == batch else hidden
        mixed[part] = torch.matmul(torch.softmax(scores, -1), value[part]).transpose(1, 2)
    return joined(mixed)


@torch.compiler.assume_constant_result
@functools.cache
def _what_is_wrong(num_heads, head_width, dtype, device):
    """Compares it with the plain form on this device, before it is first used; None if they agree."""
    with torch.random.fork_rng(devices=[device]), torch.inference_mode(False), torch.enable_grad():
        return difference(num_heads, head_width, dtype)


def difference(num_heads, head_width, dtype, attend=by_sdpa):
    """What differs on a small batch, values, gradients, or how units are dropped, or the error in which it ends; None
    if nothing does."""
    try:
        return _differs(num_heads, head_width, dtype, attend)
    except Exception as error:  # a version of torch without a kernel for this device or type
        return cannot_compute(error)


def _differs(num_heads, head_width, dtype, attend):
    for masking in ("keys", "sequences"):
        inputs, outer = random_inputs(2, 40, num_heads, head_width, masking, dtype)
        if what := differing(attend, inputs, outer):
            return f"the {what} of scaled_dot_product_attention differ from those of the plain form on this device"
    return _wrong_dropout(inputs, attend)


def _wrong_dropout(inputs, attend, rate=0.25):
    """Queries of zeros attend to all keys alike; values of ones then give the sum of what is kept, 1 in the mean."""
    zeros, ones = torch.zeros_like(inputs.query), torch.ones_like(inputs.value)
    sums = attend(type(inputs)(zeros, zeros, ones, inputs.num_heads, dropout_rate=rate))
    sums = sums.float().reshape(*sums.shape[:2], inputs.num_heads, -1)[..., 0]  # one for each row, query and head
    length = ones.shape[1]
    expected = (rate / (1 - rate) / length) ** 0.5  # standard deviation of a sum
    # Of at least 80 sums, the deviation is within a third of its expected value but once in 10,000 times.
    if abs(sums.mean() - 1) > 5 * expected / sums.numel() ** 0.5 or not 0.66 < sums.std() / expected < 1.34:
        return f"scaled_dot_product_attention does not drop {rate:.0%} of the units on this device"
    return None
