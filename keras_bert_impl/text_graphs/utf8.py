"""Characters and bytes of strings, and rows of what they are cut into, in TensorFlow graphs."""

from keras_bert_impl.text_graphs.quiet_tensorflow import tf


def readable(texts: tf.Tensor) -> tf.Tensor:
    """Strings without the bytes that are not UTF-8."""
    return tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="ignore")


def character_sizes(codes: tf.Tensor) -> tf.Tensor:
    """The number of bytes of each code point in UTF-8, int32."""
    return 1 + sum(tf.cast(codes >= least, tf.int32) for least in (0x80, 0x800, 0x10000))


def character_starts(codes: tf.Tensor) -> tf.Tensor:
    """The byte at which each character begins in UTF-8, and the number of all bytes: int32 (characters + 1,)."""
    return tf.concat([[0], tf.cumsum(character_sizes(codes))], axis=0)


def of_texts(parts: tf.RaggedTensor, pieces: tf.RaggedTensor) -> tf.RaggedTensor:
    """The pieces of parts, (all parts, pieces), as those of texts, whose parts are (batch, parts): (batch, pieces).

    RaggedTensor's `merge_dims` checks its rows besides, with a third of a tokenizer's nodes, which TensorFlow prepares
    anew for each pass over a dataset: half of the 50 ms before its first batch.
    """
    splits = tf.gather(pieces.row_splits, parts.row_splits)
    return tf.RaggedTensor.from_row_splits(pieces.flat_values, splits, validate=False)


def row_numbers(ragged: tf.RaggedTensor) -> tf.Tensor:
    """The row of each value, int64. `RaggedTensor.value_rowids` makes an array of all rows times the longest: of 4,000
    texts beside one of 120,000 characters 4 GB.
    """
    size = tf.shape(ragged.values, ragged.row_splits.dtype)[:1]
    ends = ragged.row_splits[1:]  # of which several are the same where rows are empty
    return tf.cumsum(tf.scatter_nd(ends[:, tf.newaxis], tf.ones_like(ends), size + 1))[:-1]
