"""Turns text into ids of RoBERTa's byte-level BPE inside a TensorFlow graph, for SavedModel."""

import functools
import itertools

import numpy as np
from tokenizers import Regex, pre_tokenizers

from keras_bert_impl.text_graphs.character_table import CODE_POINTS, CodePointTable
from keras_bert_impl.text_graphs.masked_texts import joined_by_masks, parts_between_masks
from keras_bert_impl.text_graphs.quiet_tensorflow import tf
from keras_bert_impl.text_graphs.utf8 import character_sizes, character_starts, readable
from keras_bert_impl.tokenizers import BytePairTokenizer
from keras_bert_impl.tokenizers.byte_pair_vocabulary import SPACE, byte_tokens

# Kinds of characters, as the regular expression of byte-level BPE tells them apart.
NONE, OTHER, LETTER, NUMBER, WHITE = range(5)
PATTERNS = {LETTER: r"\p{L}", NUMBER: r"\p{N}", WHITE: r"\s"}
BLANK, APOSTROPHE = ord(" "), ord("'")
CONTRACTIONS = ("s", "t", "re", "ve", "m", "ll", "d")
SURROGATES, PAGE = range(0xD800, 0xE000), 256
NEVER = np.iinfo(np.int32).max
# White space as the `tokenizers` library strips it before a mask.
BEFORE_MASK = r"[\t-\r \x{85}\p{Z}]+$"


class BytePairs(tf.Module):
    """The ids of a BytePairTokenizer, computed by TensorFlow operations on the numbers of characters and pieces.

    Bytes that are not UTF-8 are ignored. Vocabulary and merges become constants of the graph; a SavedModel needs no
    file beside it.

    Args:
        tokenizer: provides vocabulary, merges and whether a text gets a space before it.

    Input:  (batch,) strings.
    Output: (batch, pieces) RaggedTensor of int32, without control tokens.
    Raises: ValueError if a merge comes before the merge that makes one of its parts.
    """

    def __init__(self, tokenizer: BytePairTokenizer):
        super().__init__(name="byte_pairs")
        self.tokenizer = tokenizer
        self._kind = CodePointTable(_kinds())
        ids = {token: index for index, token in enumerate(tokenizer.vocabulary)}
        self._of_byte = tf.constant([ids.get(token, tokenizer.unk_id) for token in byte_tokens()], tf.int32)
        pairs, ranks, merged = _merge_table(tokenizer.merges, ids)
        self._is_ambiguous = len(set(merged)) < len(merged)
        # One pair more, so that there is one to look at where there are no merges.
        self._pairs = tf.constant([*pairs, np.iinfo(np.int64).max], tf.int64)  # ascending
        self._ranks, self._merged = tf.constant([*ranks, NEVER], tf.int32), tf.constant([*merged, 0], tf.int32)
        self._leading = tf.constant([len(token) - len(token.lstrip(SPACE)) for token in ids], tf.int32)
        self._trailing = tf.constant([len(token) - len(token.rstrip(SPACE)) for token in ids], tf.int32)

    def __call__(self, texts: tf.Tensor) -> tf.RaggedTensor:
        texts = readable(tf.convert_to_tensor(texts, tf.string))
        characters, _ = self._with_prefix(tf.strings.unicode_decode(texts, "UTF-8"))
        ids, first, _ = self._pieces(characters)
        rows = tf.gather(characters.value_rowids(), first)
        return tf.RaggedTensor.from_value_rowids(ids, rows, characters.nrows(), validate=False)

    def of_words(self, words: tf.RaggedTensor) -> tf.RaggedTensor:
        """The pieces of each word of each text, (batch, words) strings, as in running text: (all words, pieces)."""
        is_first = tf.gather(words.row_starts(), words.value_rowids()) == tf.range(tf.size(words.flat_values, tf.int64))
        return self(tf.where(is_first, words.flat_values, tf.strings.join([" ", words.flat_values])))

    def with_masks(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """As `__call__`, but each of the tokenizer's `mask_texts` in a text is the mask token, with the white space
        before it."""
        parts = parts_between_masks(texts, self.tokenizer.mask_texts)
        place = tf.range(tf.size(parts.flat_values, tf.int64))
        is_last = tf.gather(parts.row_limits(), parts.value_rowids()) == place + 1
        stripped = tf.strings.regex_replace(readable(parts.flat_values), BEFORE_MASK, "")
        pieces = self(tf.where(is_last, parts.flat_values, stripped))  # (all parts, pieces)
        return joined_by_masks(parts, pieces, self.tokenizer.mask_id)

    def with_offsets(self, text: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Of one text in valid UTF-8, a () string: ids, first byte of each, and the byte after its last, as the
        tokenizer's `offsets` are; int32 (pieces,)."""
        codes = tf.strings.unicode_decode(text[tf.newaxis], "UTF-8")
        characters, prefix = self._with_prefix(codes)
        ids, first, last = self._pieces(characters)
        begin, end = tf.maximum(first - prefix[0], 0), last + 1 - prefix[0]
        # Spaces at the ends of a piece are not among its characters, but for one that was put before the text.
        leading = tf.gather(self._leading, ids)
        if self.tokenizer.add_prefix_space:
            is_first = (tf.range(tf.size(ids)) == 0) | (begin == 0)
            leading = tf.where(is_first, tf.maximum(leading - 1, 0), leading)
        begin = tf.minimum(begin + leading, end)
        end = tf.maximum(end - tf.gather(self._trailing, ids), begin)
        starts = character_starts(codes.flat_values)
        return ids, tf.gather(starts, begin), tf.gather(starts, end)

    def _with_prefix(self, characters):
        """The characters (batch, characters) behind the space that a text gets before it, unless it begins with one or
        is empty, and how many spaces each gets, int32 (batch,)."""
        if not self.tokenizer.add_prefix_space:
            return characters, tf.zeros([characters.nrows()], tf.int32)
        count = tf.cast(characters.to_tensor(BLANK, shape=(None, 1))[:, 0] != BLANK, tf.int32)
        spaces = tf.RaggedTensor.from_row_lengths(tf.fill([tf.reduce_sum(count)], BLANK), tf.cast(count, tf.int64))
        return tf.concat([spaces, characters], axis=1), count

    def _pieces(self, characters):
        """The pieces of all texts: ids, and the numbers of the first and last character of each, int32 (pieces,)."""
        codes, rows = characters.flat_values, characters.value_rowids()
        sizes = character_sizes(codes)
        character = tf.repeat(tf.range(tf.size(codes)), sizes)  # of each byte
        place = tf.range(tf.size(character)) - tf.gather(character_starts(codes), character)
        ids = tf.gather(self._of_byte, _bytes(tf.gather(codes, character), tf.gather(sizes, character), place))
        words = tf.cumsum(tf.cast(self._word_starts(codes, rows), tf.int32))
        return self._merge(ids, tf.gather(words, character), character)

    def _word_starts(self, codes, rows):
        """Which characters begin a word, number, punctuation or white space, of which only its own pieces are merged:

        's|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+
        """
        kind = self._kind(codes)
        is_first = _moved(rows, 1, -1) != rows
        is_last = _moved(is_first, -1, True)
        before, after = (
            tf.where(is_end, NONE, _moved(kind, by, NONE)) for is_end, by in ((is_first, 1), (is_last, -1))
        )
        is_white, follows_blank = kind == WHITE, ~is_first & (_moved(codes, 1, 0) == BLANK)
        # Of white space before a word, the last character is by itself, and a blank goes with the word.
        starts = tf.where(
            is_white,
            (before != WHITE) | ((after != WHITE) & ~is_last),
            (kind != before) & ~follows_blank,
        )
        is_apostrophe = starts & (codes == APOSTROPHE)
        for contraction in CONTRACTIONS:
            is_here = is_apostrophe
            for distance, letter in enumerate(contraction, start=1):
                is_here &= (_moved(codes, -distance, 0) == ord(letter)) & (_moved(rows, -distance, -1) == rows)
            starts &= ~_moved(is_here, 1, False)
            starts |= _moved(is_here, len(contraction) + 1, False)
        return starts

    def _merge(self, ids, words, characters):
        """Merges the bytes of all words at once: in each round the most important pair of each word, wherever it is.

        This is what comes out of merging one pair at a time, from left to right, since pairs with the result of a merge
        are less important (`_merge_table` checks it). If two merges make the same piece, they may be more important
        than the second of these, and a word's pairs are merged one by one.
        """

        def merge_once(ids, words, first, last, _):
            pair = tf.cast(ids[:-1], tf.int64) * len(self.tokenizer.vocabulary) + tf.cast(ids[1:], tf.int64)
            place = tf.searchsorted(self._pairs, pair)
            is_known = (tf.gather(self._pairs, place) == pair) & (words[:-1] == words[1:])
            rank = tf.where(is_known, tf.gather(self._ranks, place), NEVER)
            best = tf.gather(tf.math.segment_min(rank, words[:-1]), words[:-1])
            chosen = is_known & (rank == best)
            if self._is_ambiguous:
                chosen &= _is_first(chosen, words[:-1])
            chosen = tf.concat([chosen & _is_even_in_run(chosen), [False]], axis=0)  # of a a a, the first two
            merged = tf.concat([tf.gather(self._merged, place), [0]], axis=0)
            ids, last = tf.where(chosen, merged, ids), tf.where(chosen, _moved(last, -1, 0), last)
            is_left = ~_moved(chosen, 1, False)
            kept = (tf.boolean_mask(array, is_left) for array in (ids, words, first, last))
            return (*kept, tf.reduce_any(chosen))

        shapes = (*itertools.repeat(tf.TensorShape([None]), 4), tf.TensorShape([]))
        found = tf.while_loop(
            lambda *state: state[-1],
            merge_once,
            (ids, words, characters, characters, tf.size(ids) > 0),
            shape_invariants=shapes,
        )
        ids, _, first, last, _ = found
        return ids, first, last


def _merge_table(merges, ids):
    """The merges as arrays, ascending by the pair: numbers of pairs, their ranks, and ids of the merged pieces."""
    table, made = {}, set()
    for rank, (first, second) in enumerate(merges):
        for part in (first, second):
            if len(part) > 1 and part not in made:
                raise ValueError(
                    f"merge {rank + 1}, {first} {second}, comes before the one that makes {part}: a graph cannot "
                    "follow such merges. Export to the formats onnx, openvino or litert."
                )
        made.add(first + second)
        table[ids[first] * len(ids) + ids[second]] = rank, ids[first + second]
    pairs = sorted(table)
    return pairs, [table[pair][0] for pair in pairs], [table[pair][1] for pair in pairs]


@functools.cache
def _kinds():
    """The kind of each code point, by the regular expressions of the library that the tokenizer is made of."""
    kinds = np.full(CODE_POINTS, OTHER, np.int32)
    for begin in range(0, CODE_POINTS, PAGE):
        if begin in SURROGATES:  # no characters
            continue
        page = "".join(map(chr, range(begin, begin + PAGE)))
        for kind, pattern in PATTERNS.items():
            is_kind = np.ones(PAGE, bool)
            for _, (first, after) in pre_tokenizers.Split(Regex(f"{pattern}+"), "removed").pre_tokenize_str(page):
                is_kind[first:after] = False
            kinds[begin : begin + PAGE][is_kind] = kind
    return kinds


def _bytes(codes, sizes, places):
    """The bytes of characters in UTF-8, by the number of bytes of each character and the place of each byte in it."""
    bits = tf.bitwise.right_shift(codes, 6 * (sizes - 1 - places))
    lead = tf.gather([0, 0, 0xC0, 0xE0, 0xF0], sizes) + bits
    return tf.where(places == 0, lead, 0x80 + tf.bitwise.bitwise_and(bits, 0x3F))


def _moved(array, by, filling):
    """An array moved to the right by so many places, or to the left if this is negative."""
    filled = tf.fill([tf.minimum(abs(by), tf.size(array))], tf.cast(filling, array.dtype))
    return tf.concat([filled, array[:-by]] if by > 0 else [array[-by:], filled], axis=0)


def _is_first(chosen, words):
    """Which true value is the first of its word."""
    place = tf.where(chosen, tf.range(tf.size(chosen)), NEVER)
    return place == tf.gather(tf.math.segment_min(place, words), words)


def _is_even_in_run(chosen):
    """Whether the place of each true value within its run of true values is even."""
    place = tf.range(tf.size(chosen))
    is_start = chosen & ~_moved(chosen, 1, False)
    starts = tf.concat([[0], tf.boolean_mask(place, is_start)], axis=0)
    return (place - tf.gather(starts, tf.cumsum(tf.cast(is_start, tf.int32)))) % 2 == 0
