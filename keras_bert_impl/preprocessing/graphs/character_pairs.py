"""Turns text into ids of byte-pair encoding over characters, mmBERT's, inside a TensorFlow graph, for SavedModel."""

from keras_bert_impl.preprocessing.graphs.byte_pairs import BLANK, BytePairs
from keras_bert_impl.preprocessing.graphs.ragged import row_numbers
from keras_bert_impl.preprocessing.graphs.sentence_pieces import named_kernel
from keras_bert_impl.preprocessing.graphs.utf8 import character_starts
from keras_bert_impl.quiet_tensorflow import tf
from keras_bert_impl.text.tokenizers import MmBertTokenizer
from keras_bert_impl.text.tokenizers.mmbert_tokenizer import BYTES, SPACE
from keras_bert_impl.text.tokenizers.sentence_piece_file import BYTE, CONTROL, NORMAL, UNKNOWN, byte_pair_model


class CharacterPairs(BytePairs):
    """The ids of a MmBertTokenizer, computed by the kernel of SentencePiece, whose merges are those of its vocabulary:
    it merges any two pieces that are a third one together, the one of the least id first, as Gemma's tokenizer was
    learned and its merges were made.

    Arguments and errors are those of BytePairs; ValueError if the merges are others.
    """

    _blanks = (BLANK, ord(SPACE))
    _trims_first_blank = True

    def _keep_vocabulary(self, tokenizer, ids):
        self._pairs_kernel = named_kernel(model_of(tokenizer), tf.int32)

    def _pieces(self, characters):
        texts = tf.strings.unicode_encode(characters, "UTF-8")
        ids, begins, ends = self._pairs_kernel.tokenize_with_offsets(texts)
        starts = character_starts(characters.flat_values)
        # Bytes of all texts one after another, then the characters that they belong to.
        before = tf.gather(starts, tf.gather(tf.cast(characters.row_starts(), tf.int32), row_numbers(ids)))
        first, after = (_character_at(starts, before + tf.cast(one.flat_values, tf.int32)) for one in (begins, ends))
        return ids.flat_values, *self._of_whole_characters(ids.flat_values, first, after - 1)

    def _of_whole_characters(self, ids, first, last):
        """The characters of pieces, of which the kernel gives that of several bytes to the last of them alone."""
        has_some = last >= first
        owner = tf.cumsum(tf.cast(has_some, tf.int32), exclusive=True)
        return (tf.gather(tf.boolean_mask(places, has_some), owner) for places in (first, last))


def _character_at(starts, byte):
    """The numbers of the characters that begin at bytes of all texts together."""
    return tf.searchsorted(starts, byte)


def model_of(tokenizer: MmBertTokenizer) -> bytes:
    """The model file of SentencePiece that cuts words as the tokenizer does.

    Raises: ValueError if there is none, since the merges are not all those that the vocabulary allows, piece by piece.
    """
    control, words, names = tokenizer.dialect.control, set(tokenizer.vocabulary), set(BYTES)
    # No word holds a space but at its beginning, and so none of these pieces.
    merges = [pair for pair in tokenizer.merges if SPACE not in "".join(pair)[1:] and "".join(pair) not in control]
    made = list(dict.fromkeys(map("".join, merges)))
    parts = {*made, *(token for token in words if len(token) == 1)}
    place = {piece: number for number, piece in enumerate(made)}
    order = [place["".join(pair)] for pair in merges]
    allowed = {
        (piece[:cut], piece[cut:])
        for piece in made
        for cut in range(1, len(piece))
        if piece[:cut] in parts and piece[cut:] in parts
    }
    reached = {pair for pair in merges if pair[0] in parts and pair[1] in parts}
    if order != sorted(order) or allowed != reached or place.keys() & names:
        raise ValueError(
            "the merges are not those of a SentencePiece model, which merges any two pieces that are a third one "
            "together: a graph cannot follow them. Export to the formats onnx, openvino or litert."
        )

    def typed(token):
        if token == control[3]:
            return token, 0.0, UNKNOWN
        if token in names:
            return token, 0.0, BYTE
        if token in place or (len(token) == 1 and token not in control):
            return token, float(-place.get(token, len(made))), NORMAL
        return token, 0.0, CONTROL  # which no text gives

    # The library wants all bytes, also those that have a character of their own in the vocabulary.
    missing = [name for name in BYTES if name not in words]
    unknown, beginning, end, padding = (control[place] for place in (3, 0, 2, 1))
    return byte_pair_model(list(map(typed, [*tokenizer.vocabulary, *missing])), (unknown, beginning, end, padding))
