"""Texts with masks in TensorFlow graphs: each mask is one token, and the parts between masks are cut by a tokenizer."""

import re

from keras_bert_impl.preprocessing.graphs.ragged import of_texts, row_numbers, side_by_side
from keras_bert_impl.preprocessing.graphs.utf8 import readable
from keras_bert_impl.quiet_tensorflow import tf


class Pieces(tf.Module):
    """What cuts texts into the pieces of its `tokenizer`: (batch,) strings to a RaggedTensor (batch, pieces)."""

    def of_words(self, words: tf.RaggedTensor) -> tf.RaggedTensor:
        """The pieces of each word of each text, (batch, words) strings: (all words, pieces)."""
        return self(words.flat_values)

    def with_masks(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """As `__call__`, but each of the tokenizer's `mask_texts` in a text is the mask token, with the white space
        before it that the tokenizer strips there."""
        parts = parts_between_masks(texts, self.tokenizer.mask_texts)
        texts = parts.flat_values
        if self.tokenizer.stripped:
            place = tf.range(tf.size(texts, tf.int64))
            is_last = tf.gather(parts.row_limits(), row_numbers(parts)) == place + 1
            spaces = f"[{re.escape(self.tokenizer.stripped)}]+$"
            texts = tf.where(is_last, texts, tf.strings.regex_replace(readable(texts), spaces, ""))
        return joined_by_masks(parts, self(texts), self.tokenizer.mask_id)


def parts_between_masks(texts, mask_texts):
    """What stands before, between and after the masks of texts: RaggedTensor (batch, masks + 1) of strings.

    Args:
        texts: (batch,) strings.
        mask_texts: the strings that mean a mask.
    """
    first, *others = mask_texts
    for other in others:
        texts = tf.strings.regex_replace(texts, re.escape(other), first)
    return tf.strings.split(texts, first)


def joined_by_masks(parts, pieces, mask_id):
    """The pieces of parts (all parts, pieces), with a mask between those of a text: RaggedTensor (batch, pieces)."""
    return of_texts(parts, side_by_side([mask_id, pieces]))[:, 1:]  # each part but a row's first follows a mask
