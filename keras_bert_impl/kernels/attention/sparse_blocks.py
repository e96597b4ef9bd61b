"""Attention between blocks of a row (Zaheer et al. 2020, "Big Bird", section 2), in memory linear in its length.

The first and the last block see the whole row and are seen by all of it. A block between them also sees itself, the
block on either side, and some random blocks. A random block that is also near or one of these two is seen twice, and
its keys have twice the weight, as in Google's code. There is no dropout on the probabilities.
"""

import functools
import math
import typing

from keras import ops

from keras_bert_impl.kernels.attention.plain import AttentionInputs, by_heads, by_ops, joined
from keras_bert_impl.kernels.attention.random_blocks import OLD_LENGTHS, random_blocks
from keras_bert_impl.kernels.attention.windows import numbers_of
from keras_bert_impl.kernels.dropout import drop
from keras_bert_impl.kernels.padding import padded

FULL_BLOCKS = 4  # of a row that is divided into so many, each block sees the whole


class SparseBlocks(typing.NamedTuple):
    """Which blocks see one another.

    Attributes:
        size: tokens of a block.
        num_random: random blocks that each block sees.
        seed: the number of the layer, by which they are drawn; None makes each of them the first block.
        max_length: tokens of the longest row.
    """

    size: int
    num_random: int
    seed: int | None
    max_length: int

    @property
    def longest_full(self):
        """Tokens of the longest row whose tokens see all others: five blocks and twice the random ones, as in
        transformers."""
        return (5 + 2 * self.num_random) * self.size

    @property
    def draws(self):
        """Whether blocks are drawn that are seen at random."""
        return self.seed is not None and self.num_random > 0

    def may_be_sparse(self, length):
        """Whether a row of this length, a number or of a graph of any length, may have blocks that see only some."""
        return not isinstance(length, int) or length > self.longest_full

    def random(self, num_heads, blocks):
        """The blocks that are seen at random, an int32 tensor (heads, blocks - 2, num_random), or in a graph of any
        length of as many blocks as there can be."""
        is_known, most = isinstance(blocks, int), -(-self.max_length // self.size)
        old = [length // self.size for length in OLD_LENGTHS if length % self.size == 0]
        drawn = functools.partial(
            random_blocks, self.seed, num_heads, blocks if is_known else most, self.size, self.num_random
        )
        if is_known:
            return ops.convert_to_tensor(drawn(blocks in old))
        found, old = drawn(False), [number for number in old if self.longest_full // self.size < number <= most]
        if old:
            is_old = functools.reduce(ops.logical_or, [ops.equal(blocks, number) for number in old])
            found = ops.where(is_old, drawn(True), found)
        return ops.minimum(found, blocks - 1)  # a row that is seen as a whole has fewer


def by_sparse_blocks(inputs, layout, attend=by_ops):
    """The mixed values (batch, length, width) of an AttentionInputs whose mask, if any, is the same for all queries;
    those of padded queries are 0, as in Google's code.

    Each block of queries of each head becomes a row of its own, with its keys and a mask, which the form `attend`
    computes. In a graph of any length a row of at most `layout.longest_full` tokens is divided into four blocks, of
    which each sees the whole; padded queries see the others there, and probabilities are dropped.
    """
    length, heads = ops.shape(inputs.query)[1], inputs.num_heads
    size, blocks, is_long = _division(length, layout)
    of_row = numbers_of(inputs)  # (batch, length), 0 for padding

    def by_rows(array):
        """(batch, length, heads, ...) to (batch * heads, length, ...)."""
        axes = (0, 2, 1, *range(3, len(array.shape)))
        return ops.reshape(ops.transpose(array, axes), (-1, length, *array.shape[3:]))

    def in_blocks(array):
        """(batch * heads, length, ...) to (batch * heads, blocks, size, ...), filled up with zeros."""
        rest = array.shape[2:]
        return ops.reshape(padded(array, 0, blocks * size - length), (-1, blocks, size, *rest))

    def at_random(blocked):
        """(batch * heads, blocks, size, ...) to (batch * heads, blocks - 2, num_random * size, ...)."""
        rest = blocked.shape[3:]
        firsts = ops.expand_dims(ops.arange(heads, dtype="int32") * blocks, (1, 2))  # the heads are side by side
        places = ops.reshape(layout.random(heads, blocks)[:, : blocks - 2] + firsts, (-1,))
        found = ops.take(ops.reshape(blocked, (-1, heads * blocks, size, *rest)), places, axis=1)
        return ops.reshape(found, (-1, blocks - 2, layout.num_random * size, *rest))

    def seen_by_middle(blocked, inner, random):
        """What each block but the first and the last one sees: (batch * heads, blocks - 2, keys, ...)."""
        shape = ops.shape(inner[:, 2:])
        first, last = (ops.broadcast_to(one, shape) for one in (blocked[:, :1], blocked[:, -1:]))
        return ops.concatenate([first, inner[:, :-2], inner[:, 1:-1], inner[:, 2:], last, *random], axis=2)

    def as_row(array):
        """(batch * heads, blocks, ...) to (batch * heads * blocks, ...)."""
        return ops.reshape(array, (-1, *ops.shape(array)[2:]))

    query, key, value = map(by_rows, by_heads(inputs))  # (batch * heads, length, head_width)
    mask = by_rows(ops.tile(ops.expand_dims(of_row, -1), (1, 1, heads)))  # (batch * heads, length)
    in_query, in_key, in_value, in_mask = map(in_blocks, (query, key, value, mask))
    random_keys, random_values = ([at_random(array)] if layout.draws else [] for array in (in_key, in_value))
    random_mask = [ops.where(is_long, at_random(in_mask), 0)] if layout.draws else []
    # The first and the last block are seen by all; as neighbours, they would be seen twice.
    places = ops.arange(blocks, dtype="int32")
    is_inner = ops.logical_and(places > 0, places < blocks - 1)
    inner_mask = ops.where(ops.expand_dims(is_inner, -1), in_mask, 0)
    seen = ops.greater(seen_by_middle(in_mask, inner_mask, random_mask), 0)
    rows = AttentionInputs(
        as_row(in_query[:, 1:-1]),
        as_row(seen_by_middle(in_key, in_key, random_keys)),
        as_row(seen_by_middle(in_value, in_value, random_values)),
        num_heads=1,
        mask=ops.expand_dims(as_row(seen), (1, 2)),  # (batch * heads * blocks, 1, 1, keys)
        bias=None if layout.draws else _of_first_block(layout, size, is_long, inputs.query.dtype),
        dropout_rate=inputs.dropout_rate,
        seed=inputs.seed,
    )
    ends = rows._replace(
        query=ops.concatenate([in_query[:, 0], in_query[:, -1]], axis=1),
        key=key,
        value=value,
        mask=ops.expand_dims(ops.greater(mask, 0), (1, 2)),
        bias=None,
    )
    if inputs.dropout_rate:  # in a graph of any length alone
        attend = functools.partial(by_ops, dropped=functools.partial(_dropped_in_short_rows, is_long))
    middle = ops.reshape(attend(rows), ops.shape(in_query[:, 1:-1]))
    of_ends = attend(ends)  # (batch * heads, 2 * size, head_width)
    first, last = (ops.expand_dims(part, 1) for part in (of_ends[:, :size], of_ends[:, size:]))
    mixed = ops.concatenate([first, middle, last], axis=1)  # (batch * heads, blocks, size, head_width)
    mixed = ops.reshape(mixed, (-1, heads, blocks * size, inputs.head_width))[:, :, :length]
    return _without_padding(joined(ops.transpose(mixed, (0, 2, 1, 3))), of_row, is_long)


def _without_padding(mixed, of_row, is_long):
    """The mixed values, 0 for padding in a row of blocks."""
    is_computed = ops.logical_or(ops.greater(of_row, 0), ops.logical_not(is_long))
    return ops.where(ops.expand_dims(is_computed, -1), mixed, 0)


def _division(length, layout):
    """The size of a block, the number of blocks, and whether they see only some, bool."""
    if isinstance(length, int):
        return layout.size, -(-length // layout.size), True
    if not ops.is_tensor(length):  # a symbol, of which torch would export the value in its example
        length = ops.arange(length, dtype="int32")[-1] + 1
    is_long = ops.greater(length, layout.longest_full)
    size = ops.where(is_long, layout.size, (length + FULL_BLOCKS - 1) // FULL_BLOCKS)
    return size, ops.where(is_long, (length + size - 1) // size, FULL_BLOCKS), is_long


def _of_first_block(layout, size, is_long, dtype):
    """What is added to the scores of the first block's keys, which are seen once and num_random times at random: (1, 1,
    1, keys)."""
    if not layout.num_random:
        return None
    of_first = ops.arange(5 * size, dtype="int32") < size
    more = ops.cast(is_long, dtype) * math.log(1 + layout.num_random)
    return ops.expand_dims(ops.where(of_first, more, ops.zeros_like(more)), (0, 1, 2))


def _dropped_in_short_rows(is_long, probabilities, rate, seed):
    return ops.where(is_long, probabilities, drop(probabilities, rate, seed))


def by_counts(inputs, layout):
    """The same by the plain form, with arrays of length x length: for graphs that torch exports, in which the number of
    blocks cannot depend on a condition."""
    is_long = _division(ops.shape(inputs.query)[1], layout)[2]
    return _without_padding(by_ops(with_counts(inputs, layout)), numbers_of(inputs), is_long)


def with_counts(inputs, layout):
    """The AttentionInputs with which the plain form computes the same, but for padded queries: the logarithm of how
    often a query sees a key is added to its score. Its arrays are of length x length."""
    length = ops.shape(inputs.query)[1]
    size, blocks, is_long = _division(length, layout)
    places, last = ops.arange(length, dtype="int32") // size, blocks - 1
    query, key = ops.expand_dims(places, 1), ops.expand_dims(places, 0)
    is_end = [ops.equal(key, 0), ops.equal(key, last)]
    is_near = ops.logical_and(ops.less_equal(ops.abs(query - key), 1), ops.logical_not(ops.logical_or(*is_end)))
    counts = sum(ops.cast(one, "int32") for one in (*is_end, is_near))  # (length, length)
    if not layout.draws:
        random = ops.expand_dims(layout.num_random * ops.cast(is_end[0], "int32"), 0)
    else:
        table = layout.random(inputs.num_heads, blocks)
        middle = ops.minimum(ops.maximum(places - 1, 0), last - 2)
        # A list of vectors of floats, which torch exports for ONNX.
        table = ops.reshape(ops.transpose(table, (1, 0, 2)), (-1, inputs.num_heads * layout.num_random))
        found = ops.take(ops.cast(table, "float32"), middle, axis=0)  # (length, heads * num_random)
        found = ops.reshape(ops.cast(found, "int32"), (-1, inputs.num_heads, layout.num_random))
        of_query = ops.expand_dims(ops.transpose(found, (2, 1, 0)), -1)  # (num_random, heads, length, 1)
        random = ops.sum(ops.cast(ops.equal(of_query, key), "int32"), axis=0)
    sees_all = ops.logical_or(ops.equal(query, 0), ops.equal(query, last))
    counts = counts + random * ops.cast(is_long, "int32")
    counts = ops.expand_dims(ops.where(sees_all, 1, counts), 0)  # (1, 1 or heads, length, length)
    seen = ops.greater(counts, 0)
    bias = ops.log(ops.cast(ops.maximum(counts, 1), inputs.query.dtype))
    return inputs._replace(mask=seen if inputs.mask is None else ops.logical_and(inputs.mask, seen), bias=bias)
