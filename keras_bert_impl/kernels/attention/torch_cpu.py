"""Attention without dropout on a CPU, in bfloat16 and without gradients, as `predict` needs it on torch.

torch's own attention on a CPU, which goes through the keys by blocks, takes 1.5 to 2 times as long with heads of 32
units and rows of 64 to 512 tokens (on a CPU with instructions for bfloat16, and without AMX). In bfloat16 the scores
are rounded, as they are in Hugging Face's eager form: vectors of sentences keep a cosine of 0.9999 with those of
float32. In float32, torch's own is faster.
"""

import math

import torch

from keras_bert_impl.kernels.attention.plain import added, by_heads, joined

# Scores that are computed at a time, in numbers: 2 MB, which a core's cache holds.
SCORES = 1 << 20


def suits(inputs):
    """Whether `by_parts` is for these inputs."""
    return inputs.query.dtype == torch.bfloat16 and not inputs.dropout_rate and not torch.is_grad_enabled()


def by_parts(inputs):
    """The mixed values (batch, length, width), computed for as many rows at a time as the cache holds the scores of."""
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
