"""Global tokens (Beltagy et al. 2020, "Longformer", section 3.1): their vectors, and rows in which theirs stand."""

from keras import ops

from keras_bert_impl.kernels.gather import gather


def at_places(vectors, places):
    """The vectors (batch, length, width) at the places (batch, count) of the global tokens; those of the first place
    where there is none."""
    return gather(vectors, ops.maximum(places, 0))


def with_global_rows(rows, of_global, places):
    """Rows (batch, length, width), of which those at `places` are the vectors `of_global` (batch, count, width)."""
    length = ops.shape(rows)[1]
    is_here = ops.equal(ops.expand_dims(places, -1), ops.arange(length, dtype="int32"))  # (batch, count, length)
    numbers = ops.expand_dims(ops.arange(places.shape[1], dtype="int32"), -1)
    slots = ops.sum(ops.where(is_here, numbers, 0), axis=1)  # (batch, length), 0 where there is none
    is_global = ops.expand_dims(ops.any(is_here, axis=1), -1)
    return ops.where(is_global, gather(of_global, slots), rows)


def with_global_queries(probabilities, of_global, places):
    """Probabilities (batch, heads, length, length), of which those of the queries at `places` are `of_global` (batch,
    heads, count, length)."""
    heads, length = probabilities.shape[1], ops.shape(probabilities)[2]

    def as_rows(array):
        """(batch, heads, queries, length) to (batch, queries, heads * length)."""
        array = ops.transpose(array, (0, 2, 1, 3))
        return ops.reshape(array, (-1, ops.shape(array)[1], heads * length))

    rows = with_global_rows(as_rows(probabilities), as_rows(of_global), places)
    return ops.transpose(ops.reshape(rows, (-1, length, heads, length)), (0, 2, 1, 3))
