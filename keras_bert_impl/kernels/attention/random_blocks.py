"""Which blocks of a row see which others at random (Zaheer et al. 2020, "Big Bird", section 2), as drawn by
google-research/bigbird: by a seed, the number of the layer, so that a layer sees the same blocks in every row."""

import functools

import numpy as np

# Rows of these lengths see random blocks among the first OLD_REACH tokens, as the published models learnt
# (https://github.com/google-research/bigbird/issues/18).
OLD_LENGTHS = (1024, 2048, 3072, 4096)
OLD_LONGEST, OLD_REACH = 4096, 1024


@functools.cache
def random_blocks(seed, num_heads, blocks, size, count, is_old):
    """The blocks that each block but the first and the last one sees at random.

    Args:
        seed: the number of the layer.
        num_heads: attention heads, each of which draws for itself.
        blocks: of a row, more than 5 + 2 * count; the first rows of the result do not depend on it.
        size: tokens of a block.
        count: of random blocks.
        is_old: whether the row has one of OLD_LENGTHS.

    Returns: int32 (heads, blocks - 2, count).
    Raises: ValueError if there are fewer blocks to choose from than `count`.
    """
    random, draw = np.random.RandomState(seed), _of_old_lengths if is_old else _of_other_lengths
    found = draw(random, num_heads, blocks, size, count)
    found.flags.writeable = False  # it is kept for the next call
    return found


def _of_other_lengths(random, num_heads, blocks, size, count):
    reach = 5 + 2 * count  # the blocks to choose from; as many tokens are seen in whole rows
    found = np.zeros((num_heads, blocks - 2, count), "int32")
    for block in range(1, blocks - 1):
        hidden = {0, block - 1, block, block + 1, reach - 1}
        if block == 1:
            hidden.add(reach - 2)
        if block == reach - 2:
            hidden.add(1)
        for head in range(num_heads):
            found[head, block - 1] = [other for other in random.permutation(reach) if other not in hidden][:count]
    return found


def _of_old_lengths(random, num_heads, blocks, size, count):
    whole = OLD_LONGEST // size
    middle, last = np.arange(1, whole - 1), (OLD_REACH // size if OLD_REACH > 2 * size else whole) - 1
    # All blocks of the longest row draw, whatever the length: otherwise all heads but the first drew other blocks.
    found = np.zeros((num_heads, max(blocks, whole) - 2, count), "int32")
    for head in range(num_heads):
        for block in range(1, whole - 1):
            if block < whole - 3:
                choice = np.concatenate([middle[: min(max(0, block - 2), last)], middle[block + 1 : last]])
            else:
                choice = middle[:last]  # their neighbours, too, in Google's code
            if len(choice) < count:
                raise ValueError(
                    f"block_size {size} is too large for num_random_blocks {count}: in sequences of "
                    f"{', '.join(map(str, OLD_LENGTHS))} tokens, only {len(choice)} blocks can be drawn for block "
                    f"{block}. Reduce block_size or num_random_blocks, or set random_blocks='first_block'."
                )
            found[head, block - 1] = random.permutation(choice)[:count]
    return found[:, : blocks - 2]
