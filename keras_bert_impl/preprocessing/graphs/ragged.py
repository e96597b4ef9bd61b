"""Rows of what strings are cut into, in TensorFlow graphs, without the checks of RaggedTensor's own methods.

A `tf.concat` of rows beside ids makes 120 nodes and `merge_dims` 100, many of them checks. They take time in each call,
and TensorFlow prepares all nodes anew for each pass over a dataset: with WordPiece, these were half of what came before
the first batch.
"""

from keras_bert_impl.quiet_tensorflow import tf


def side_by_side(columns: list[tf.RaggedTensor | int]) -> tf.RaggedTensor:
    """The rows of columns joined, as `tf.concat(columns, axis=1)` joins them.

    Args:
        columns: RaggedTensors (rows, values), or an id that each row gets; at least one is no id.
    """
    count = next(column for column in columns if isinstance(column, tf.RaggedTensor)).nrows()
    values, starts, lengths, size = [], [], [], tf.constant(0, tf.int64)
    for column in columns:
        if not isinstance(column, tf.RaggedTensor):
            values.append(tf.constant([column], tf.int32))
            starts.append(tf.fill([count], size))
            lengths.append(tf.ones([count], tf.int64))
        else:
            values.append(column.values)
            starts.append(size + column.row_starts())
            lengths.append(column.row_lengths())
        size += tf.shape(values[-1], tf.int64)[0]
    starts, lengths = (tf.reshape(tf.stack(each, axis=1), [-1]) for each in (starts, lengths))
    joined = between(tf.concat(values, axis=0), starts, starts + lengths)  # (rows * columns, values)
    return tf.RaggedTensor.from_row_splits(joined.values, joined.row_splits[:: len(columns)], validate=False)


def between(values: tf.Tensor, begins: tf.Tensor, ends: tf.Tensor) -> tf.RaggedTensor:
    """`values[begin:end]` of each begin and end: a row each."""
    places = tf.ragged.range(begins, ends)
    return places.with_flat_values(tf.gather(values, places.flat_values))


def of_texts(parts: tf.RaggedTensor, pieces: tf.RaggedTensor) -> tf.RaggedTensor:
    """The pieces of parts, (all parts, pieces), as those of texts, whose parts are (batch, parts): (batch, pieces)."""
    splits = tf.gather(pieces.row_splits, parts.row_splits)
    return tf.RaggedTensor.from_row_splits(pieces.flat_values, splits, validate=False)


def row_numbers(ragged: tf.RaggedTensor) -> tf.Tensor:
    """The row of each value, int64. `RaggedTensor.value_rowids` makes an array of all rows times the longest: of 4,000
    texts beside one of 120,000 characters 4 GB.
    """
    size = tf.shape(ragged.values, ragged.row_splits.dtype)[:1]
    ends = ragged.row_splits[1:]  # of which several are the same where rows are empty
    return tf.cumsum(tf.scatter_nd(ends[:, tf.newaxis], tf.ones_like(ends), size + 1))[:-1]
