"""Turns text into ids of SentencePiece models, ALBERT's, XLM-RoBERTa's and DeBERTa's, in a TensorFlow graph."""

import functools
import sys
import zlib

import numpy as np

from keras_bert_impl.quiet_tensorflow import tf

# isort: split
import tensorflow_text as tf_text  # only now, because it imports TensorFlow, too

from keras_bert_impl.preprocessing.graphs.characters import (
    CODE_POINTS,
    CharacterTable,
    CodePointTable,
    character_sizes,
    character_starts,
    character_strings,
    readable,
    without_spaces,
)
from keras_bert_impl.preprocessing.graphs.pieces import Pieces
from keras_bert_impl.preprocessing.graphs.ragged import of_texts, row_numbers, side_by_side
from keras_bert_impl.preprocessing.graphs.wordpiece import lower_final_sigma
from keras_bert_impl.text.tokenizers.sentence_piece_model import AT_SPACES, without_bytes, without_normalizer
from keras_bert_impl.text.tokenizers.sentence_piece_tokenizer import (
    AlbertTokenizer,
    SentencePieceTokenizer,
    prepared_character,
)

_QUOTE = ord('"')


class SentencePieces(Pieces):
    """The ids of a tokenizer over a SentencePiece model, computed by TensorFlow kernels.

    Bytes that are not UTF-8 are ignored. The model becomes a part of the graph; a SavedModel needs no file beside it.

    Args:
        tokenizer: provides the model and what is done to texts before it and to ids after it.
        offsets: whether `with_offsets` will be called.

    Input:  (batch,) strings.
    Output: (batch, pieces) RaggedTensor of int32, without control tokens.
    """

    def __init__(self, tokenizer: SentencePieceTokenizer, offsets: bool = False):
        super().__init__(name="sentence_pieces")
        self.tokenizer = tokenizer
        # Of divisions that are equally probable, such as 00 0 and 0 00, it finds the one that today's sentencepiece
        # does; SentencepieceTokenizer, which holds an older version, often the other. Only that one knows offsets.
        self._cut = tf_text.FastSentencepieceTokenizer(tokenizer.model)
        if offsets:
            self._align = named_kernel(tokenizer.model, tf.int32)
        self._is_bare = tokenizer.split == AT_SPACES
        continued = tokenizer.further_bytes
        is_continued = [index in continued for index in range(len(tokenizer.vocabulary))]
        self._is_continued = tf.constant(is_continued) if continued else None
        self._is_albert = isinstance(tokenizer, AlbertTokenizer)
        if self._is_albert:
            replaced = _replacements(tokenizer.lowercase, tokenizer.keep_accents)
            self._table = character_strings(replaced)
            if offsets:  # of which only this knows where each code point comes from
                codes = {ord(character): tuple(map(ord, text)) for character, text in replaced.items()}
                self._replace_characters = CharacterTable(codes)
        # Of each id of the model: our ids, which are several where the tokenizer cuts a piece once more, and the
        # characters of the piece after the end of each. What is unknown counts as one character.
        cut = [tokenizer.pieces_of_model(index) for index in range(tokenizer.processor.get_piece_size())]
        self._lengths = tf.constant([len(parts) for parts in cut], tf.int64)
        self._our_ids = tf.constant([index for parts in cut for index, _ in parts], tf.int32)
        rest = [[sum(len(piece) for _, piece in parts[place + 1 :]) for place in range(len(parts))] for parts in cut]
        self._rest = tf.constant([count for counts in rest for count in counts], tf.int32)
        sizes = [sum(len(piece) for _, piece in parts) for parts in cut]
        are_unknown = [[index for index, _ in parts] == [tokenizer.unk_id] for parts in cut]
        whole = [1 if is_unknown else size for is_unknown, size in zip(are_unknown, sizes, strict=True)]
        self._characters = tf.constant(whole, tf.int32)
        self._keep_exact_cut(tokenizer, sizes)

    def __call__(self, texts: tf.Tensor) -> tf.RaggedTensor:
        texts = readable(tf.convert_to_tensor(texts, tf.string))
        if self._is_albert:
            texts = self._table.normalize(self._with_quotes(texts, '"'))
        pieces = self._tokenize(texts)  # (batch, pieces of the model)
        return of_texts(pieces, self._of_model(self._our_ids, pieces.flat_values))

    def with_offsets(self, text: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Of one text in valid UTF-8, a () string: ids, first byte of each, and the byte after its last, as the
        tokenizer's `offsets` are; int32 (pieces,)."""
        characters = tf.strings.unicode_decode(text[tf.newaxis], "UTF-8")
        if self._is_albert:
            prepared = self._prepared(text[tf.newaxis], characters)[0]  # (characters, code points)
            source, codes = row_numbers(prepared), prepared.flat_values
        else:
            codes = characters.flat_values
            source = tf.range(tf.size(codes, tf.int64))
        whole = tf.strings.unicode_encode(codes, "UTF-8")[tf.newaxis]
        found = self._tokenize(whole)[0]
        parts = self._of_model(self._our_ids, found)
        # Ends of the parts in characters of the pieces, then begins and ends in characters of the prepared text.
        ends = tf.gather(tf.cumsum(tf.gather(self._characters, found)), row_numbers(parts))
        ends -= self._of_model(self._rest, found).flat_values
        first, last = self._places(whole, codes, ends)
        # In characters of the text.
        source = tf.concat([source, tf.size(characters.flat_values, tf.int64)[tf.newaxis]], axis=0)
        first, last = (tf.cast(tf.gather(source, places), tf.int32) for places in (first, last))
        last = tf.maximum(first, last)
        begin, end = without_spaces(characters.flat_values, first, last)
        first, last = tf.minimum(begin, last), tf.where(begin < last, end, last)
        if self._is_continued is not None:  # a further byte stands where the first byte of its character does
            begins = ~tf.gather(self._is_continued, parts.flat_values)
            owner = tf.maximum(tf.cumsum(tf.cast(begins, tf.int32)) - 1, 0)
            first, last = (tf.gather(tf.boolean_mask(places, begins), owner) for places in (first, last))
        starts = character_starts(characters.flat_values)
        return parts.flat_values, tf.gather(starts, first), tf.gather(starts, last)

    def _keep_exact_cut(self, tokenizer, sizes):
        """The constants of `_exact_pieces`; `sizes` are the characters of the model's pieces."""
        scores = tokenizer.scores_in_texts()
        single = {piece for piece in scores if len(piece) == 1}
        # Without pieces of their own: a sign for what no piece has, then what only longer pieces have.
        known = set("".join(scores))
        unknown = [next(chr(code) for code in range(1, 128) if chr(code) not in known), *sorted(known - single)]
        model = without_normalizer(tokenizer.model, unknown, float(np.float32(min(scores.values())) - np.float32(10)))
        self._cut_exactly = tf_text.FastSentencepieceTokenizer(model)
        self._normalize = named_kernel(without_bytes(tokenizer.model), tf.string)
        shown = np.full(CODE_POINTS, ord(unknown[0]), np.int32)
        codes = list(map(ord, known))
        shown[codes] = codes
        self._shown = CodePointTable(shown)
        self._sizes = tf.constant([*sizes, *[1] * len(unknown)], tf.int32)
        byte_ids = {byte[0]: index for index, byte in tokenizer.bytes_of.items()}
        self._byte_ids = tf.constant([byte_ids[byte] for byte in range(256)], tf.int32) if byte_ids else None

    def _tokenize(self, texts):
        """The pieces of the model in each text, (batch, pieces) RaggedTensor of int32."""
        found = self._cut.tokenize(texts).with_row_splits_dtype(tf.int64)
        # By sums: tf.reduce_any would make an array of all texts times the longest.
        before = tf.cumsum(tf.cast(found.flat_values == self.tokenizer.processor.unk_id(), tf.int64))
        before = tf.gather(tf.concat([[0], before], axis=0), found.row_splits)
        is_unknown = before[1:] > before[:-1]
        if self._is_bare:  # it takes all white space for spaces, and leaves signs for a space at the end
            is_unknown |= tf.strings.regex_full_match(texts, "(?s).*[\t\n\r▁].*")
        place = found.nrows() + tf.cumsum(tf.cast(is_unknown, tf.int64)) - 1
        whole = tf.where(is_unknown, place, tf.range(found.nrows()))
        return tf.gather(tf.concat([found, self._exact_pieces(tf.boolean_mask(texts, is_unknown))], axis=0), whole)

    def _exact_pieces(self, texts):
        """As `_tokenize`, some times slower, also for texts with unknown characters. The fast tokenizer counts each of
        their bytes, by which the sums of scores, and so the divisions after them, may become others."""
        parts = self._normalize.tokenize(texts).with_row_splits_dtype(tf.int64)
        normalized = tf.strings.unsorted_segment_join(parts.flat_values, row_numbers(parts), parts.nrows())
        codes = tf.strings.unicode_decode(normalized, "UTF-8")
        shown = tf.strings.unicode_encode(codes.with_flat_values(self._shown(codes.flat_values)), "UTF-8")
        found = self._cut_exactly.tokenize(shown).with_row_splits_dtype(tf.int64)
        ids, row = found.flat_values, row_numbers(found)
        is_unknown = ids >= self.tokenizer.processor.get_piece_size()
        if self._byte_ids is None:  # unknown characters in a row are one piece
            goes_on = is_unknown[1:] & is_unknown[:-1] & (row[1:] == row[:-1])
            is_first = tf.concat([is_unknown[:1], is_unknown[1:] & ~goes_on], axis=0)
            counts = tf.cast(is_first, tf.int64)
            values = tf.fill([tf.reduce_sum(counts)], self.tokenizer.processor.unk_id())
        else:
            spelled = tf.gather(codes.flat_values, tf.cumsum(tf.gather(self._sizes, ids), exclusive=True))
            counts = tf.cast(tf.where(is_unknown, character_sizes(spelled), 0), tf.int64)
            content = tf.strings.unicode_encode(tf.boolean_mask(spelled, is_unknown), "UTF-8")
            values = tf.gather(self._byte_ids, tf.cast(tf.io.decode_raw(content, tf.uint8), tf.int32))
        known = tf.RaggedTensor.from_row_lengths(ids[~is_unknown], tf.cast(~is_unknown, tf.int64), validate=False)
        unknown = tf.RaggedTensor.from_row_lengths(values, counts, validate=False)
        return of_texts(found, side_by_side([known, unknown]))

    def _places(self, whole, codes, ends):
        """The characters of a prepared text at which pieces begin and end, by their ends in characters of the pieces.

        Known are the places of the pieces that `_align` finds. These are the same ones, or other divisions of a few
        characters, each of which stands for itself.
        """
        found, begins, last = (array[0] for array in self._align.tokenize_with_offsets(whole))
        begins, last = (
            tf.searchsorted(character_starts(codes), tf.cast(places, tf.int32)) for places in (begins, last)
        )
        known = tf.cumsum(tf.gather(self._characters, found))  # ends of the pieces found, as `ends`
        inside = tf.minimum(tf.searchsorted(known, ends), tf.maximum(tf.size(known) - 1, 0))
        # Of the bytes of a character, the last one tells where it ends.
        inside = tf.searchsorted(known, tf.gather(known, inside), side="right") - 1
        found_last = tf.maximum(tf.gather(last, inside) - (tf.gather(known, inside) - ends), tf.gather(begins, inside))
        # A piece begins where one that is known does, or where the one before it ends.
        starts = tf.concat([[0], ends], axis=0)[:-1]
        inside = tf.searchsorted(tf.concat([[0], known], axis=0)[:-1], starts, side="right") - 1
        is_known = tf.gather(known, inside) - tf.gather(tf.gather(self._characters, found), inside) == starts
        return tf.where(is_known, tf.gather(begins, inside), tf.roll(found_last, 1, axis=0)), found_last

    def _of_model(self, values, ids):
        """For each id of the model its row of values: RaggedTensor (ids, parts)."""
        return tf.gather(tf.RaggedTensor.from_row_lengths(values, self._lengths, validate=False), ids)

    def _with_quotes(self, texts, quote):
        """Texts with such a quote for each `` and '', and small final sigmas."""
        quoted = tf.strings.regex_replace(texts, "``|''", quote)
        if not self.tokenizer.lowercase:
            return quoted
        # As str.lower() does, which `prepare` asks about sigma only where no letter becomes two.
        lowered = lower_final_sigma(quoted)
        return tf.where(tf.strings.regex_full_match(quoted, r"(?s).*İ.*"), quoted, lowered)

    def _prepared(self, texts, characters):
        """`sentence_piece_tokenizer.prepare`: for each character of each text the code points that the model reads."""
        changed = tf.strings.unicode_decode(self._with_quotes(texts, '""'), "UTF-8")
        is_quote = (changed.flat_values == _QUOTE) & (characters.flat_values != _QUOTE)
        is_second = is_quote & (tf.cumsum(tf.cast(is_quote, tf.int32)) % 2 == 0)
        replaced = self._replace_characters(changed)
        is_kept = tf.gather(~is_second, row_numbers(replaced.values))  # for each code point
        return tf.ragged.boolean_mask(replaced, replaced.with_flat_values(is_kept))


def named_kernel(model, out_type):
    """The tokenizer of tensorflow_text for a model. All those of the SavedModels in a process would otherwise have one
    name, and with it the model of the first."""
    return tf_text.SentencepieceTokenizer(model, out_type=out_type, name=f"model_{zlib.crc32(model):08x}")


@functools.cache
def _replacements(lowercase, keep_accents):
    """What ALBERT's model reads for each character, where this is another text."""
    prepared = {
        chr(code): prepared_character(chr(code), lowercase, keep_accents)
        for code in range(sys.maxunicode + 1)
        if not 0xD800 <= code <= 0xDFFF
    }
    return {character: text for character, text in prepared.items() if character != text}
