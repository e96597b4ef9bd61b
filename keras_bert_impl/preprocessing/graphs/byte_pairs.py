"""Turns text into ids of byte-pair encoding, over bytes or characters, inside a TensorFlow graph, for SavedModel."""

import functools
import re

import numpy as np
from tokenizers import Regex, pre_tokenizers

from keras_bert_impl.quiet_tensorflow import tf

# isort: split
import tensorflow_text as tf_text  # only now, because it imports TensorFlow, too

from keras_bert_impl.preprocessing.graphs.characters import CODE_POINTS, CodePointTable, character_starts, readable
from keras_bert_impl.preprocessing.graphs.pair_merging import PairMerging, WholeWords
from keras_bert_impl.preprocessing.graphs.pieces import Pieces
from keras_bert_impl.preprocessing.graphs.ragged import of_texts, row_numbers, side_by_side
from keras_bert_impl.preprocessing.graphs.sentence_pieces import named_kernel
from keras_bert_impl.text.tokenizers import BytePairTokenizer, MmBertTokenizer
from keras_bert_impl.text.tokenizers.byte_pair_vocabulary import MMBERT, NFC, byte_tokens
from keras_bert_impl.text.tokenizers.modernbert_tokenizer import BYTES
from keras_bert_impl.text.tokenizers.sentence_piece_model import BYTE, CONTROL, NORMAL, UNKNOWN, byte_pair_model

# Kinds of characters, as the regular expression of byte-level BPE tells them apart.
NONE, OTHER, LETTER, NUMBER, WHITE = range(5)
PATTERNS = {LETTER: r"\p{L}", NUMBER: r"\p{N}", WHITE: r"\s"}
BLANK, APOSTROPHE, LINE_FEED, CARRIAGE_RETURN = map(ord, " '\n\r")
# Each letter without its case, as contractions of Llama 3 are found; the long s is one, and what is above none.
PLAIN_LETTERS = [*(ord(chr(code).lower()) if code < 128 else code for code in range(0x17F)), ord("s"), 0]
CONTRACTIONS = ("s", "t", "re", "ve", "m", "ll", "d")
SURROGATES, PAGE = range(0xD800, 0xE000), 256
PARTING = b"\xff"  # which is in no string of UTF-8


class BytePairs(Pieces):
    """The ids of a BytePairTokenizer or a kind of it, computed by TensorFlow operations on the numbers of
    characters and pieces.

    Bytes that are not UTF-8 are ignored. Added tokens part a text: what is between them is cut by itself. Vocabulary
    and merges become constants of the graph; a SavedModel needs no file beside it.

    Args:
        tokenizer: provides vocabulary, merges, added tokens, normalization and whether a text gets a space before it.

    Input:  (batch,) strings.
    Output: (batch, pieces) RaggedTensor of int32, without control tokens."""

    _blanks = (BLANK,)  # before which a text gets no space
    _trims_first_blank = False  # whether offsets leave out the only blank at the beginning of a text

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
        self._byte_ids = tf.constant([ids.get(token, tokenizer.unk_id) for token in byte_tokens()], tf.int32)
        self._whole_words = WholeWords(_whole_words(tokenizer, ids))
        merges = [(ids[first], ids[second], ids[first + second]) for first, second in tokenizer.merges]
        self._merging = PairMerging(merges)

    def __call__(self, texts: tf.Tensor) -> tf.RaggedTensor:
        texts = tf.convert_to_tensor(texts, tf.string)
        if self._form or self._added:
            texts = readable(texts)
        if self._form:
            texts = tf_text.normalize_utf8(texts, self._form)
        if not self._added:
            characters, _ = self._with_prefix(tf.strings.unicode_decode(texts, "UTF-8", errors="ignore"))
            ids, first, _ = self._pieces(characters)
            # Where each text's first piece is: `first` is ascending, and texts without characters have none.
            splits = tf.searchsorted(first, tf.cast(characters.row_splits, tf.int32), out_type=tf.int64)
            return tf.RaggedTensor.from_row_splits(ids, splits, validate=False)
        parts = self._parts(texts)
        pieces, _ = self._pieces_of_parts(parts)
        return of_texts(parts, pieces[..., 0])

    def of_words(self, words: tf.RaggedTensor) -> tf.RaggedTensor:
        """The pieces of each word of each text, (batch, words) strings, as in running text: (all words, pieces)."""
        is_first = tf.gather(words.row_starts(), row_numbers(words)) == tf.range(tf.size(words.flat_values, tf.int64))
        return self(tf.where(is_first, words.flat_values, tf.strings.join([" ", words.flat_values])))

    def with_offsets(self, text: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Of one text in valid UTF-8, a () string: ids, first byte of each, and the byte after its last, as the
        tokenizer's `offsets` are; int32 (pieces,)."""
        texts = text[tf.newaxis]
        if self._form:
            texts, changes = tf_text.normalize_utf8_with_offsets_map(texts, self._form)
        parts = self._parts(texts)
        pieces, lengths = self._pieces_of_parts(parts)
        part = row_numbers(pieces)
        ids, first, last = tf.unstack(pieces.flat_values, axis=1)
        before = tf.gather(tf.cumsum(lengths, exclusive=True), part)  # characters of the text before the part
        begin, end = before + tf.maximum(first, 0), before + last + 1
        # Spaces at the ends of a piece are not among its characters, but for one that was put before the text.
        leading = tf.gather(self._leading, ids) - tf.cast(first < 0, tf.int32)
        if self.tokenizer.add_prefix_space and not (self._form or self._trims_first_blank):
            leading = tf.where((begin == 0) & (leading == 1), 0, leading)  # nor is the text's own first one
        begin = tf.minimum(begin + leading, end)
        end = tf.maximum(end - tf.gather(self._trailing, ids), begin)
        starts = character_starts(tf.strings.unicode_decode(texts, "UTF-8").flat_values)
        if not self._form:
            return ids, tf.gather(starts, begin), tf.gather(starts, end)
        # One place more, since the operation refuses none at all.
        places = tf.gather(starts, tf.concat([begin, end, [0]], axis=0))
        places = tf_text.find_source_offsets(changes, tf.cast(places[tf.newaxis], tf.int64))[0, :-1]
        begin, end = tf.split(tf.cast(places, tf.int32), 2)
        return ids, begin, end

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
        return side_by_side([cut, whole]), lengths

    def _with_prefix(self, characters):
        """The characters (batch, characters) after the space that a text gets before it, unless it begins with one or
        is empty, and how many spaces each gets, int32 (batch,)."""
        if not self.tokenizer.add_prefix_space:
            return characters, tf.zeros([characters.nrows()], tf.int32)
        first = characters.to_tensor(BLANK, shape=(None, 1))
        count = tf.cast(tf.reduce_all(first != self._blanks, axis=1), tf.int32)
        blanks = tf.fill([tf.reduce_sum(count)], BLANK)
        spaces = tf.RaggedTensor.from_row_lengths(blanks, tf.cast(count, tf.int64), validate=False)
        return side_by_side([spaces, characters]), count

    def _pieces(self, characters):
        """The pieces of all texts: ids, and the numbers of the first and last character of each, int32 (pieces,)."""
        codes = characters.flat_values
        content = tf.cast(tf.io.decode_raw(tf.strings.unicode_encode(codes, "UTF-8"), tf.uint8), tf.int32)
        is_first = tf.bitwise.bitwise_and(content, 0xC0) != 0x80  # of the bytes of a character
        character = tf.cumsum(tf.cast(is_first, tf.int32)) - 1
        starts = self._word_starts(codes, row_numbers(characters))
        word = tf.gather(tf.cumsum(tf.cast(starts, tf.int32)) - 1, character)
        begins = tf.cast(tf.where(is_first & tf.gather(starts, character))[:, 0], tf.int32)  # of words, in bytes
        whole = self._whole_words(content, word, begins)
        # The bytes of all other words are merged; what becomes of the first of them replaces the -1 in `whole`.
        is_cut = whole < 0
        others = tf.cast(tf.where(tf.gather(is_cut, word))[:, 0], tf.int32)
        number = tf.gather(tf.cumsum(tf.cast(is_cut, tf.int32)) - 1, tf.gather(word, others))
        merged = self._merging(tf.gather(self._byte_ids, tf.gather(content, others)), number)
        ids = tf.fill(tf.shape(content), -1)
        for places, found in ((begins, whole), (others, merged)):
            ids = tf.tensor_scatter_nd_update(ids, places[:, tf.newaxis], found)
        first = tf.cast(tf.where(ids >= 0)[:, 0], tf.int32)
        last = _moved(first, -1, tf.size(ids)) - 1
        return tf.gather(ids, first), tf.gather(character, first), tf.gather(character, last)

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
        return _with_contractions(starts, codes, rows)


class LlamaPairs(BytePairs):
    """The ids of a EuroBertTokenizer. Arguments and errors are those of BytePairs."""

    def _word_starts(self, codes, rows):
        """Which characters begin a word, by LLAMA_WORDS, whose alternatives are tried one after another."""
        kind = self._kind(codes)
        place = tf.range(tf.size(codes))
        is_first = _moved(rows, 1, -1) != rows
        is_last = _moved(is_first, -1, True)
        run_starts = is_first | (_moved(kind, 1, NONE) != kind)
        run = tf.cumsum(tf.cast(run_starts, tf.int32)) - 1  # of characters of one kind
        first, last = tf.math.segment_min(place, run), tf.math.segment_max(place, run)
        outside = tf.where(is_first, NONE, _moved(kind, 1, NONE))  # kind before each character
        before = tf.gather(tf.gather(outside, first), run)  # and before its run
        follows_blank = tf.gather(tf.gather(~is_first & (_moved(codes, 1, 0) == BLANK), first), run)
        number, size = place - tf.gather(first, run), tf.gather(last - first + 1, run)

        # Line ends behind punctuation belong to it; other white space reaches to its last line end, and the last one
        # before a word is by itself.
        is_end = (codes == LINE_FEED) | (codes == CARRIAGE_RETURN)
        other = tf.gather(tf.math.segment_min(tf.where(is_end, tf.size(codes), place), run), run)
        absorbed = is_end & (place < other) & (before == OTHER)
        last_end = tf.gather(tf.math.segment_max(tf.where(is_end, place, -1), run), run)
        of_white = (run_starts | (_moved(absorbed, 1, False) & (number > 0)) | (place == last_end + 1)) & ~absorbed
        of_white |= (place == tf.gather(last, run)) & ~is_last & ~is_end

        # One punctuation mark that no blank is before goes with the letters behind it, as does one white space.
        alone = (kind == OTHER) & (size == 1) & ~follows_blank
        joins = alone | ((kind == WHITE) & ~is_end)
        of_letter = run_starts & (is_first | ~_moved(joins, 1, False))
        of_other = run_starts & ~follows_blank
        starts = tf.where(kind == WHITE, of_white, tf.where(kind == LETTER, of_letter, of_other))
        starts = tf.where(kind == NUMBER, number % 3 == 0, starts)
        # Contractions have no case. Of two punctuation marks the second is no apostrophe of one.
        plain = tf.gather(tf.constant(PLAIN_LETTERS), tf.minimum(codes, len(PLAIN_LETTERS) - 1))
        return _with_contractions(starts, plain, rows)


class CharacterPairs(BytePairs):
    """The ids of a MmBertTokenizer, computed by the kernel of SentencePiece, whose merges are those of its vocabulary:
    it merges any two pieces that are a third one together, the one of the least id first, as Gemma's tokenizer was
    learned and its merges were made.

    Arguments and errors are those of BytePairs; ValueError if the merges are others.
    """

    _blanks = (BLANK, ord(MMBERT.space))
    _trims_first_blank = True

    def _keep_vocabulary(self, tokenizer, ids):
        self._pairs_kernel = named_kernel(model_of(tokenizer), tf.int32)

    def _pieces(self, characters):
        texts = tf.strings.unicode_encode(characters, "UTF-8")
        ids, begins, ends = self._pairs_kernel.tokenize_with_offsets(texts)
        starts = character_starts(characters.flat_values)
        # Bytes of all texts one after another, then the characters that they belong to.
        before = tf.gather(starts, tf.gather(tf.cast(characters.row_starts(), tf.int32), row_numbers(ids)))
        first, after = (tf.searchsorted(starts, before + tf.cast(one.flat_values, tf.int32)) for one in (begins, ends))
        # The kernel gives a character of several bytes to the last of them alone.
        has_some = after > first
        owner = tf.cumsum(tf.cast(has_some, tf.int32), exclusive=True)
        first, last = (tf.gather(tf.boolean_mask(places, has_some), owner) for places in (first, after - 1))
        return ids.flat_values, first, last


def model_of(tokenizer: MmBertTokenizer) -> bytes:
    """The model file of SentencePiece that cuts words as the tokenizer does.

    Raises: ValueError if there is none, since the merges are not all those that the vocabulary allows, piece by piece.
    """
    control, space = tokenizer.dialect.control, tokenizer.dialect.space
    words, names = set(tokenizer.vocabulary), set(BYTES)
    # No word holds a space but at its beginning, and so none of these pieces.
    merges = [pair for pair in tokenizer.merges if space not in "".join(pair)[1:] and "".join(pair) not in control]
    made = list(dict.fromkeys(map("".join, merges)))
    parts = {*made, *(token for token in words if len(token) == 1)}
    place = {piece: number for number, piece in enumerate(made)}
    order = [place["".join(pair)] for pair in merges]
    allowed = {
        (piece[:cut], piece[cut:])
        for piece in made
        for cut in range(1, len(piece))
        if piece[:cut] in parts and piece[cut:] in parts
    }
    reached = {pair for pair in merges if pair[0] in parts and pair[1] in parts}
    if order != sorted(order) or allowed != reached or place.keys() & names:
        raise ValueError(
            "the merges are not those of a SentencePiece model, which merges any two tokens that form a third one "
            "together: a graph cannot follow them. Export to the formats onnx, openvino or litert."
        )

    def typed(token):
        if token == control[3]:
            return token, 0.0, UNKNOWN
        if token in names:
            return token, 0.0, BYTE
        if token in place or (len(token) == 1 and token not in control):
            return token, float(-place.get(token, len(made))), NORMAL
        return token, 0.0, CONTROL  # which no text gives

    # The library wants all bytes, also those that have a character of their own in the vocabulary.
    missing = [name for name in BYTES if name not in words]
    unknown, beginning, end, padding = (control[place] for place in (3, 0, 2, 1))
    return byte_pair_model(list(map(typed, [*tokenizer.vocabulary, *missing])), (unknown, beginning, end, padding))


def _with_contractions(starts, codes, rows):
    """Which characters begin a word, where 's, 't and the like are words after an apostrophe that begins one."""
    places = tf.where(starts & (codes == APOSTROPHE))[:, 0]
    # Three more of no text, since the letters may be the last ones.
    codes, rows, starts = (
        tf.concat([array, tf.fill([3], tf.cast(end, array.dtype))], axis=0)
        for array, end in ((codes, 0), (rows, -1), (starts, True))
    )
    row = tf.gather(rows, places)
    one, two = (tf.where(tf.gather(rows, places + by) == row, tf.gather(codes, places + by), 0) for by in (1, 2))
    size = tf.zeros_like(places)
    for letters in CONTRACTIONS:
        first, *second = map(ord, letters)
        is_here = (one == first) & (two == second[0]) if second else one == first
        size = tf.where(is_here, tf.cast(len(letters), tf.int64), size)
    places, size = (tf.boolean_mask(array, size > 0) for array in (places, size))
    changed = tf.concat([places + 1, places + 1 + size], axis=0)
    is_start = tf.concat([tf.zeros_like(places, tf.bool), tf.ones_like(places, tf.bool)], axis=0)
    return tf.tensor_scatter_nd_update(starts, changed[:, tf.newaxis], is_start)[:-3]


def _whole_words(tokenizer, ids):
    """The ids of the pieces that the merges make of their own bytes, by these bytes, the most important first."""
    bytes_of = {token: byte for byte, token in enumerate(byte_tokens())}
    model = tokenizer.pipeline().model
    if tokenizer.dialect.model["ignore_merges"]:
        return {bytes(map(bytes_of.get, token)): ids[token] for token in ids if bytes_of.keys() >= set(token)}
    pieces = dict.fromkeys([token for token in bytes_of if token in ids] + list(map("".join, tokenizer.merges)))
    return {
        bytes(map(bytes_of.get, piece)): ids[piece]
        for piece in pieces
        if [token.id for token in model.tokenize(piece)] == [ids[piece]]
    }


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


def _moved(array, by, filling):
    """An array moved to the right by so many places, or to the left if this is negative."""
    filled = tf.fill([tf.minimum(abs(by), tf.size(array))], tf.cast(filling, array.dtype))
    return tf.concat([filled, array[:-by]] if by > 0 else [array[-by:], filled], axis=0)
