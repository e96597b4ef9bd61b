"""Attention in long rows on a TPU, by JAX's own Splash kernel: what a window or another sequence hides is passed over.

`tpu.py` holds the gradient of a whole row in the chip's memory, which ends at MOST_TOKENS. Splash goes through the keys
by blocks, and does not compute those of which the window shows nothing. It knows no dropout, and no query that sees
nothing: where packed rows give it no number of its own, padding here sees padding.
"""

import math

import jax
import jax.numpy as jnp
from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel, splash_attention_mask

from keras_bert_impl.kernels.attention import tpu

BLOCK = 512  # queries, and keys, that are computed at a time
BLOCK_IN_WINDOW = 256  # fewer, so that a window of 129 tokens has less beside it that is computed and hidden


def is_for(length):
    """Whether rows are longer than the kernel of `tpu.py` takes them."""
    return length > (tpu.MOST_TOKENS if length % tpu.LANES == 0 else tpu.MOST_UNEVEN_TOKENS)


def attend(sizes, arrays, sequence_ids, row_seeds, first_head):
    """The mixed values (batch, length, width), of the arguments of `tpu.attend`; the dropout of `sizes` must be 0."""
    del row_seeds, first_head  # for dropout
    query, key, value = jnp.split(arrays[0], 3, axis=-1) if len(arrays) == 1 else arrays
    length, block = query.shape[1], BLOCK if sizes.window is None else BLOCK_IN_WINDOW
    more = -length % block

    def by_heads(array):
        """(batch, length, width) to (batch, heads, length, head_width), filled up to whole blocks."""
        array = jnp.pad(array, [(0, 0), (0, more), (0, 0)])
        return array.reshape(*array.shape[:2], sizes.num_heads, sizes.head_width).swapaxes(1, 2)

    query = query * (1 / math.sqrt(sizes.head_width))
    ids = jnp.pad(sequence_ids[:, 0], [(0, 0), (0, more)])  # (batch, length)
    kernel = _splash(sizes, length + more, block)
    mixed = jax.vmap(kernel)(*map(by_heads, (query, key, value)), splash_attention_kernel.SegmentIds(ids, ids))
    mixed = mixed.swapaxes(1, 2).reshape(len(query), length + more, sizes.width)
    return mixed[:, :length].astype(value.dtype)


def _splash(sizes, length, block):
    """Splash for rows of this length, on one chip."""
    square = (length, length)
    if sizes.window is None:
        mask = splash_attention_mask.FullMask(square)
    else:
        mask = splash_attention_mask.LocalMask(square, (sizes.window, sizes.window), 0)
    names = ("q", "kv", "kv_compute", "q_dkv", "kv_dkv", "kv_dkv_compute", "q_dq", "kv_dq")
    return splash_attention_kernel.make_splash_mha(
        splash_attention_mask.MultiHeadMask([mask] * sizes.num_heads),
        block_sizes=splash_attention_kernel.BlockSizes(**{f"block_{name}": block for name in names}),
        head_shards=1,
        q_seq_shards=1,
        interpret=sizes.interpret,
    )
