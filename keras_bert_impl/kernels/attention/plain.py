"""Attention by `keras.ops`: the plain form, which keeps the probabilities, and Keras' fused one, without dropout."""

import math
import typing

import ml_dtypes
from keras import backend, ops

from keras_bert_impl.kernels.dropout import drop

MASKED_LOGIT = -1e9
# Half of the lowest number of a type, which torch's compiler does not find by itself.
HIDDEN = {name: float(ml_dtypes.finfo(name).min) / 2 for name in ("float16", "bfloat16", "float32", "float64")}


class AttentionInputs(typing.NamedTuple):
    """What self-attention of a layer is computed from.

    Attributes:
        query, key, value: (batch, length, width), float, the heads side by side. With a bias, the queries may be more
            than the keys and values.
        num_heads: the number of heads, which divides the width.
        mask: bool, broadcastable to (batch, heads, length, length), True where a query (third axis) may attend to a key
            (fourth axis); None if every query sees every key.
        bias: float, broadcastable to the same shape, added to the scaled products of queries and keys; or None.
        window: the largest distance between a query and a key that it sees; None for any.
        sequence_ids: int (batch, length) if `mask` lets a query see exactly the tokens that have its own number and are
            not padding, as `AttentionMask` makes it of packed rows; otherwise None.
        dropout_rate: of the probabilities; 0 for none.
        seed: the SeedGenerator of the dropout.
        fused: (batch, length, 3 * width) of which query, key and value are the parts, for a kernel that would have to
            copy them; None if they are no such parts.
        global_places: int (batch, count), the places of keys that queries see beyond the window, too, each once; -1 for
            none. None if there are none in any row.
    """

    query: typing.Any
    key: typing.Any
    value: typing.Any
    num_heads: int
    mask: typing.Any = None
    bias: typing.Any = None
    window: int | None = None
    sequence_ids: typing.Any = None
    dropout_rate: float = 0.0
    seed: typing.Any = None
    fused: typing.Any = None
    global_places: typing.Any = None

    @property
    def head_width(self):
        return self.query.shape[-1] // self.num_heads


def of_fused(query_key_value, num_heads, *others, num_key_value_heads=None, **fields):
    """The AttentionInputs of queries, keys and values in one array, (batch, length, 3 * width), or less if fewer heads
    of keys and values are repeated."""
    # Split before the heads are formed: the gradient of a split is one concatenation, that of three slices a sum of
    # three arrays padded with zeros.
    if num_key_value_heads in (None, num_heads):
        parts = ops.split(query_key_value, 3, axis=-1)
        return AttentionInputs(*parts, num_heads, *others, fused=query_key_value, **fields)
    head_width = query_key_value.shape[-1] // (num_heads + 2 * num_key_value_heads)
    width, of_group = num_heads * head_width, num_heads // num_key_value_heads
    end, length = width + num_key_value_heads * head_width, ops.shape(query_key_value)[1]
    # Not by `ops.split`, whose unequal parts torch's compiler cannot follow.
    query, *parts = query_key_value[..., :width], query_key_value[..., width:end], query_key_value[..., end:]

    def repeated(part):  # (batch, length, num_key_value_heads * head_width) to (batch, length, width)
        by_head = ops.reshape(part, (-1, length, num_key_value_heads, 1, head_width))
        return ops.reshape(ops.tile(by_head, (1, 1, 1, of_group, 1)), (-1, length, width))

    return AttentionInputs(query, *map(repeated, parts), num_heads, *others, **fields)


def turned(inputs, positions):
    """AttentionInputs whose queries and keys are turned by the angles of their places (Su et al. 2021, "RoFormer").

    Of each head, unit i of the first half and unit i of the second are the two coordinates that angle i turns, as in
    GPT-NeoX and in `transformers`; the paper takes neighbours.

    Args:
        inputs: AttentionInputs.
        positions: (batch or 1, length, 2, head_width / 2): cosine and sine of each angle.
    """
    cosine, sine = ops.split(ops.expand_dims(ops.cast(positions, inputs.query.dtype), 2), 2, axis=3)
    cosine, sine = ops.squeeze(cosine, 3), ops.squeeze(sine, 3)  # (batch or 1, length, 1, head_width / 2)

    def turn(by_head):  # (batch, length, heads, head_width)
        first, second = ops.split(by_head, 2, axis=-1)
        return joined(ops.concatenate([first * cosine - second * sine, second * cosine + first * sine], axis=-1))

    query, key, _ = by_heads(inputs)
    return inputs._replace(query=turn(query), key=turn(key), fused=None)


def by_heads(inputs):
    """Queries, keys and values, each (batch, length, heads, head_width)."""
    parts = inputs.query, inputs.key, inputs.value
    return tuple(ops.reshape(part, (-1, ops.shape(part)[1], inputs.num_heads, inputs.head_width)) for part in parts)


def joined(mixed):
    """(batch, length, heads, head_width) to (batch, length, width)."""
    heads, head_width = mixed.shape[2:]
    return ops.reshape(mixed, (-1, ops.shape(mixed)[1], heads * head_width))


def visible(inputs):
    """Which query sees which key: `mask` and `window` together, bool; None if every query sees every key.

    Every query sees a key: fused forms of torch give wrong gradients for one that sees none. Padding sees itself where
    the mask hides all keys from it alone, and in a window in any case. A row that is hidden as a whole sees all of it.
    """
    mask = inputs.mask
    if inputs.window is None:
        if mask is None:
            return None
        sees_any = ops.any(mask, axis=-1, keepdims=True)
        if mask.shape[2] == 1:
            return ops.equal(mask, sees_any)
        # ONNX Runtime chooses between no bools.
        return ops.logical_or(mask, ops.logical_and(ops.logical_not(sees_any), ops.equal(_distances(inputs), 0)))
    distances = _distances(inputs)
    near = ops.less_equal(distances, inputs.window)
    if inputs.global_places is not None:
        is_global = are_places(inputs.global_places, ops.shape(inputs.query)[1])
        near = ops.logical_or(near, ops.expand_dims(is_global, (1, 2)))
    return near if mask is None else ops.logical_or(ops.logical_and(mask, near), ops.equal(distances, 0))


def _distances(inputs):
    """Between the place of each query, the last one for those behind the keys, and that of each key: int32 (1, 1,
    queries, keys)."""
    queries, keys = (ops.arange(ops.shape(array)[1], dtype="int32") for array in (inputs.query, inputs.key))
    return ops.expand_dims(ops.abs(ops.expand_dims(ops.minimum(queries, keys[-1:]), 1) - keys), (0, 1))


def are_places(places, length):
    """bool (batch, length): which places of a row are among `places` (batch, count)."""
    of_row = ops.arange(length, dtype="int32")
    return ops.any(ops.equal(ops.expand_dims(places, -1), of_row), axis=1)


def added(inputs):
    """What is added to the scaled products: `bias`, and a large negative number where a query does not see a key; of
    the queries' type, broadcastable to (batch, heads, length, length). None if nothing is."""
    seen, dtype = visible(inputs), backend.standardize_dtype(inputs.query.dtype)
    bias = None if inputs.bias is None else ops.cast(inputs.bias, dtype)
    if seen is None:
        return bias
    hidden = ops.cast(HIDDEN[dtype], dtype)
    return ops.where(seen, ops.zeros_like(hidden) if bias is None else bias, hidden)


def with_probabilities(inputs, dropped=drop):
    """The plain form: mixed values (batch, length, width), and the probabilities (batch, heads, length, length) before
    dropout, in float32. `dropped` is the function of (probabilities, rate, seed) that drops units."""
    query, key, value = by_heads(inputs)
    # (batch, length, heads, head_width) to (batch, heads, length, head_width), the key's transposed
    query, value = ops.transpose(query, (0, 2, 1, 3)), ops.transpose(value, (0, 2, 1, 3))
    key = ops.transpose(key, (0, 2, 3, 1))
    logits = ops.matmul(query * (1 / math.sqrt(inputs.head_width)), key)
    logits = ops.cast(logits, "float32")  # (batch, heads, length, length)
    if inputs.bias is not None:
        logits = logits + ops.cast(inputs.bias, "float32")
    if (seen := visible(inputs)) is not None:
        logits = ops.where(seen, logits, MASKED_LOGIT)
    probabilities = ops.softmax(logits)
    weights = ops.cast(probabilities, value.dtype)
    if inputs.dropout_rate:
        weights = dropped(weights, inputs.dropout_rate, inputs.seed)
    return joined(ops.transpose(ops.matmul(weights, value), (0, 2, 1, 3))), probabilities


def by_ops(inputs, dropped=drop):
    """The mixed values of the plain form."""
    return with_probabilities(inputs, dropped)[0]


def by_keras(inputs):
    """Keras' fused attention, which knows no dropout, and takes either a mask or a bias."""
    return joined(ops.dot_product_attention(*by_heads(inputs), **masking_of(inputs)))


def masking_of(inputs):
    """The argument of Keras' attention that says which query sees which key, by its name: a mask, or with a bias both
    in one."""
    return {"mask": visible(inputs)} if inputs.bias is None else {"bias": added(inputs)}
