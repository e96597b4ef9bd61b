"""Characters and bytes of strings in TensorFlow graphs."""

import functools
import sys

from keras_bert_impl.quiet_tensorflow import tf


def readable(texts: tf.Tensor) -> tf.Tensor:
    """Strings without the bytes that are not UTF-8."""
    return tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="ignore")


def character_sizes(codes: tf.Tensor) -> tf.Tensor:
    """The number of bytes of each code point in UTF-8, int32."""
    return 1 + sum(tf.cast(codes >= least, tf.int32) for least in (0x80, 0x800, 0x10000))


def character_starts(codes: tf.Tensor) -> tf.Tensor:
    """The byte at which each character begins in UTF-8, and the number of all bytes: int32 (characters + 1,)."""
    return tf.concat([[0], tf.cumsum(character_sizes(codes))], axis=0)


@functools.cache
def _spaces() -> list[int]:
    return [code for code in range(sys.maxunicode + 1) if chr(code).isspace()]


def without_spaces(codes: tf.Tensor, first: tf.Tensor, after: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The first characters at or after `first` that are no white space, and the ends of the last ones before `after`,
    which are not after them if there is nothing but white space between; see `words.stripped_span`."""
    is_space = tf.reduce_any(codes[:, tf.newaxis] == tf.constant(_spaces()), axis=1)
    kept = tf.cast(tf.where(~is_space)[:, 0], tf.int32)  # ascending
    return (
        tf.gather(tf.concat([kept, [tf.size(codes)]], axis=0), tf.searchsorted(kept, first)),
        tf.gather(tf.concat([[0], kept + 1], axis=0), tf.searchsorted(kept, after)),
    )
