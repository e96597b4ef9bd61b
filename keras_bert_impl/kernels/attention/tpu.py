"""Attention on a TPU as one Pallas kernel, forward and backward, with dropout on the probabilities.

A program of the kernel takes a few heads of a row: it reads their columns of queries, keys and values, which are three
arrays or the parts of one, keeps the scores in the chip's own memory and writes the mixed values. The backward kernel
computes scores, probabilities and dropout again. No array of length x length reaches the memory, and nothing is
transposed there; XLA's form writes the probabilities several times, more than once in float32.

Scores are held with the keys first, (keys, queries): sums over keys then add whole registers, and none of the products
transposes an array of that size. Long rows are computed in blocks of queries, each against all keys.

Dropout draws a unit by a hash of (seed, row, head, query, key), so that both kernels, and `kept_units` on any device,
see the same mask, however rows and heads are divided over chips.
"""

import functools
import math
import typing

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

MASKED_LOGIT = -1e9
LANES = 128  # of a TPU register; columns are read in multiples of it
SCORES = 512 * 512  # of a head at a time: 1 MiB in float32
MOST_TOKENS = 2048  # in a row; above it, the gradient of a row no longer fits beside the rest on a v5e or v6e
MOST_UNEVEN_TOKENS = 512  # in a row whose length is no multiple of LANES, and which is therefore one block of queries
MIB = 2**20


class Sizes(typing.NamedTuple):
    """What a kernel is compiled for.

    Attributes:
        num_heads: heads in the array, on this chip.
        head_width: their width.
        masking: "none", "keys" (some keys are hidden from all queries) or "sequences" (a query sees the keys that have
            its own number).
        dropout_rate: of the probabilities; 0 for none.
        interpret: whether an interpreter computes the kernel, on any device, for tests.
        window: the largest distance between a query and a key that it sees; None for any.
    """

    num_heads: int
    head_width: int
    masking: str
    dropout_rate: float
    interpret: bool = False
    window: int | None = None

    @property
    def width(self):
        return self.num_heads * self.head_width

    @property
    def together(self):
        """Heads that a program computes: the fewest whose columns are whole registers; None if there are none."""
        counts = (count for count in range(1, self.num_heads + 1) if self.num_heads % count == 0)
        return next((count for count in counts if count * self.head_width % LANES == 0), None)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def attend(sizes, arrays, sequence_ids, row_seeds, first_head):
    """The mixed values (batch, length, width).

    Args:
        sizes: a Sizes.
        arrays: a tuple of queries, keys and values, (batch, length, width) each, the heads side by side; or of one
            array (batch, length, 3 * width) that holds these one after another.
        sequence_ids: int32 (batch, 1, length); 0 is hidden with the masking "keys". With "sequences" each token that is
            padding has a number of its own.
        row_seeds: int32 (batch, 2), from `seeds_of_rows`.
        first_head: int32 (1,), the number of the first head among all chips.
    """
    blocks = Blocks(sizes, arrays)
    return blocks.call(
        _forward,
        [blocks.queries(0), blocks.keys(1), blocks.keys(2), blocks.ids()],
        out_specs=blocks.queries(0),
        out_shape=jax.ShapeDtypeStruct((*arrays[0].shape[:2], sizes.width), arrays[0].dtype),
        products=2,
        moved=4,
    )(first_head, row_seeds.reshape(-1), *blocks.three, sequence_ids)


def _attend_and_keep(sizes, arrays, sequence_ids, row_seeds, first_head):
    kept = arrays, sequence_ids, row_seeds, first_head
    return attend(sizes, *kept), kept


def _gradients(sizes, kept, mixed_gradient):
    arrays, sequence_ids, row_seeds, first_head = kept
    blocks = Blocks(sizes, arrays)
    columns = sizes.together * sizes.head_width
    gradients = blocks.call(
        _backward,
        [blocks.queries(0), blocks.keys(1), blocks.keys(2), blocks.gradients(), blocks.ids()],
        # A row's whole gradient stays in the chip until all heads have written their columns.
        out_specs=tuple(
            pl.BlockSpec((blocks.rows, blocks.length, array.shape[2]), lambda row, *_: (row, 0, 0)) for array in arrays
        ),
        out_shape=tuple(jax.ShapeDtypeStruct(array.shape, array.dtype) for array in arrays),
        scratch_shapes=[pltpu.VMEM((blocks.length, columns), jnp.float32)] * 2,
        products=5,
        moved=7,
    )(first_head, row_seeds.reshape(-1), *blocks.three, mixed_gradient, sequence_ids)
    return tuple(gradients), None, None, None


attend.defvjp(_attend_and_keep, _gradients)


class Blocks:
    """How the arrays are divided among the programs of a kernel: a grid of (rows, heads, queries)."""

    def __init__(self, sizes, arrays):
        self.sizes, self.dtype = sizes, arrays[0].dtype
        self.is_fused = len(arrays) == 1
        self.three = arrays * 3 if self.is_fused else arrays  # queries, keys, values
        self.batch, self.length, _ = arrays[0].shape
        self.query_count = min(self.length, max(LANES, SCORES // self.length // LANES * LANES))
        while self.length % self.query_count:
            self.query_count -= LANES
        # Short rows are computed several at a time: starting a program takes as long as computing one of 128 tokens.
        # A row in several blocks is alone, since its sums over blocks are kept between programs.
        most = max(1, 512 // self.length) if self.query_count == self.length else 1
        self.rows = max(count for count in range(1, most + 1) if self.batch % count == 0)
        self.groups = sizes.num_heads // sizes.together

    def queries(self, part):
        """The columns of some heads, of a block of queries, in the given one of the three."""
        return self._columns(self.query_count, lambda row, group, block: (row, block, self._first(part) + group))

    def gradients(self):
        """The same in an array of its own, (batch, length, width)."""
        return self._columns(self.query_count, lambda row, group, block: (row, block, group))

    def keys(self, part):
        """The same of the whole row."""
        return self._columns(self.length, lambda row, group, block: (row, 0, self._first(part) + group))

    def _first(self, part):
        return part * self.groups if self.is_fused else 0

    def _columns(self, length, place):
        # Pallas also passes the arrays of scalars.
        return pl.BlockSpec(
            (self.rows, length, self.sizes.together * self.sizes.head_width), lambda *indices: place(*indices[:3])
        )

    def ids(self):
        return pl.BlockSpec((self.rows, 1, self.length), lambda row, *_: (row, 0, 0))

    def call(self, kernel, in_specs, products, moved, scratch_shapes=(), **outputs):
        """The `pallas_call` of a kernel with so many matrix products, which moves so many (batch, length, width)."""
        scores = self.batch * self.sizes.num_heads * self.length**2
        size = self.batch * self.length * self.sizes.width * self.dtype.itemsize
        return pl.pallas_call(
            functools.partial(kernel, self.sizes, self.query_count),
            grid_spec=pltpu.PrefetchScalarGridSpec(
                num_scalar_prefetch=2,
                grid=(self.batch // self.rows, self.groups, self.length // self.query_count),
                in_specs=in_specs,
                out_specs=outputs.pop("out_specs"),
                scratch_shapes=scratch_shapes,
            ),
            compiler_params=pltpu.CompilerParams(
                dimension_semantics=("parallel", "arbitrary", "arbitrary"), vmem_limit_bytes=self.memory()
            ),
            cost_estimate=pl.CostEstimate(
                flops=2 * products * scores * self.sizes.head_width,
                transcendentals=scores,
                bytes_accessed=moved * size + 4 * self.batch * self.length,
            ),
            interpret=self.sizes.interpret,
            **outputs,
        )

    def memory(self):
        """Bytes of the chip's own memory that a program may take: its blocks, twice, and the scores."""
        row = self.rows * self.length * self.sizes.width * self.dtype.itemsize
        scores = 4 * self.length * self.query_count
        return 8 * MIB + 2 * 4 * row + 12 * scores


def _forward(sizes, query_count, first_head, row_seeds, query, key, value, ids, mixed):
    rows, first_row = key.shape[0], pl.program_id(0) * key.shape[0]
    group, block = pl.program_id(1), pl.program_id(2)

    def of_row(row, carry):
        visible = _visible(sizes, ids, row, block, query_count)
        for one in range(sizes.together):
            columns = pl.ds(one * sizes.head_width, sizes.head_width)
            values = value[row, :, columns]
            raised, total = _raised(sizes, query[row, :, columns], key[row, :, columns], visible)
            if sizes.dropout_rate:
                seeds = _seeds(row_seeds, first_row + row, first_head[0] + group * sizes.together + one)
                kept = _kept(seeds, sizes.dropout_rate, raised.shape, block)
                raised = jnp.where(kept, raised, 0.0)
            heads = _product(values, raised.astype(values.dtype), 0, 0)  # (head_width, queries)
            heads = heads * (1 / ((1 - sizes.dropout_rate) * total))
            mixed[row, :, columns] = heads.T.astype(mixed.dtype)
        return carry

    jax.lax.fori_loop(0, rows, of_row, 0)


def _backward(sizes, query_count, first_head, row_seeds, query, key, value, mixed_gradient, ids, *others):
    *gradients, keys_sum, values_sum = others
    # Of queries, keys and values: the array of their gradients, and its first column.
    if len(gradients) == 1:
        places = [(gradients[0], part * sizes.width) for part in range(3)]
    else:
        places = [(gradient, 0) for gradient in gradients]
    rows, first_row = key.shape[0], pl.program_id(0) * key.shape[0]
    group, block, last_block = pl.program_id(1), pl.program_id(2), pl.num_programs(2) - 1
    dtype, scale = key.dtype, 1 / math.sqrt(sizes.head_width)
    together = sizes.together * sizes.head_width

    def of_row(row, carry):
        visible = _visible(sizes, ids, row, block, query_count)

        @pl.when(block == 0)
        def _():
            keys_sum[...] = jnp.zeros_like(keys_sum)
            values_sum[...] = jnp.zeros_like(values_sum)

        query_gradients = []
        for one in range(sizes.together):
            columns = pl.ds(one * sizes.head_width, sizes.head_width)
            queries, keys, outer = query[row, :, columns], key[row, :, columns], mixed_gradient[row, :, columns]
            raised, total = _raised(sizes, queries, keys, visible)
            probabilities = raised * (1 / total)
            dropped, inner = probabilities, _product(value[row, :, columns], outer, 1, 1)  # (keys, queries)
            if sizes.dropout_rate:
                seeds = _seeds(row_seeds, first_row + row, first_head[0] + group * sizes.together + one)
                kept = _kept(seeds, sizes.dropout_rate, raised.shape, block)
                factor = jnp.where(kept, 1 / (1 - sizes.dropout_rate), 0.0)
                dropped, inner = probabilities * factor, inner * factor
            values_sum[:, columns] += _product(dropped.astype(dtype), outer, 1, 0)  # (keys, head_width)
            # The gradient of the softmax: p (g - sum over keys of p g).
            logits = probabilities * (inner - jnp.sum(probabilities * inner, axis=0, keepdims=True))
            logits = (logits * scale).astype(dtype)
            keys_sum[:, columns] += _product(logits, queries, 1, 0)
            query_gradients.append(_product(keys, logits, 0, 0))  # (head_width, queries)
        start = pl.multiple_of(group * together, LANES)
        is_whole = query_count == key.shape[1]
        at_queries = pl.ds(0 if is_whole else pl.multiple_of(block * query_count, LANES), query_count)
        (of_queries, first), *of_others = places
        columns = pl.ds(first + start, together)
        of_queries[row, at_queries, columns] = jnp.concatenate(query_gradients, axis=0).T.astype(dtype)

        @pl.when(block == last_block)
        def _():
            for (gradient, first), total in zip(of_others, (keys_sum, values_sum), strict=True):
                gradient[row, :, pl.ds(first + start, together)] = total[...].astype(dtype)

        return carry

    jax.lax.fori_loop(0, rows, of_row, 0)


def _product(left, right, left_axis, right_axis):
    """The matrix product over these axes, summed in float32."""
    return jax.lax.dot_general(
        left, right, (((left_axis,), (right_axis,)), ((), ())), preferred_element_type=jnp.float32
    )


def _raised(sizes, queries, keys, visible):
    """exp(logits - their maximum), (keys, queries), and its sum over keys, (1, queries), of one head."""
    queries = (queries.astype(jnp.float32) * (1 / math.sqrt(sizes.head_width))).astype(queries.dtype)
    logits = _product(keys, queries, 1, 1)
    if visible is not None:
        logits = jnp.where(visible, logits, MASKED_LOGIT)
    raised = jnp.exp(logits - jnp.max(logits, axis=0, keepdims=True))
    return raised, jnp.sum(raised, axis=0, keepdims=True)


def _visible(sizes, ids, row, block, query_count):
    """Which key (first axis) a query (second axis) sees: bool (keys, queries), (keys, 1), or None for all."""
    length, seen = ids.shape[2], None
    if sizes.masking != "none":
        of_keys = jnp.broadcast_to(ids[row], (LANES, length)).T[:, :1]  # (keys, 1)
    if sizes.masking == "keys":
        seen = of_keys > 0
    if sizes.masking == "sequences":
        is_whole = query_count == length  # whose length may be none that Pallas can find the place of
        start = 0 if is_whole else pl.multiple_of(block * query_count, LANES)
        of_queries = ids[row, :, pl.ds(start, query_count)]  # (1, queries)
        seen = of_keys == of_queries
    if sizes.window is not None:
        keys = jax.lax.broadcasted_iota(jnp.int32, (length, query_count), 0)
        queries = jax.lax.broadcasted_iota(jnp.int32, (length, query_count), 1) + block * query_count
        near = jnp.abs(keys - queries) <= sizes.window
        if sizes.masking == "keys":
            seen = jnp.logical_or(seen, keys == queries)
        seen = near if seen is None else jnp.logical_and(near, seen)
    return seen


def _kept(seeds, rate, shape, block):
    """Which units dropout keeps, bool (keys, queries), of one head and one block of queries."""
    query = jax.lax.broadcasted_iota(jnp.int32, shape, 1) + block * shape[1]
    key = jax.lax.broadcasted_iota(jnp.int32, shape, 0)
    return _is_kept(query * shape[0] + key, seeds, rate)


def _is_kept(unit, seeds, rate):
    """A random choice for each unit of a head, by a hash of 32 bits."""
    first, second = seeds
    # The second seed enters halfway: otherwise two heads would draw the same numbers in another order.
    return _mixed(unit ^ first, second) >= round(rate * 2**32) - 2**31  # signed


def _seeds(row_seeds, row, head):
    """The two seeds of a head, int32 scalars."""
    return _mixed(row_seeds[2 * row] + head), row_seeds[2 * row + 1] ^ head


def _mixed(bits, second_seed=0):
    """Bits of int32 mixed so that each bit of the input changes half of the output's ("lowbias32", Wellons 2018,
    https://nullprogram.com/blog/2018/07/31/)."""
    bits = bits ^ jax.lax.shift_right_logical(bits, jnp.int32(16))
    bits = bits * _signed(0x7FEB352D) + second_seed
    bits = bits ^ jax.lax.shift_right_logical(bits, jnp.int32(15))
    bits = bits * _signed(0x846CA68B)
    return bits ^ jax.lax.shift_right_logical(bits, jnp.int32(16))


def _signed(bits):
    return jnp.int32(bits - 2**32 if bits >= 2**31 else bits)


def seeds_of_rows(seed, batch):
    """int32 (batch, 2): two words for each row from a Keras seed, uint32 (2,)."""
    words = jax.lax.bitcast_convert_type(seed.astype(jnp.uint32), jnp.int32)
    rows = jnp.arange(batch, dtype=jnp.int32)
    return jnp.stack([_mixed(_mixed(rows, words[0]), words[1]), _mixed(_mixed(rows, words[1]), words[0] + 1)], axis=1)


def kept_units(seed, batch, num_heads, length, rate):
    """The units that the kernels keep, bool (batch, heads, queries, keys), for comparison with the plain form."""
    row_seeds = seeds_of_rows(seed, batch).reshape(-1)
    rows, heads = jnp.arange(batch)[:, None, None, None], jnp.arange(num_heads, dtype=jnp.int32)[:, None, None]
    units = jnp.arange(length**2, dtype=jnp.int32).reshape(length, length)
    return _is_kept(units, _seeds(row_seeds, rows, heads), rate)
