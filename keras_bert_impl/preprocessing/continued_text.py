"""Rows whose first half continues that of the row before, for a model with a memory of it.

Yang et al. 2019, "XLNet", section 3.1, after `create_tfrecords` and `_split_a_and_b` of
zihangdai/xlnet's data_utils.py.
"""

import bisect

import numpy as np

from keras_bert_impl.preprocessing.next_sentence import SegmentPairs, boundaries
from keras_bert_impl.preprocessing.randomness import Stream, random_keys, uniform_integers, uniforms
from keras_bert_impl.preprocessing.sentence_order import joined_documents


def continue_documents(documents, end_id, reused_length, target_length, seed, number, backwards=False):
    """Cuts the documents of a file, joined to one text, into rows of three parts: running text, and two segments.

    The running text of a row has `reused_length` tokens, and follows that of the row before it. The first segment
    follows upon it: as many whole sentences as fit, or in half of the rows a random number of them. In these rows the
    second segment is what follows, in the others it begins with the sentence at a random place of the file, which may
    be text of the same row. Where a single sentence fills the room for both segments, the second is random.

    Args:
        documents: `Ragged` (documents, sentences, tokens) of a file. Empty sentences and documents are skipped.
        end_id: id of the token that is put behind each document.
        reused_length: tokens of the running text.
        target_length: tokens of both segments together.
        seed: integer scalar.
        number: number of the file in the dataset; with the seed it determines every draw.
        backwards: whether the text is read from its last token to its first.

    Returns: tokens, int32 (tokens,), and `SegmentPairs` of them in the order of the text, whose first ranges hold the
        running text, too. Both segments together may exceed the target: cut them on the right.
    """
    sentence_offsets, first_sentences = boundaries(documents)
    document_ends = sentence_offsets[first_sentences[1:]]
    tokens, stops, document_ends = joined_documents(documents.flat_values, sentence_offsets, document_ends, end_id)
    total = len(tokens)
    if backwards:
        tokens, stops, document_ends = tokens[::-1], total - stops[::-1], total - document_ends[::-1]
    first = np.arange(0, total - reused_length - target_length + 1, reused_length)
    begin = first + reused_length
    split, end, is_random = _split(stops.tolist(), begin.tolist(), target_length, seed, number)
    # The random segment has room for what the first one leaves, and whole sentences.
    length = np.maximum(1, target_length - (split - begin))
    keys = random_keys(Stream.OTHER_SENTENCE, seed, number, np.arange(len(first)))
    place = uniform_integers(keys, 0, total - length + 1)
    other_start = stops[np.searchsorted(stops, place, side="right") - 1]
    other_end = stops[np.searchsorted(stops, place + length)]
    second = np.where(is_random, (other_start, other_end), (split, end))
    pairs = SegmentPairs(
        first_range=np.stack([first, split], axis=1),
        second_range=second.T,
        next_sentence_labels=is_random.astype(np.int32),
        first_document=np.searchsorted(document_ends, first, side="right"),
        second_document=np.searchsorted(document_ends, second[0], side="right"),
    )
    return tokens, pairs


def _split(stops, begins, target_length, seed, number):
    """Where the first segment of each row ends, where the text ends that is left for the second one, int64 (rows,), and
    whether the second is random, bool (rows,).

    Args:
        stops: where sentences end, and 0.
        begins: where the first segments begin.
        target_length: tokens of both segments.
        seed: of the draws.
        number: of the file.
    """
    row = np.arange(len(begins))
    is_heads = (uniforms(random_keys(Stream.NEXT_SENTENCE, seed, number, row), 0) < 0.5).tolist()
    draw = uniforms(random_keys(Stream.SEGMENT_SPLIT, seed, number, row), 0).tolist()
    found = []
    for begin, heads, share in zip(begins, is_heads, draw, strict=True):
        last = bisect.bisect_left(stops, begin + target_length)
        cuts = stops[bisect.bisect_right(stops, begin) : last]
        split = cuts[int(share * len(cuts))] if cuts else stops[last]
        found.append((split, stops[last], heads or not cuts))
    split, end, is_random = np.array(found, np.int64).reshape(-1, 3).T
    return split, end, is_random.astype(bool)
