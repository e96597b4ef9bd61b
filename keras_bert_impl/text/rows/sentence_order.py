"""Pairs of consecutive segments, half of them swapped, and rows of running sentences without pairs.

Sentence order: Lan et al. 2020, "ALBERT", section 3.1. FULL-SENTENCES and DOC-SENTENCES: Liu et al. 2019, "RoBERTa",
section 4.2.
"""

import bisect

import numpy as np

from keras_bert_impl.text.rows.next_sentence import (
    boundaries,
    cut_chunks,
    target_lengths,
)
from keras_bert_impl.text.rows.randomness import Stream, random_keys, uniforms


def order_documents(documents, target_length, short_sequence_probability, seed, number):
    """Cuts documents into chunks of whole sentences and each chunk into two segments, swapped in half of the cases.

    The chunks are those of `next_sentence.chunk_documents`. A chunk of one sentence is split in its middle. A
    chunk of one token gives no pair; ALBERT's code would take its second segment from another document.

    Args: as `next_sentence.chunk_documents`.
    Returns: likewise, but the labels are 0 if the segments are in their original order, 1 if swapped.
    """
    sentence_offsets, first_sentences = boundaries(documents)
    targets = target_lengths(len(first_sentences) - 1, target_length, short_sequence_probability, seed, number)
    chunks = cut_chunks(sentence_offsets, first_sentences, targets, seed, number, with_random=False)
    _, start, split, end, _ = chunks
    begin, middle, stop = sentence_offsets[start], sentence_offsets[split], sentence_offsets[end]
    middle = np.where(split == end, (begin + stop) // 2, middle)
    keep = middle > begin
    swapped = uniforms(random_keys(Stream.SENTENCE_ORDER, seed, number, start), 0) < 0.5
    ranges = np.moveaxis(np.array([[begin, middle], [middle, stop]]), 2, 0)  # (pairs, 2 segments, 2)
    ranges = np.where(swapped[:, None, None], ranges[:, ::-1], ranges)
    return ranges[keep], swapped[keep].astype(np.int32)


def joined_documents(tokens, sentence_offsets, document_ends, end_id):
    """Puts a token behind each document, which counts as a sentence of its own.

    Args:
        tokens: int32 (tokens,).
        sentence_offsets: the first token of each sentence, and the number of tokens.
        document_ends: the token behind the last one of each document.
        end_id: id of the token.

    Returns: the same three, with the new tokens.
    """
    moved = sentence_offsets + np.searchsorted(document_ends, sentence_offsets, side="left")
    new_ends = document_ends + 1 + np.arange(len(document_ends))
    return np.insert(tokens, document_ends, end_id), np.union1d(moved, new_ends), new_ends


def running_sentences(documents, max_tokens, sep_id=None):
    """Rows of as many consecutive whole sentences as fit; a sentence longer than a row is cut.

    Args:
        documents: `Ragged` (documents, sentences, tokens).
        max_tokens: tokens of a row, without [CLS] and the last [SEP].
        sep_id: id of [SEP], to be put between documents that share a row (FULL-SENTENCES). None: rows end with their
            document (DOC-SENTENCES).

    Returns: tokens, int32 (tokens,), and ranges of them, int64 (rows, 2), first token and the one after the last.
    """
    sentence_offsets, first_sentences = boundaries(documents)
    tokens = documents.flat_values
    document_ends = sentence_offsets[first_sentences[1:]]
    if sep_id is not None:
        tokens, sentence_offsets, document_ends = joined_documents(tokens, sentence_offsets, document_ends, sep_id)
        document_ends = document_ends[-1:]
    stops, ranges = sentence_offsets.tolist(), []
    place, document = 0, 0
    while place < stops[-1]:
        while document_ends[document] <= place:
            document += 1
        limit = min(place + max_tokens, int(document_ends[document]))
        end = stops[bisect.bisect_right(stops, limit) - 1]
        end = end if end > place else limit  # a sentence that does not fit
        first, last = place, end
        if sep_id is not None:
            first += tokens[first] == sep_id
            last -= last > first and tokens[last - 1] == sep_id
        if last > first:
            ranges.append((first, last))
        place = end
    return tokens, np.array(ranges, np.int64).reshape(-1, 2)
