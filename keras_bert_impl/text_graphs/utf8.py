"""Characters and bytes of strings in TensorFlow graphs."""

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
