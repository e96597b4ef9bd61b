"""Looks characters up inside a TensorFlow graph, or replaces them by none, one or several others."""

import numpy as np

from keras_bert_impl.preprocessing.graphs.ragged import row_numbers
from keras_bert_impl.quiet_tensorflow import tf

ITSELF = -1  # in a replacement, the character that is replaced
CODE_POINTS = 0x110000


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
