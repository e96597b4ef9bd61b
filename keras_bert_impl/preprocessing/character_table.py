"""Replaces characters by none, one or several others inside a TensorFlow graph."""

import numpy as np

from keras_bert_impl.preprocessing.quiet_tensorflow import tf

ITSELF = -1  # in a replacement, the character that is replaced


class CharacterTable(tf.Module):
    """A replacement for each character, wherever it stands.

    Most of the 1,114,112 code points stay unchanged or are treated as their neighbours are. So a code point's upper
    bits select one of a few distinct pages of 256 entries, and its lower bits select the replacement in that page.

    Args:
        replacements: code points by the code point that they replace; ITSELF stands for that. Others stay.

    Input:  (batch, characters) RaggedTensor of code points.
    Output: (batch, characters, code points) RaggedTensor of code points.
    """

    def __init__(self, replacements: dict[int, tuple[int, ...]]):
        super().__init__(name="character_table")
        rows = {(ITSELF,): 0}
        choices = np.zeros(0x110000, np.int32)
        for code, replacement in replacements.items():
            choices[code] = rows.setdefault(replacement, len(rows))
        pages, page_of_block = np.unique(choices.reshape(-1, 256), axis=0, return_inverse=True)
        self._page_of_block = tf.constant(page_of_block.reshape(-1), tf.int32)
        self._pages = tf.constant(pages.reshape(-1), tf.int32)
        self._values = tf.constant([code for row in rows for code in row], tf.int32)
        self._lengths = tf.constant([len(row) for row in rows], tf.int64)

    def __call__(self, characters: tf.RaggedTensor) -> tf.RaggedTensor:
        codes = characters.flat_values
        page = tf.gather(self._page_of_block, codes // 256)
        rows = tf.RaggedTensor.from_row_lengths(self._values, self._lengths, validate=False)
        replaced = tf.gather(rows, tf.gather(self._pages, page * 256 + codes % 256))  # (all characters, code points)
        itself = tf.gather(codes, replaced.value_rowids())
        replaced = replaced.with_flat_values(tf.where(replaced.flat_values == ITSELF, itself, replaced.flat_values))
        return characters.with_flat_values(replaced)
