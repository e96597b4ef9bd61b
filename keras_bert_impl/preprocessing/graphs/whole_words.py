"""Finds words that are one piece of a vocabulary, in a TensorFlow graph."""

import numpy as np

from keras_bert_impl.quiet_tensorflow import tf

SLOTS = 1 << 19  # ten times the pieces of RoBERTa's vocabulary
PLACES = 64  # of a byte in a word that the hash tells apart


class WholeWords(tf.Module):
    """The ids of words that are one piece, which nine words of ten are.

    A hash of a word's bytes selects one piece, whose bytes are then compared with the word's: no other word is ever
    taken for it. Of pieces with the same hash only the first is found, so that the caller has to be able to cut any
    word.

    Args:
        pieces: ids by the bytes of each piece, the most frequent first.

    Input:  the bytes of all words, int32 (bytes,); the word of each, int32 (bytes,), ascending from 0 without gaps; and
        where each word begins, int32 (words,).
    Output: ids, int32 (words,); -1 for those that are not found.
    """

    def __init__(self, pieces: dict[bytes, int]):
        super().__init__(name="whole_words")
        drawn = np.random.default_rng(0).integers(0, SLOTS, PLACES * 256, np.int32)
        # One piece first that is no word's, for slots without any.
        texts = [b"\0", *pieces]
        lengths = np.array([0, *map(len, pieces)], np.int32)
        starts = np.cumsum([1, *lengths[1:]], dtype=np.int32) - [1, *lengths[1:]]
        content = np.frombuffer(b"".join(texts), np.uint8).astype(np.int32)
        place = np.arange(len(content)) - np.repeat(starts, [1, *lengths[1:]])
        hashes = np.add.reduceat(drawn[place % PLACES * 256 + content], starts) % SLOTS
        slots = np.zeros(SLOTS, np.int32)
        slots[hashes[:0:-1]] = np.arange(len(pieces), 0, -1)  # the first of several is written last
        self._drawn, self._slots = tf.constant(drawn), tf.constant(slots)
        self._lengths, self._starts = tf.constant(lengths), tf.constant(starts, tf.int32)
        self._content = tf.constant(content)
        self._ids = tf.constant([-1, *pieces.values()], tf.int32)

    def __call__(self, content: tf.Tensor, word: tf.Tensor, begins: tf.Tensor) -> tf.Tensor:
        size = tf.size(content)
        at = tf.range(size)
        place = tf.bitwise.bitwise_and(at - tf.gather(begins, word), PLACES - 1)
        hashes = tf.math.segment_sum(tf.gather(self._drawn, place * 256 + content), word)
        piece = tf.gather(self._slots, tf.bitwise.bitwise_and(hashes, SLOTS - 1))
        lengths = tf.concat([begins[1:], size[tf.newaxis]], axis=0) - begins
        # A longer word than the piece would be compared with what follows it.
        same = tf.minimum(at + tf.gather(tf.gather(self._starts, piece) - begins, word), tf.size(self._content) - 1)
        differences = tf.math.segment_max(tf.cast(tf.gather(self._content, same) != content, tf.int32), word)
        is_found = (differences == 0) & (tf.gather(self._lengths, piece) == lengths)
        return tf.where(is_found, tf.gather(self._ids, piece), -1)
