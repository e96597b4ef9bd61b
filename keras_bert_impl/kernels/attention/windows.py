"""Attention within a window, in memory linear in the length: blocks of queries, each with the keys beside it.

A block is as long as the window reaches to one side, so that its keys are those of three blocks. (Beltagy et al. 2020,
"Longformer", section 3.1, has blocks of twice the size that overlap by half.) With rows of a few blocks the whole
square of queries and keys is as small: there the other forms stay. Global keys, which queries see beyond the window,
stand behind the keys of each block.
"""

import keras
from keras import ops

from keras_bert_impl.kernels.attention.plain import are_places, by_ops
from keras_bert_impl.kernels.gather import gather
from keras_bert_impl.kernels.padding import padded

FEWEST_BLOCKS = 4


def suits(inputs):
    """Whether an AttentionInputs can be computed by blocks, and is so long that it pays."""
    if inputs.window is None or inputs.bias is not None:
        return False
    # A mask with a row for each query, and not from the numbers of sequences, cannot be cut into blocks.
    if inputs.mask is not None and inputs.sequence_ids is None and tuple(inputs.mask.shape[1:3]) != (1, 1):
        return False
    length = inputs.query.shape[1]
    # In a graph of TensorFlow it is None, in one that torch exports a symbol: any length may come.
    return not isinstance(length, int) or length >= FEWEST_BLOCKS * max(1, inputs.window)


def by_blocks(inputs, attend=by_ops):
    """The mixed values (batch, length, width) of an AttentionInputs that `suits`; each block of queries becomes a row
    of its own, with its keys and a mask, which the form `attend` computes."""
    length, size = ops.shape(inputs.query)[1], max(1, inputs.window)
    begin, end = 0, 3 * size  # of the keys of a block, in those of three
    if keras.backend.backend() == "tensorflow" and not isinstance(length, int):
        # In a graph of any length, a row that is too short for blocks is one block, which nothing is beside.
        is_short = length < FEWEST_BLOCKS * size
        size = ops.where(is_short, ops.maximum(1, length), size)
        begin, end = ops.where(is_short, size, 0), ops.where(is_short, 2, 3) * size
    blocks = (length + size - 1) // size  # ONNX rounds the quotient of a negative number otherwise

    def in_blocks(array):
        """(batch, length, ...) to (batch, blocks, size, ...), filled up with zeros."""
        rest = array.shape[2:]
        return ops.reshape(padded(array, 0, blocks * size - length), (-1, blocks, size, *rest))

    def with_neighbours(array):
        """(batch, blocks, size, ...) to (batch, blocks, keys, ...), zeros beside the first and the last block."""
        wide = padded(array, 1, 1)
        return ops.concatenate([wide[:, :-2], wide[:, 1:-1], wide[:, 2:]], axis=2)[:, :, begin:end]

    def as_rows(array):
        """(batch, blocks, ...) to (batch * blocks, ...)."""
        return ops.reshape(array, (-1, *ops.shape(array)[2:]))

    # A key's place in its three blocks, less that of the query in the second.
    places = ops.arange(3 * size, dtype="int32")
    distance = ops.expand_dims(places[begin:end], 0) - size - ops.expand_dims(places[:size], 1)
    near = ops.less_equal(ops.abs(distance), inputs.window)  # (size, keys)
    of_row, places = numbers_of(inputs), inputs.global_places
    numbers = ops.expand_dims(in_blocks(of_row), 3)  # (batch, blocks, size, 1)

    def seen(of_keys):
        """Which keys a block's queries see, by the numbers of the keys: (batch, 1 or blocks, 1, keys) to bool."""
        return ops.logical_and(
            ops.greater(of_keys, 0), True if inputs.sequence_ids is None else ops.equal(of_keys, numbers)
        )

    local = of_row if places is None else ops.where(are_places(places, length), 0, of_row)
    mask = ops.logical_and(seen(ops.expand_dims(with_neighbours(in_blocks(local)), 2)), near)
    # Padding sees itself, too.
    mask = ops.logical_or(mask, ops.logical_and(ops.equal(numbers, 0), ops.equal(distance, 0)))
    key, value = (with_neighbours(in_blocks(array)) for array in (inputs.key, inputs.value))
    if places is not None:
        here = ops.maximum(places, 0)

        def with_global(array, of_row):
            """(batch, blocks, keys, width) with the vectors of the global keys behind those of each block."""
            found = ops.expand_dims(gather(of_row, here), 1)
            return ops.concatenate([array, ops.broadcast_to(found, (ops.shape(array)[0], blocks, *found.shape[2:]))], 2)

        of_global = ops.cast(gather(ops.cast(ops.expand_dims(of_row, -1), "float32"), here), "int32")[..., 0]
        of_global = ops.expand_dims(ops.where(places < 0, 0, of_global), (1, 2))
        far = ops.broadcast_to(seen(of_global), (*ops.shape(mask)[:3], places.shape[1]))
        mask = ops.concatenate([mask, far], axis=3)
        key, value = with_global(key, inputs.key), with_global(value, inputs.value)
    mixed = attend(
        inputs._replace(
            query=as_rows(in_blocks(inputs.query)),
            key=as_rows(key),
            value=as_rows(value),
            mask=ops.expand_dims(as_rows(mask), 1),  # (batch * blocks, 1, size, keys)
            window=None,
            sequence_ids=None,
            fused=None,
            global_places=None,
        )
    )
    return ops.reshape(mixed, (-1, blocks * size, inputs.query.shape[-1]))[:, :length]


def numbers_of(inputs):
    """int32 (batch, length): 0 for keys that no query sees; of the others the number of their sequence, or 1."""
    batch, length = ops.shape(inputs.query)[0], ops.shape(inputs.query)[1]
    if inputs.sequence_ids is not None:
        # Whether a token sees itself: padding does not. Plus 1, since tokens of the number 0 may see each other.
        is_token = ops.diagonal(inputs.mask[:, 0], axis1=1, axis2=2)
        return ops.where(is_token, ops.cast(inputs.sequence_ids, "int32") + 1, 0)
    if inputs.mask is None:
        return ops.ones((batch, length), "int32")
    return ops.broadcast_to(ops.cast(inputs.mask[:, 0, 0], "int32"), (batch, length))
