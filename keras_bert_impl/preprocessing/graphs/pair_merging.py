"""Finds words that are one piece of a vocabulary, and merges the pieces of others, in a TensorFlow graph."""

import numpy as np

from keras_bert_impl.quiet_tensorflow import tf

NEVER = np.iinfo(np.int32).max
BUCKETS = 1 << 15  # with at most eight of RoBERTa's merges
FACTORS = np.array([0x9E3779B1, 0x85EBCA6B], np.uint32).view(np.int32)
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


class PairMerging(tf.Module):
    """Byte-pair encoding (Sennrich et al. 2016) of many words at once: in each round every word's most important pair.

    The pieces of a word are a chain: each knows the places of the one before and the one after it, and how important
    the pair is that begins with it, which changes only beside a merge.

    Args:
        merges: (first, second, merged) ids, the most important first.

    Input:  ids, int32 (pieces,), and the word of each, int32 (pieces,), ascending from 0 without gaps.
    Output: int32 (pieces,): where a piece begins its id, elsewhere -1.
    """

    def __init__(self, merges: list[tuple[int, int, int]]):
        super().__init__(name="pair_merging")
        self._ranks = PairTable([(first, second) for first, second, _ in merges])
        self._merged = tf.constant([*(merged for *_, merged in merges), 0], tf.int32)
        self._one_by_one = not _are_in_order(merges)

    def __call__(self, ids: tf.Tensor, words: tf.Tensor) -> tf.Tensor:
        size = tf.size(ids)
        at, end, first = tf.range(size), size[tf.newaxis], tf.fill([tf.minimum(size, 1)], size)
        goes_on = words[1:] == words[:-1]
        # The last entry of all four is that of `size`, which is no piece and stands beyond both ends of each word.
        left = tf.concat([first, tf.where(goes_on, at[:-1], size), end], axis=0)
        right = tf.concat([tf.where(goes_on, at[1:], size), first, end], axis=0)
        ids = tf.concat([ids, [-1]], axis=0)
        ranks = self._ranks(ids, tf.gather(ids, right))

        def merge_once(ids, left, right, ranks):
            first = self._most_important(ranks[:-1], words, right)
            second = tf.gather(right, first)
            after = tf.gather(right, second)
            merged = tf.gather(self._merged, tf.gather(ranks, first))
            ids = _with(ids, (first, second), (merged, tf.fill(tf.shape(second), -1)))
            left, right = _with(left, (after,), (first,)), _with(right, (first,), (after,))
            starts = tf.concat([tf.gather(left, first), first], axis=0)  # of the pairs with what was merged
            changed = self._ranks(tf.gather(ids, starts), tf.gather(ids, tf.gather(right, starts)))
            ranks = _with(ranks, (second, starts), (tf.fill(tf.shape(second), NEVER), changed))
            return ids, left, right, ranks

        found = tf.while_loop(lambda *state: tf.reduce_min(state[-1]) < NEVER, merge_once, (ids, left, right, ranks))
        return found[0][:-1]

    def _most_important(self, ranks, words, right):
        """Where the pairs begin that are merged in this round, ascending."""
        best = tf.gather(tf.math.segment_min(ranks, words), words)
        places = tf.cast(tf.where((ranks == best) & (ranks < NEVER))[:, 0], tf.int32)
        if self._one_by_one:
            return tf.boolean_mask(places, _differs_from_last(tf.gather(words, places)))
        # Of a a a, the first two: pairs that overlap are every second one merged.
        number = tf.range(tf.size(places))
        before = tf.concat([[-1], tf.gather(right, places)], axis=0)[:-1]
        is_start = before != places
        starts = tf.boolean_mask(number, is_start)
        is_even = (number - tf.gather(starts, tf.cumsum(tf.cast(is_start, tf.int32)) - 1)) % 2 == 0
        return tf.boolean_mask(places, is_even)


class PairTable(tf.Module):
    """The places of pairs in a list; NEVER for pairs that are not in it, as those with -1 never are.

    Each pair is in a bucket, whose pairs are all compared.
    """

    def __init__(self, pairs: list[tuple[int, int]]):
        super().__init__(name="pair_table")
        first, second = np.array(pairs, np.int32).reshape(-1, 2).T
        buckets = _bucket(first, second)
        order = np.argsort(buckets, kind="stable")
        counts = np.bincount(buckets, minlength=BUCKETS)
        column = np.arange(len(pairs)) - np.repeat(np.cumsum(counts) - counts, counts)
        found = np.full((3, BUCKETS, max(1, counts.max())), NEVER, np.int32)
        found[:, buckets[order], column] = first[order], second[order], order
        self._first, self._second, self._places = map(tf.constant, found)  # (buckets, pairs of a bucket)

    def __call__(self, first: tf.Tensor, second: tf.Tensor) -> tf.Tensor:
        bucket = _bucket(first, second)
        same = tf.gather(self._first, bucket) == first[:, tf.newaxis]
        same &= tf.gather(self._second, bucket) == second[:, tf.newaxis]
        return tf.reduce_min(tf.where(same, tf.gather(self._places, bucket), NEVER), axis=1)


def _bucket(first, second):
    """The bucket of each pair; products overflow in the same way in NumPy and in TensorFlow."""
    mixed = first * FACTORS[0] + second * FACTORS[1]
    return (mixed >> 12 if isinstance(mixed, np.ndarray) else tf.bitwise.right_shift(mixed, 12)) & (BUCKETS - 1)


def _are_in_order(merges):
    """Whether all equally important pairs of a word may be merged at once, since none with the result of a merge is
    more important than the merge: each piece is made by one merge, before those that it is a part of."""
    made = {merged: rank for rank, (*_, merged) in enumerate(merges)}
    return len(made) == len(merges) and all(
        made.get(part, -1) < rank for rank, (*parts, _) in enumerate(merges) for part in parts
    )


def _differs_from_last(values):
    first = tf.fill([tf.minimum(tf.size(values), 1)], True)
    return tf.concat([first, values[1:] != values[:-1]], axis=0)


def _with(array, places, values):
    """An array with other values at these places, both in several parts."""
    return tf.tensor_scatter_nd_update(array, tf.concat(places, axis=0)[:, tf.newaxis], tf.concat(values, axis=0))
