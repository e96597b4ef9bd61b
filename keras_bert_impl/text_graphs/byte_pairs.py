"""Turns text into ids of byte-level BPE, RoBERTa's and ModernBERT's, inside a TensorFlow graph, for SavedModel."""

import functools
import itertools
import re

import numpy as np
from tokenizers import Regex, pre_tokenizers

from keras_bert_impl.text_graphs.quiet_tensorflow import tf

# isort: split
import tensorflow_text as tf_text  # only now, because it imports TensorFlow, too

from keras_bert_impl.text_graphs.character_table import CODE_POINTS, CodePointTable
from keras_bert_impl.text_graphs.masked_texts import joined_by_masks, parts_between_masks
from keras_bert_impl.text_graphs.utf8 import character_sizes, character_starts, readable, row_numbers
from keras_bert_impl.tokenizers import BytePairTokenizer
from keras_bert_impl.tokenizers.byte_pair_vocabulary import NFC, byte_tokens

# Kinds of characters, as the regular expression of byte-level BPE tells them apart.
NONE, OTHER, LETTER, NUMBER, WHITE = range(5)
PATTERNS = {LETTER: r"\p{L}", NUMBER: r"\p{N}", WHITE: r"\s"}
BLANK, APOSTROPHE = ord(" "), ord("'")
CONTRACTIONS = ("s", "t", "re", "ve", "m", "ll", "d")
SURROGATES, PAGE = range(0xD800, 0xE000), 256
NEVER = np.iinfo(np.int32).max
# White space as the `tokenizers` library strips it before a mask.
BEFORE_MASK = r"[\t-\r \x{85}\p{Z}]+$"
PARTING = b"\xff"  # which is in no string of UTF-8


class BytePairs(tf.Module):
    """The ids of a BytePairTokenizer or a kind of it, computed by TensorFlow operations on the numbers of
    characters and pieces.

    Bytes that are not UTF-8 are ignored. Added tokens part a text: what is between them is cut by itself. Vocabulary
    and merges become constants of the graph; a SavedModel needs no file beside it.

    Args:
        tokenizer: provides vocabulary, merges, added tokens, normalization and whether a text gets a space before it.

    Input:  (batch,) strings.
    Output: (batch, pieces) RaggedTensor of int32, without control tokens.
    Raises: ValueError if a merge comes before the merge that makes one of its parts.
    """

    _blanks = (BLANK,)  # before which a text gets no space
    _trims_blanks = False  # whether offsets leave out the blanks of a piece however many they are
    _before_mask = BEFORE_MASK

    def __init__(self, tokenizer: BytePairTokenizer):
        super().__init__(name="byte_pairs")
        self.tokenizer = tokenizer
        ids = {token: index for index, token in enumerate(tokenizer.vocabulary)}
        self._keep_vocabulary(tokenizer, ids)
        self._form = tokenizer.dialect.normalizer["type"] if tokenizer.dialect.normalizer == NFC else None
        spaces = tokenizer.dialect.space + " "  # as which added tokens show it
        self._leading = tf.constant([len(token) - len(token.lstrip(spaces)) for token in ids], tf.int32)
        self._trailing = tf.constant([len(token) - len(token.rstrip(spaces)) for token in ids], tf.int32)
        # Of several at one place, the expression finds the first of its alternatives, and the tokenizer the longest.
        added = sorted(tokenizer.added_tokens or (), key=len, reverse=True)
        self._added = f"({'|'.join(map(re.escape, added))})" if added else None
        self._added_words = tf.constant(added, tf.string)
        self._added_ids = tf.constant([ids[token] for token in added], tf.int32)

    def _keep_vocabulary(self, tokenizer, ids):
        """What `_pieces` needs as constants of the graph."""
        self._kind = CodePointTable(_kinds())
        self._of_byte = tf.constant([ids.get(token, tokenizer.unk_id) for token in byte_tokens()], tf.int32)
        pairs, ranks, merged = _merge_table(tokenizer.merges, ids)
        self._is_ambiguous = len(set(merged)) < len(merged)
        # One pair more, so that there is one to look at where there are no merges.
        self._pairs = tf.constant([*pairs, np.iinfo(np.int64).max], tf.int64)  # ascending
        self._ranks, self._merged = tf.constant([*ranks, NEVER], tf.int32), tf.constant([*merged, 0], tf.int32)

    def __call__(self, texts: tf.Tensor) -> tf.RaggedTensor:
        texts = readable(tf.convert_to_tensor(texts, tf.string))
        if self._form:
            texts = tf_text.normalize_utf8(texts, self._form)
        if not self._added:
            characters, _ = self._with_prefix(tf.strings.unicode_decode(texts, "UTF-8"))
            ids, first, _ = self._pieces(characters)
            rows = tf.gather(row_numbers(characters), first)
            return tf.RaggedTensor.from_value_rowids(ids, rows, characters.nrows(), validate=False)
        parts = self._parts(texts)
        pieces, _ = self._pieces_of_parts(parts)
        return parts.with_flat_values(pieces[..., 0]).merge_dims(1, 2)

    def of_words(self, words: tf.RaggedTensor) -> tf.RaggedTensor:
        """The pieces of each word of each text, (batch, words) strings, as in running text: (all words, pieces)."""
        is_first = tf.gather(words.row_starts(), row_numbers(words)) == tf.range(tf.size(words.flat_values, tf.int64))
        return self(tf.where(is_first, words.flat_values, tf.strings.join([" ", words.flat_values])))

    def with_masks(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """As `__call__`, but each of the tokenizer's `mask_texts` in a text is the mask token, with the white space
        before it."""
        parts = parts_between_masks(texts, self.tokenizer.mask_texts)
        place = tf.range(tf.size(parts.flat_values, tf.int64))
        is_last = tf.gather(parts.row_limits(), row_numbers(parts)) == place + 1
        stripped = tf.strings.regex_replace(readable(parts.flat_values), self._before_mask, "")
        pieces = self(tf.where(is_last, parts.flat_values, stripped))  # (all parts, pieces)
        return joined_by_masks(parts, pieces, self.tokenizer.mask_id)

    def with_offsets(self, text: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Of one text in valid UTF-8, a () string: ids, first byte of each, and the byte after its last, as the
        tokenizer's `offsets` are; int32 (pieces,)."""
        if self._added or self._form or self._trims_blanks:
            return self._offsets_of_parts(text)
        codes = tf.strings.unicode_decode(text[tf.newaxis], "UTF-8")
        characters, prefix = self._with_prefix(codes)
        ids, first, last = self._pieces(characters)
        begin, end = tf.maximum(first - prefix[0], 0), last + 1 - prefix[0]
        # Spaces at the ends of a piece are not among its characters, but for one that was put before the text.
        leading = tf.gather(self._leading, ids)
        if self.tokenizer.add_prefix_space:
            is_first = (tf.range(tf.size(ids)) == 0) | (begin == 0)
            leading = tf.where(is_first & (leading == 1), 0, leading)
        begin, end = self._trimmed(ids, begin, end, leading)
        starts = character_starts(codes.flat_values)
        return ids, tf.gather(starts, begin), tf.gather(starts, end)

    def _offsets_of_parts(self, text):
        """`with_offsets` of a text that added tokens part, or that is normalized."""
        texts = text[tf.newaxis]
        if self._form:
            texts, changes = tf_text.normalize_utf8_with_offsets_map(texts, self._form)
        parts = self._parts(texts)
        pieces, lengths = self._pieces_of_parts(parts)
        part = row_numbers(pieces)
        ids, first, last = tf.unstack(pieces.flat_values, axis=1)
        before = tf.gather(tf.cumsum(lengths, exclusive=True), part)  # characters of the text before the part
        begin, end = before + tf.maximum(first, 0), before + last + 1
        leading = tf.gather(self._leading, ids) - tf.cast(first < 0, tf.int32)
        begin, end = self._trimmed(ids, begin, end, leading)
        starts = character_starts(tf.strings.unicode_decode(texts, "UTF-8").flat_values)
        if not self._form:
            return ids, tf.gather(starts, begin), tf.gather(starts, end)
        # One place more, since the operation refuses none at all.
        places = tf.gather(starts, tf.concat([begin, end, [0]], axis=0))
        places = tf_text.find_source_offsets(changes, tf.cast(places[tf.newaxis], tf.int64))[0, :-1]
        begin, end = tf.split(tf.cast(places, tf.int32), 2)
        return ids, begin, end

    def _trimmed(self, ids, begin, end, leading):
        """The characters of pieces without the spaces at their ends, of which `leading` are at the beginning."""
        begin = tf.minimum(begin + leading, end)
        return begin, tf.maximum(end - tf.gather(self._trailing, ids), begin)

    def _parts(self, texts):
        """What is between the added tokens of texts, with these at the odd places: RaggedTensor (batch, parts)."""
        if not self._added:
            return tf.RaggedTensor.from_tensor(texts[:, tf.newaxis])
        marked = tf.strings.regex_replace(texts, self._added, PARTING + rb"\1" + PARTING)
        return tf.strings.split(marked, PARTING)

    def _pieces_of_parts(self, parts):
        """The pieces of each part: RaggedTensor (all parts, pieces, 3) of the id and the first and last character in
        the part, which is -1 for the space before it; and for each part the number of its characters."""
        place = tf.range(tf.size(parts.flat_values, tf.int64))
        is_added = (place - tf.gather(parts.row_starts(), row_numbers(parts))) % 2 == 1
        characters = tf.strings.unicode_decode(tf.where(is_added, "", parts.flat_values), "UTF-8")
        prefixed, prefix = self._with_prefix(characters)
        ids, first, last = self._pieces(prefixed)
        part = tf.gather(row_numbers(prefixed), first)
        before = tf.gather(tf.cast(prefixed.row_starts(), tf.int32) + prefix, part)
        cut = tf.RaggedTensor.from_value_rowids(
            tf.stack([ids, first - before, last - before], axis=1), part, prefixed.nrows(), validate=False
        )
        lengths = tf.strings.length(parts.flat_values, unit="UTF8_CHAR")
        if not self._added:
            return cut, lengths
        words = tf.boolean_mask(parts.flat_values, is_added)
        same = tf.cast(words[:, tf.newaxis] == self._added_words, tf.int32)  # (added tokens in texts, added tokens)
        sizes = tf.strings.length(words, unit="UTF8_CHAR")
        whole = tf.stack([tf.gather(self._added_ids, tf.argmax(same, axis=1)), tf.zeros_like(sizes), sizes - 1], axis=1)
        whole = tf.RaggedTensor.from_row_lengths(whole, tf.cast(is_added, tf.int64), validate=False)
        return tf.concat([cut, whole], axis=1), lengths

    def _with_prefix(self, characters):
        """The characters (batch, characters) behind the space that a text gets before it, unless it begins with one or
        is empty, and how many spaces each gets, int32 (batch,)."""
        if not self.tokenizer.add_prefix_space:
            return characters, tf.zeros([characters.nrows()], tf.int32)
        first = characters.to_tensor(BLANK, shape=(None, 1))
        count = tf.cast(tf.reduce_all(first != self._blanks, axis=1), tf.int32)
        spaces = tf.RaggedTensor.from_row_lengths(tf.fill([tf.reduce_sum(count)], BLANK), tf.cast(count, tf.int64))
        return tf.concat([spaces, characters], axis=1), count

    def _pieces(self, characters):
        """The pieces of all texts: ids, and the numbers of the first and last character of each, int32 (pieces,)."""
        codes, rows = characters.flat_values, row_numbers(characters)
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
