"""Attention by `keras.ops`: the plain form, which keeps the probabilities, and Keras' fused one, without dropout."""

import math
import typing

from keras import ops

from keras_bert_impl.kernels.dropout import drop

MASKED_LOGIT = -1e9  # finite, so that a row without any visible key gives a uniform distribution and not NaN


class AttentionInputs(typing.NamedTuple):
    """What self-attention of a layer is computed from.

    Attributes:
        query_key_value: (batch, length, 3 * width), float: the queries of all heads, then the keys, then the values.
        num_heads: the number of heads, which divides the width.
        mask: bool, broadcastable to (batch, heads, length, length), True where a query (third axis) may attend to a key
            (fourth axis); None if every query sees every key.
        sequence_ids: int (batch, length) if `mask` lets a query see exactly the tokens that have its own number and are
            not padding, as `AttentionMask` makes it of packed rows; otherwise None.
        dropout_rate: of the probabilities; 0 for none.
        seed: the SeedGenerator of the dropout.
    """

    query_key_value: typing.Any
    num_heads: int
    mask: typing.Any = None
    sequence_ids: typing.Any = None
    dropout_rate: float = 0.0
    seed: typing.Any = None

    @property
    def head_width(self):
        return self.query_key_value.shape[-1] // 3 // self.num_heads


def by_heads(inputs):
    """Queries, keys and values, each (batch, length, heads, head_width)."""
    length = ops.shape(inputs.query_key_value)[1]
    # Split before the heads are formed: the gradient of a split is one concatenation, that of three slices a sum of
    # three arrays padded with zeros.
    parts = ops.split(inputs.query_key_value, 3, axis=-1)  # 3 of (batch, length, width)
    return tuple(ops.reshape(part, (-1, length, inputs.num_heads, inputs.head_width)) for part in parts)


def joined(mixed):
    """(batch, length, heads, head_width) to (batch, length, width)."""
    heads, head_width = mixed.shape[2:]
    return ops.reshape(mixed, (-1, ops.shape(mixed)[1], heads * head_width))


def with_probabilities(inputs, dropped=drop):
    """The plain form: mixed values (batch, length, width), and the probabilities (batch, heads, length, length) before
    dropout, in float32. `dropped` is the function of (probabilities, rate, seed) that drops units."""
    query, key, value = by_heads(inputs)
    # (batch, length, heads, head_width) to (batch, heads, length, head_width), the key's transposed
    query, value = ops.transpose(query, (0, 2, 1, 3)), ops.transpose(value, (0, 2, 1, 3))
    key = ops.transpose(key, (0, 2, 3, 1))
    logits = ops.matmul(query * (1 / math.sqrt(inputs.head_width)), key)
    logits = ops.cast(logits, "float32")  # (batch, heads, length, length)
    if inputs.mask is not None:
        logits = ops.where(inputs.mask, logits, MASKED_LOGIT)
    probabilities = ops.softmax(logits)
    weights = ops.cast(probabilities, value.dtype)
    if inputs.dropout_rate:
        weights = dropped(weights, inputs.dropout_rate, inputs.seed)
    return joined(ops.transpose(ops.matmul(weights, value), (0, 2, 1, 3))), probabilities


def plainly(inputs, dropped=drop):
    """The mixed values of the plain form."""
    return with_probabilities(inputs, dropped)[0]


def by_keras(inputs):
    """Keras' fused attention, which knows no dropout."""
    return joined(ops.dot_product_attention(*by_heads(inputs), mask=inputs.mask))
