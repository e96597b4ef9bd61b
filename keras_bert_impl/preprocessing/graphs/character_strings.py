"""Replaces characters of strings by other strings, in one TensorFlow operation."""

import flatbuffers
import numpy as np

from keras_bert_impl.quiet_tensorflow import tf

# isort: split
import tensorflow_text as tf_text  # only now, because it imports TensorFlow, too

# Of tensorflow_text's fast_bert_normalizer.h: a value is this bit, the place of the new string, and its bytes.
REPLACED, LENGTH_BITS = 1 << 30, 6
# Of darts-clone, whose tries it reads: a node's first byte is its character, and a leaf has the highest bit.
HAS_LEAF, OFFSET_BITS, LEAF = 1 << 8, 10, 1 << 31
ROOT, BLOCK = 256, 64  # places for the bytes that can begin a character, and for those that can continue it
CONTINUING = 0x80  # the first byte of the latter


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
