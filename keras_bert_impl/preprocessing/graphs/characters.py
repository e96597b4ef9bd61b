"""Characters of strings in TensorFlow graphs: their bytes, and tables that look them up or replace them."""

import functools
import sys

import flatbuffers
import numpy as np

from keras_bert_impl.quiet_tensorflow import tf

# isort: split
import tensorflow_text as tf_text  # only now, because it imports TensorFlow, too

from keras_bert_impl.preprocessing.graphs.ragged import row_numbers

ITSELF = -1  # in a replacement, the character that is replaced
CODE_POINTS = 0x110000
# Of tensorflow_text's fast_bert_normalizer.h: a value is this bit, the place of the new string, and its bytes.
REPLACED, LENGTH_BITS = 1 << 30, 6
# Of darts-clone, whose tries it reads: a node's first byte is its character, and a leaf has the highest bit.
HAS_LEAF, OFFSET_BITS, LEAF = 1 << 8, 10, 1 << 31
ROOT, BLOCK = 256, 64  # places for the bytes that can begin a character, and for those that can continue it
CONTINUING = 0x80  # the first byte of the latter


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


class CodePointTable(tf.Module):
    """A number for each code point.

    Most of them have the number of their neighbours. So a code point's upper bits select one of a few distinct pages of
    256 entries, and its lower bits select the number in that page.

    Args:
        numbers: array (CODE_POINTS,), int32.

    Input:  code points, int32.
    Output: their numbers, int32, of the same shape.
    """

    def __init__(self, numbers: np.ndarray):
        super().__init__(name="code_point_table")
        pages, page_of_block = np.unique(numbers.reshape(-1, 256), axis=0, return_inverse=True)
        self._page_of_block = tf.constant(page_of_block.reshape(-1), tf.int32)
        self._pages = tf.constant(pages.reshape(-1), tf.int32)

    def __call__(self, codes: tf.Tensor) -> tf.Tensor:
        block, place = tf.bitwise.right_shift(codes, 8), tf.bitwise.bitwise_and(codes, 255)
        return tf.gather(self._pages, tf.gather(self._page_of_block, block) * 256 + place)


class CharacterTable(tf.Module):
    """A replacement for each character, wherever it stands.

    Args:
        replacements: code points by the code point that they replace; ITSELF stands for that. Others stay.

    Input:  (batch, characters) RaggedTensor of code points.
    Output: (batch, characters, code points) RaggedTensor of code points.
    """

    def __init__(self, replacements: dict[int, tuple[int, ...]]):
        super().__init__(name="character_table")
        rows = {(ITSELF,): 0}
        choices = np.zeros(CODE_POINTS, np.int32)
        for code, replacement in replacements.items():
            choices[code] = rows.setdefault(replacement, len(rows))
        self._choice = CodePointTable(choices)
        self._values = tf.constant([code for row in rows for code in row], tf.int32)
        self._lengths = tf.constant([len(row) for row in rows], tf.int64)

    def __call__(self, characters: tf.RaggedTensor) -> tf.RaggedTensor:
        codes = characters.flat_values
        rows = tf.RaggedTensor.from_row_lengths(self._values, self._lengths, validate=False)
        replaced = tf.gather(rows, self._choice(codes))  # (all characters, code points)
        itself = tf.gather(codes, row_numbers(replaced))
        replaced = replaced.with_flat_values(tf.where(replaced.flat_values == ITSELF, itself, replaced.flat_values))
        return characters.with_flat_values(replaced)


def character_strings(replacements: dict[str, str]) -> tf_text.FastBertNormalizer:
    """A tensorflow_text normalizer whose `normalize` replaces each of these characters wherever it stands.

    It is the operation of FastBertTokenizer with another table. The table becomes a constant of the graph.

    Args:
        replacements: strings by the character that they replace, of at most 63 bytes; "" drops it. All other characters
            stay. The strings that are normalized have to be valid UTF-8.

    Raises: ValueError if a replacement is longer.
    """
    return tf_text.FastBertNormalizer(model_buffer=tf.constant(_model(replacements), tf.uint8))


def _model(replacements):
    """The file of tensorflow_text's normalizer, a FlatBuffer, as an array of bytes."""
    places, pool = {}, b""
    for text in dict.fromkeys(replacements.values()):
        encoded = text.encode()
        places[text] = REPLACED | len(pool) << LENGTH_BITS | len(encoded)
        pool += encoded
    values = {character.encode(): places[text] for character, text in replacements.items()}
    of_zero = values.pop(b"\0", 0)  # which a trie cannot hold
    builder = flatbuffers.Builder()
    trie = builder.CreateNumpyVector(_trie(values))
    strings = builder.CreateNumpyVector(np.frombuffer(pool, np.uint8))
    builder.StartObject(4)
    builder.PrependUOffsetTRelativeSlot(1, trie, 0)
    builder.PrependInt32Slot(2, of_zero, 0)
    builder.PrependUOffsetTRelativeSlot(3, strings, 0)
    builder.Finish(builder.EndObject())
    return np.frombuffer(bytes(builder.Output()), np.uint8)


def _trie(values):
    """Numbers by characters in UTF-8 as a double array, uint32, laid out as darts-clone does.

    A byte leads from a node to the place that is the node's own place xor its offset xor the byte. First stand the
    bytes that can begin a character, then a block for each beginning of characters, then the numbers.
    """
    beginnings = sorted({key[:size] for key in values for size in range(1, len(key))})
    numbers = sorted(set(values.values()))
    first_number = ROOT + BLOCK * len(beginnings)
    bases = {begin: (ROOT + BLOCK * number) ^ CONTINUING for number, begin in enumerate(beginnings)} | {b"": 0}
    leaves = {number: first_number + index for index, number in enumerate(numbers)}
    # In whole pages, so that no byte, whatever it is, leads out of the array.
    units = np.zeros(-(-(first_number + len(numbers)) // ROOT) * ROOT, np.uint32)

    def place_of(key):
        return bases[key[:-1]] ^ key[-1]

    for key in beginnings:
        place = place_of(key)
        units[place] = (place ^ bases[key]) << OFFSET_BITS | key[-1]
    for key, number in values.items():
        place = place_of(key)
        units[place] = (place ^ leaves[number]) << OFFSET_BITS | HAS_LEAF | key[-1]
    for number, place in leaves.items():
        units[place] = LEAF | number
    return units
