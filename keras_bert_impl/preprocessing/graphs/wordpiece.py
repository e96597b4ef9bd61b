"""Turns text into WordPiece ids inside a TensorFlow graph, for tf.data and SavedModel."""

import numpy as np

from keras_bert_impl.quiet_tensorflow import tf

# isort: split
import tensorflow_text as tf_text  # only now, because it imports TensorFlow, too

from keras_bert_impl.preprocessing.graphs.characters import (
    CODE_POINTS,
    CodePointTable,
    character_starts,
    character_strings,
    readable,
)
from keras_bert_impl.preprocessing.graphs.pieces import Pieces
from keras_bert_impl.preprocessing.graphs.ragged import of_texts, row_numbers
from keras_bert_impl.text.tokenizers import WordPieceTokenizer, google_characters

# Where FastWordpieceTokenizer, whose Unicode is a later one, finds punctuation that the original does not know: these
# characters, and the scripts beyond U+FFFF but for pictographs and Chinese, to which new ones are added.
# tests/preprocessing/graphs/test_wordpiece.py looks at all characters that there are. Surrogates, which are no
# UTF-8, match.
_UNCERTAIN = google_characters.parse_ranges("1b4e-1b4f 1b7f d800-dfff 10000-1efff 1fb00-1ffff 30000-10ffff")
# Some characters at which words end for certain; that there are more only makes words seem longer.
_WORD_ENDS = google_characters.parse_ranges(
    "9-a d 20-2f 3a-40 5b-60 7b-7e a1 a7 bf 2010 2012-2016 2018-2023 2027 2030-2032 3001-3003 3008-3011 3400-4db5 "
    "4e00-9fcc"
)
_ALONE = f"[{google_characters.character_class(google_characters.isolated())}]"
_MOST_BYTES = 4 * google_characters.MAX_CHARACTERS_PER_WORD


class WordPiece(Pieces):
    """The ids of WordPieceTokenizer, hence of Google's original, computed by TensorFlow kernels.

    The kernels are those of tensorflow_text's FastBertTokenizer, with Google's replacements of characters in place of
    its own. Rows with a character that depends on its neighbours, a capital sigma, or with words so long that they may
    be cut off go through `_exact_pieces`, which is some times slower. Bytes that are not UTF-8 are ignored.
    The vocabulary becomes a constant of the graph; a SavedModel needs no file beside it.

    Args:
        tokenizer: provides the vocabulary and whether to lower-case.
        offsets: whether `with_offsets` will be called.

    Input:  (batch,) strings.
    Output: (batch, pieces) RaggedTensor of int32, without [CLS] and [SEP].
    """

    def __init__(self, tokenizer: WordPieceTokenizer, offsets: bool = False):
        super().__init__(name="wordpiece")
        self.tokenizer = tokenizer
        options = {"token_out_type": tf.int32, "max_bytes_per_word": _MOST_BYTES}
        self._cut_texts = tf_text.FastWordpieceTokenizer(tokenizer.vocabulary, **options)
        self._cut_words = tf_text.FastWordpieceTokenizer(tokenizer.vocabulary, no_pretokenization=True, **options)
        replaced = _replacements(tokenizer.lowercase)
        self._table = character_strings(replaced)
        if offsets:
            counts = np.ones(CODE_POINTS, np.int32)
            for character, text in replaced.items():
                counts[ord(character)] = len(text.strip(" "))
            self._characters_of_words = CodePointTable(counts)
            self._lengths = tf.constant([len(token.removeprefix("##")) for token in tokenizer.vocabulary], tf.int32)
        self._fast_row = _fast_row(tokenizer.lowercase)
        # One node of a graph: of a branch that is not taken, each node costs time. The signature is for eager calls,
        # which would trace it anew for every number of rows.
        self._by_row = tf.function(
            self._pieces_by_row,
            input_signature=[tf.TensorSpec([None], tf.string), tf.TensorSpec([None], tf.bool)],
            experimental_attributes={"_noinline": True},
        )

    def __call__(self, texts: tf.Tensor) -> tf.RaggedTensor:
        texts = tf.convert_to_tensor(texts, tf.string)
        is_fast = tf.strings.regex_full_match(texts, self._fast_row)
        return tf.cond(
            tf.reduce_all(is_fast),
            lambda: self._fast_pieces(texts),
            lambda: self._by_row(texts, is_fast),
        )

    def with_offsets(self, text: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Of one text in valid UTF-8, a () string: ids, first byte of each, and the byte after its last, as the
        tokenizer's `offsets` are; int32 (pieces,)."""
        words = self._words(text[tf.newaxis]).flat_values
        pieces = self._pieces_of_words(words)
        ids = pieces.flat_values
        whole = tf.gather(tf.strings.length(words, unit="UTF8_CHAR"), row_numbers(pieces))
        lengths = tf.where(ids == self.tokenizer.unk_id, whole, tf.gather(self._lengths, ids))
        codes = tf.strings.unicode_decode(text, "UTF-8")
        # The character of the text that each character of the words comes from.
        source = tf.repeat(tf.range(tf.size(codes)), self._characters_of_words(codes))
        after, starts = tf.cumsum(lengths), character_starts(codes)
        first, last = tf.gather(source, after - lengths), tf.gather(source, after - 1)
        return ids, tf.gather(starts, first), tf.gather(starts, last + 1)

    def _fast_pieces(self, texts):
        return self._cut_texts.tokenize(self._table.normalize(texts))

    def _pieces_by_row(self, texts, is_fast):
        fast, exact = tf.where(is_fast)[:, 0], tf.where(~is_fast)[:, 0]
        pieces = [self._fast_pieces(tf.gather(texts, fast)), self._exact_pieces(tf.gather(texts, exact))]
        return tf.gather(tf.concat(pieces, axis=0), tf.math.invert_permutation(tf.concat([fast, exact], axis=0)))

    def _exact_pieces(self, texts):
        words = self._words(readable(texts))
        return of_texts(words, self._pieces_of_words(words.flat_values))

    def _words(self, texts):
        """The words of strings in valid UTF-8 as the vocabulary has them: RaggedTensor (batch, words)."""
        if self.tokenizer.lowercase:
            texts = lower_final_sigma(texts)
        return tf.strings.split(tf.strings.regex_replace(self._table.normalize(texts), _ALONE, r" \0 "))

    def _pieces_of_words(self, words):
        is_long = tf.strings.length(words, unit="UTF8_CHAR") > google_characters.MAX_CHARACTERS_PER_WORD
        # Stands for any word that is too long: it exceeds the kernel's limit in bytes, and so becomes [UNK].
        too_long = "x" * (_MOST_BYTES + 1)
        return self._cut_words.tokenize(tf.where(is_long, too_long, words))  # (words, pieces)


def _fast_row(lowercase):
    """A regular expression for texts whose words the original never finds too long, and whose characters mean the same
    wherever they stand.

    It counts characters as they are written, of which a word has at most 200 in ASCII, or 66 that become at most three
    letters each.
    """
    ends = google_characters.character_class(_WORD_ENDS)
    others = google_characters.character_class(_UNCERTAIN) + ("Σ" if lowercase else "")
    longest = google_characters.MAX_CHARACTERS_PER_WORD
    word = rf"(?:[0-9A-Za-z]{{0,{longest}}}|[^{ends}{others}]{{0,{longest // 3}}})"
    return rf"(?:{word}(?:[{ends}]|\z))*"


def _replacements(lowercase):
    """Google's cleaning and lower-casing: strings by the character that they replace."""
    found = google_characters.replacements(lowercase)
    hangul = google_characters.characters(google_characters.HANGUL_SYLLABLES) if lowercase else ()
    return found | {syllable: google_characters.decompose_hangul(syllable) for syllable in hangul}


def lower_final_sigma(texts: tf.Tensor) -> tf.Tensor:
    """Strings in which each capital sigma that str.lower() would take for a final one is a small final sigma."""
    pattern = f"({google_characters.BEFORE_FINAL_SIGMA})Σ({google_characters.AFTER_FINAL_SIGMA})"
    return tf.strings.regex_replace(texts, pattern, r"\1ς\2")
