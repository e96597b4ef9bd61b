"""Turns text into WordPiece ids inside a TensorFlow graph, for tf.data and SavedModel."""

from keras_bert_impl.text_graphs.quiet_tensorflow import tf

# isort: split
import tensorflow_text as tf_text  # only now, because it imports TensorFlow, too

from keras_bert_impl.text_graphs.character_table import ITSELF, CharacterTable
from keras_bert_impl.text_graphs.masked_texts import joined_by_masks, parts_between_masks
from keras_bert_impl.tokenizers import WordPieceTokenizer, google_characters

# Characters on which FastBertTokenizer agrees with Google's original, cased and uncased: blocks of living scripts,
# without ligatures, digraphs, full-width and compatibility forms, capital sigma, zero-width and control characters.
_LETTERS = google_characters.parse_ranges(
    "30-39 41-5a 61-7a c0-d6 d8-de e0-f6 f8-131 14a-17e 180-1c3 1cd-1f0 388-3a1 3a4-3c1 3c3-3cf 400-52f 5d0-5ea "
    "620-64a 904-939 e01-e32 e34-e3a 1e00-1e99 1ea0-1eff 3041-3096 30a1-30fa ac00-d7a3 1f300-1f64f 1f680-1f6c5"
)
_WORD_ENDS = google_characters.parse_ranges(
    "9-a d 20-2f 3a-40 5b-60 7b-7e a1 a7 bf 2010 2012-2016 2018-2023 2027 2030-2032 3001-3003 3008-3011 3400-4db5 "
    "4e00-9fcc"
)


class WordPiece(tf.Module):
    """The ids of WordPieceTokenizer, hence of Google's original, computed by TensorFlow kernels.

    Rows on which tensorflow_text's FastBertTokenizer agrees with the original, nearly all prose, go through it; the
    others go through `_exact_pieces`, which is some six times slower. Bytes that are not UTF-8 are ignored.
    The vocabulary becomes a constant of the graph; a SavedModel needs no file beside it.

    Args:
        tokenizer: provides the vocabulary and whether to lower-case.

    Input:  (batch,) strings.
    Output: (batch, pieces) RaggedTensor of int32, without [CLS] and [SEP].
    """

    def __init__(self, tokenizer: WordPieceTokenizer):
        super().__init__(name="wordpiece")
        self.tokenizer = tokenizer
        self._lowercase = tokenizer.lowercase
        self._fast = tf_text.FastBertTokenizer(
            tokenizer.vocabulary,
            token_out_type=tf.int32,
            max_bytes_per_word=google_characters.MAX_CHARACTERS_PER_WORD,
            lower_case_nfd_strip_accents=tokenizer.lowercase,
        )
        self._cut_words = tf_text.FastWordpieceTokenizer(
            tokenizer.vocabulary,
            token_out_type=tf.int32,
            max_bytes_per_word=4 * google_characters.MAX_CHARACTERS_PER_WORD,
            no_pretokenization=True,
        )
        self._replace_characters = CharacterTable(_replacements(tokenizer.lowercase))

    def __call__(self, texts: tf.Tensor) -> tf.RaggedTensor:
        texts = tf.convert_to_tensor(texts, tf.string)
        is_fast = tf.strings.regex_full_match(texts, _fast_row())
        return tf.cond(
            tf.reduce_all(is_fast),
            lambda: self._fast.tokenize(texts),
            lambda: self._pieces_by_row(texts, is_fast),
        )

    def of_words(self, words: tf.RaggedTensor) -> tf.RaggedTensor:
        """The pieces of each word of each text, (batch, words) strings: (all words, pieces)."""
        return self(words.flat_values)

    def with_masks(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """As `__call__`, but an upper-case "[MASK]" in a text is the mask token: for filling masks."""
        parts = parts_between_masks(texts, self.tokenizer.mask_texts)
        return joined_by_masks(parts, self(parts.flat_values), self.tokenizer.mask_id)

    def _pieces_by_row(self, texts, is_fast):
        fast, exact = tf.where(is_fast)[:, 0], tf.where(~is_fast)[:, 0]
        pieces = [self._fast.tokenize(tf.gather(texts, fast)), self._exact_pieces(tf.gather(texts, exact))]
        return tf.gather(tf.concat(pieces, axis=0), tf.argsort(tf.concat([fast, exact], axis=0)))

    def _exact_pieces(self, texts):
        texts = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="ignore")
        if self._lowercase:
            texts = lower_final_sigma(texts)
        characters = self._replace_characters(tf.strings.unicode_decode(texts, "UTF-8")).merge_dims(1, 2)
        words = tf.strings.split(tf.strings.unicode_encode(characters, "UTF-8"))  # (batch, words)
        lengths = tf.strings.length(words.flat_values, unit="UTF8_CHAR")
        # Stands for any word that is too long: it exceeds the kernel's limit in bytes, and so becomes [UNK].
        too_long = "x" * (4 * google_characters.MAX_CHARACTERS_PER_WORD + 1)
        is_long = lengths > google_characters.MAX_CHARACTERS_PER_WORD
        words = words.with_flat_values(tf.where(is_long, too_long, words.flat_values))
        return self._cut_words.tokenize(words).merge_dims(1, 2)


def _fast_row():
    """A regular expression for texts that FastBertTokenizer may take: printable ASCII, or `_LETTERS` in short words.

    FastBertTokenizer limits a word to 200 bytes, the original to 200 characters. 22 letters have at most 198 bytes,
    even as decomposed Hangul: three letters of three bytes each.
    """
    letters, ends = map(google_characters.character_class, (_LETTERS, _WORD_ENDS))
    return rf"[\t\n\r -~]*|(?:[{letters}]{{0,22}}[{ends}])*[{letters}]{{0,22}}"


def _replacements(lowercase):
    """Google's cleaning, lower-casing and spacing: code points by the character that they replace."""
    alone = set(google_characters.characters(google_characters.isolated()))
    found = {ord(character): (32, ITSELF, 32) for character in alone}
    replacements = google_characters.replacements(lowercase)
    if lowercase:
        hangul = google_characters.characters(google_characters.HANGUL_SYLLABLES)
        replacements |= {syllable: google_characters.decompose_hangul(syllable) for syllable in hangul}
    for character, text in replacements.items():
        is_alone = character in alone or text in alone
        found[ord(character)] = tuple(map(ord, f" {text} " if is_alone else text))
    return found


def lower_final_sigma(texts: tf.Tensor) -> tf.Tensor:
    """Strings in which each capital sigma that str.lower() would take for a final one is a small final sigma."""
    pattern = f"({google_characters.BEFORE_FINAL_SIGMA})Σ({google_characters.AFTER_FINAL_SIGMA})"
    return tf.strings.regex_replace(texts, pattern, r"\1ς\2")
