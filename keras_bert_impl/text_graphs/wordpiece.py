"""Turns text into WordPiece ids inside a TensorFlow graph, for tf.data and SavedModel."""

from keras_bert_impl.text_graphs.quiet_tensorflow import tf

# isort: split
import tensorflow_text as tf_text  # only now, because it imports TensorFlow, too

from keras_bert_impl.text_graphs.character_strings import character_strings
from keras_bert_impl.text_graphs.masked_texts import joined_by_masks, parts_between_masks
from keras_bert_impl.text_graphs.ragged import of_texts
from keras_bert_impl.text_graphs.utf8 import readable
from keras_bert_impl.tokenizers import WordPieceTokenizer, google_characters

# Where FastWordpieceTokenizer, whose Unicode is a later one, finds punctuation that the original does not know: these
# characters, and the scripts beyond U+FFFF but for pictographs and Chinese, to which new ones are added.
# tests/text_graphs/test_wordpiece.py looks at all characters that there are. Surrogates are no UTF-8, but match.
_UNCERTAIN = google_characters.parse_ranges("1b4e-1b4f 1b7f d800-dfff 10000-1efff 1fb00-1ffff 30000-10ffff")
# Some characters at which words end for certain; that there are more only makes words seem longer.
_WORD_ENDS = google_characters.parse_ranges(
    "9-a d 20-2f 3a-40 5b-60 7b-7e a1 a7 bf 2010 2012-2016 2018-2023 2027 2030-2032 3001-3003 3008-3011 3400-4db5 "
    "4e00-9fcc"
)
_ALONE = f"[{google_characters.character_class(google_characters.isolated())}]"
_MOST_BYTES = 4 * google_characters.MAX_CHARACTERS_PER_WORD


class WordPiece(tf.Module):
    """The ids of WordPieceTokenizer, hence of Google's original, computed by TensorFlow kernels.

    The kernels are those of tensorflow_text's FastBertTokenizer, with Google's replacements of characters in place of
    its own. Rows with a character that depends on its neighbours, a capital sigma, or with words so long that they may
    be cut off go through `_exact_pieces`, which is some times slower. Bytes that are not UTF-8 are ignored.
    The vocabulary becomes a constant of the graph; a SavedModel needs no file beside it.

    Args:
        tokenizer: provides the vocabulary and whether to lower-case.

    Input:  (batch,) strings.
    Output: (batch, pieces) RaggedTensor of int32, without [CLS] and [SEP].
    """

    def __init__(self, tokenizer: WordPieceTokenizer):
        super().__init__(name="wordpiece")
        self.tokenizer = tokenizer
        options = {"token_out_type": tf.int32, "max_bytes_per_word": _MOST_BYTES}
        self._cut_texts = tf_text.FastWordpieceTokenizer(tokenizer.vocabulary, **options)
        self._cut_words = tf_text.FastWordpieceTokenizer(tokenizer.vocabulary, no_pretokenization=True, **options)
        self._table = character_strings(_replacements(tokenizer.lowercase))
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

    def of_words(self, words: tf.RaggedTensor) -> tf.RaggedTensor:
        """The pieces of each word of each text, (batch, words) strings: (all words, pieces)."""
        return self(words.flat_values)

    def with_masks(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """As `__call__`, but an upper-case "[MASK]" in a text is the mask token: for filling masks."""
        parts = parts_between_masks(texts, self.tokenizer.mask_texts)
        return joined_by_masks(parts, self(parts.flat_values), self.tokenizer.mask_id)

    def _fast_pieces(self, texts):
        return self._cut_texts.tokenize(self._table.normalize(texts))

    def _pieces_by_row(self, texts, is_fast):
        fast, exact = tf.where(is_fast)[:, 0], tf.where(~is_fast)[:, 0]
        pieces = [self._fast_pieces(tf.gather(texts, fast)), self._exact_pieces(tf.gather(texts, exact))]
        return tf.gather(tf.concat(pieces, axis=0), tf.math.invert_permutation(tf.concat([fast, exact], axis=0)))

    def _exact_pieces(self, texts):
        texts = readable(texts)
        if self.tokenizer.lowercase:
            texts = lower_final_sigma(texts)
        texts = tf.strings.regex_replace(self._table.normalize(texts), _ALONE, r" \0 ")
        words = tf.strings.split(texts)  # (batch, words)
        lengths = tf.strings.length(words.flat_values, unit="UTF8_CHAR")
        # Stands for any word that is too long: it exceeds the kernel's limit in bytes, and so becomes [UNK].
        too_long, is_long = "x" * (_MOST_BYTES + 1), lengths > google_characters.MAX_CHARACTERS_PER_WORD
        pieces = self._cut_words.tokenize(tf.where(is_long, too_long, words.flat_values))  # (all words, pieces)
        return of_texts(words, pieces)


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
