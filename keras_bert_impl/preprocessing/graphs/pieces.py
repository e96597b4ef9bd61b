"""What the modules that cut texts into pieces in a TensorFlow graph share: words, and texts with masks."""

import re

from keras_bert_impl.preprocessing.graphs.characters import readable
from keras_bert_impl.preprocessing.graphs.ragged import of_texts, row_numbers, side_by_side
from keras_bert_impl.quiet_tensorflow import tf


class Pieces(tf.Module):
    """What cuts texts into the pieces of its `tokenizer`: (batch,) strings to a RaggedTensor (batch, pieces)."""

    def of_words(self, words: tf.RaggedTensor) -> tf.RaggedTensor:
        """The pieces of each word of each text, (batch, words) strings: (all words, pieces)."""
        return self(words.flat_values)

    def with_masks(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """As `__call__`, but each of the tokenizer's `mask_texts` in a text is the mask token, with the white space
        before it that the tokenizer strips there."""
        first, *others = self.tokenizer.mask_texts
        for other in others:
            texts = tf.strings.regex_replace(texts, re.escape(other), first)
        parts = tf.strings.split(texts, first)  # before, between and after the masks: (batch, masks + 1)
        texts = parts.flat_values
        if self.tokenizer.stripped:
            place = tf.range(tf.size(texts, tf.int64))
            is_last = tf.gather(parts.row_limits(), row_numbers(parts)) == place + 1
            spaces = f"[{re.escape(self.tokenizer.stripped)}]+$"
            texts = tf.where(is_last, texts, tf.strings.regex_replace(readable(texts), spaces, ""))
        # Each part but a text's first follows a mask.
        return of_texts(parts, side_by_side([self.tokenizer.mask_id, self(texts)]))[:, 1:]
