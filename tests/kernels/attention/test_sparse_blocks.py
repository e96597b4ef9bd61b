"""Attention between blocks is the plain form with weights by how often a key is seen; random blocks are Google's."""

import numpy as np
import pytest
from gradients import outputs_and_gradient
from keras import ops
from tiers import every_backend, full_but, once

from keras_bert_impl.kernels.attention import attend_sparsely, by_ops, with_counts
from keras_bert_impl.kernels.attention.plain import AttentionInputs
from keras_bert_impl.kernels.attention.random_blocks import OLD_LENGTHS, random_blocks
from keras_bert_impl.kernels.attention.sparse_blocks import SparseBlocks

# Blocks of four tokens, one or two random ones: rows of more than 28 or 36 tokens.
LAYOUTS = {
    "seeded": SparseBlocks(4, 1, 3, 64),
    "first_block": SparseBlocks(4, 2, None, 64),
    "none": SparseBlocks(4, 0, 0, 64),
}
every_layout = pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)


def inputs_of(length, hidden=()):
    """Two rows, of which the second lacks the tokens at `hidden`; and which tokens are real."""
    random, real = np.random.default_rng(length), np.ones((2, length), bool)
    real[1, list(hidden)] = False
    arrays = [ops.convert_to_tensor(random.normal(size=(2, length, 12)).astype("float32")) for _ in range(3)]
    return AttentionInputs(*arrays, 3, ops.convert_to_tensor(real[:, None, None])), real


@every_backend
@pytest.mark.parametrize("name", full_but(LAYOUTS, "seeded", on=("tensorflow", "jax")))
@pytest.mark.parametrize(
    ("length", "hidden"),
    full_but(
        [(37, ()), (40, range(34, 40)), (41, range(6)), (53, [3, 4, 5, 6, 7, 30]), (64, range(64))],
        (53, [3, 4, 5, 6, 7, 30]),
        on=("tensorflow", "jax"),
    ),
)
def test_values_are_those_of_the_plain_form_and_padding_sees_nothing(name, length, hidden):
    (inputs, real), layout = inputs_of(length, hidden), LAYOUTS[name]
    found, expected = (
        ops.convert_to_numpy(one) for one in (attend_sparsely(inputs, layout), by_ops(with_counts(inputs, layout)))
    )
    np.testing.assert_allclose(found[real], expected[real], atol=1e-5)
    assert np.isfinite(found).all() and not found[~real].any()


@every_layout
def test_each_block_sees_its_own_blocks_and_those_twice_that_are_named_twice(layout):
    """Equal keys have equal shares; values that are one-hot in a width of the length show them."""
    inputs, length, size = inputs_of(42)[0], 42, 4
    zeros = ops.zeros((2, length, 3 * length))
    values = ops.convert_to_tensor(np.tile(np.eye(length, dtype="float32"), (2, 1, 3)))
    found = attend_sparsely(inputs._replace(query=zeros, key=zeros, value=values), layout)
    shares = ops.convert_to_numpy(found).reshape(2, length, 3, length)
    random = None if layout.seed is None else random_blocks(layout.seed, 3, 11, size, layout.num_random, False)
    for head in range(3):
        for query in range(length):
            block, seen = query // size, list(range(11))
            if 0 < block < 10:
                seen = [0, 10, *(one for one in (block - 1, block, block + 1) if 0 < one < 10)]
                seen += [0] * layout.num_random if random is None else list(random[head, block - 1])
            counts = np.array([seen.count(key // size) for key in range(length)])
            np.testing.assert_allclose(shares[0, query, head], counts / counts.sum(), atol=1e-6)


@every_layout
def test_gradients_are_those_of_the_plain_form(layout):
    fused = np.random.default_rng(0).normal(size=(2, 41, 18)).astype("float32")

    def gradient(form):
        def attended(fused):
            return form(AttentionInputs(*ops.split(fused, 3, axis=-1), 3), layout)

        return outputs_and_gradient(attended, fused)[1]

    found, expected = map(gradient, (attend_sparsely, lambda inputs, layout: by_ops(with_counts(inputs, layout))))
    assert np.abs(expected).max() > 1e-3
    np.testing.assert_allclose(found, expected, atol=1e-5)


def of_transformers(seed, heads, length, size, count, max_length=4096):
    """The random blocks of a layer of transformers while it is trained."""
    transformers = pytest.importorskip("transformers")
    from transformers.models.big_bird.modeling_big_bird import BigBirdBlockSparseAttention

    config = transformers.BigBirdConfig(
        hidden_size=4 * heads, num_attention_heads=heads, block_size=size, num_random_blocks=count
    )
    layer = BigBirdBlockSparseAttention(config, seed).train()
    np.random.seed(seed)
    if length in (1024, 3072, 4096):
        rows = [layer._bigbird_block_rand_mask(max_length, max_length, size, size, count, 1024) for _ in range(heads)]
        return np.stack(rows)[:, : length // size - 2]
    lengths, counts = layer._get_rand_attn_plan(length, size, count)
    return np.stack(layer._bigbird_block_rand_mask_with_head(length, length, size, size, heads, lengths, counts))


@once
@pytest.mark.parametrize(
    ("length", "size", "count"),
    [
        *((length, 64, 3) for length in (768, 1024, 1088, 3072, 4096, 8192)),
        *((4096, 16, 3), (3072, 48, 2), (1024, 64, 5), (960, 32, 4)),
    ],
)
@pytest.mark.parametrize("seed", [0, 11])
def test_random_blocks_are_those_of_transformers_in_training(length, size, count, seed):
    found = random_blocks(seed, 3, length // size, size, count, length in OLD_LENGTHS)
    np.testing.assert_array_equal(found, of_transformers(seed, 3, length, size, count))


@once
def test_rows_of_2048_tokens_see_the_random_blocks_of_longer_ones_as_in_googles_code():
    """In transformers they have those of other lengths."""
    two, four = (random_blocks(5, 2, blocks, 64, 3, True) for blocks in (32, 64))
    np.testing.assert_array_equal(two, four[:, :30])
    assert 2048 in OLD_LENGTHS and two.max() == 15


@once
def test_blocks_are_seeded_by_the_layer_and_differ_between_heads():
    one, two = (random_blocks(seed, 4, 32, 64, 3, False) for seed in (0, 1))
    assert (one != two).any() and (one[0] != one[1]).any()


@once
def test_too_few_blocks_to_choose_from_are_an_error_with_a_remedy():
    message = (
        r"block_size 256 is too large .* sequences of 1024, .* only 1 blocks .*, or set random_blocks='first_block'"
    )
    with pytest.raises(ValueError, match=message):
        random_blocks(0, 1, 16, 256, 3, True)
