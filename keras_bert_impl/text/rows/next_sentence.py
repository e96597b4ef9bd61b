"""Sentence pairs for pre-training: half of them are consecutive text, half come from two different documents.

Devlin et al. 2019, section 3.1, task 2, after `create_instances_from_document` of google-research/bert's
create_pretraining_data.py. Google holds the whole corpus as Python lists of strings. Here a block of documents is
one flat array of token ids with boundaries, and `chunk_documents` decides which ranges of it form pairs.

Rows of other kinds are cut here, too: pairs of consecutive segments, half of them swapped (sentence order; Lan et al.
2020, "ALBERT", section 3.1), and running sentences without pairs (FULL-SENTENCES and DOC-SENTENCES; Liu et al. 2019,
"RoBERTa", section 4.2).
"""

from bisect import bisect_left, bisect_right

import numpy as np

from keras_bert_impl.text.ragged import Ragged
from keras_bert_impl.text.rows.randomness import Stream, random_keys, uniform_integers, uniforms


def chunk_documents(documents, target_length, short_sequence_probability, seed, number):
    """Cuts documents into chunks of whole sentences and each chunk into a pair of segments.

    A chunk takes sentences until it has `target_length` tokens or the document ends. The first segment gets a
    random number of them, at least one. In half of the chunks, and in every chunk of a single sentence, the second
    segment is replaced by sentences of another document, and the chunk's unused sentences begin the next chunk, so
    that no text is lost. Hence a little more than half of the pairs are random, as in Google's data.

    Differences from Google: the other document comes from the same file, not from the whole corpus; and it is always
    a different document, whereas Google gives up after ten draws.

    Args:
        documents: `Ragged` (documents, sentences, tokens) of a file. Empty sentences and documents are skipped.
        target_length: tokens wanted in a pair. BERT: sequence_length - 3, for [CLS] and two [SEP].
        short_sequence_probability: share of documents cut with a target drawn from [2, target_length] instead, so
            that the model also sees short inputs before fine-tuning. BERT: 0.1. One draw per document, as in Google's
            code.
        seed: integer scalar.
        number: number of the file in the dataset; with the seed it determines every draw. A further pass over
            the same text (Google's `dupe_factor`) uses new numbers, and so cuts the text differently.

    Returns: in the order of the text, ranges of the flat tokens, int64 (pairs, 2 segments, 2), first token and the one
        after the last; int32 (pairs,), 0 where the second segment follows the first (IsNext), 1 where it is random.
        Segments may exceed the target by the rest of their last sentence: cut them with
        `pretraining_rows.truncate_at_random`.
    Raises: ValueError if there are fewer than two documents.
    """
    sentence_offsets, first_sentences = boundaries(documents)
    num_documents = len(first_sentences) - 1
    if num_documents < 2:
        raise ValueError(
            f"Next-sentence pairs need at least two documents, found {num_documents} in file {number}: "
            "give more text, or put a blank line between documents."
        )
    targets = target_lengths(num_documents, target_length, short_sequence_probability, seed, number)
    document, start, split, end, is_random = cut_chunks(sentence_offsets, first_sentences, targets, seed, number)
    first_tokens = sentence_offsets[split] - sentence_offsets[start]
    other_start, other_end = _other_sentences(
        sentence_offsets, first_sentences, document, start, targets[document] - first_tokens, seed, number
    )
    second_start, second_end = np.where(is_random, (other_start, other_end), (split, end))
    sentences = np.array([[start, split], [second_start, second_end]])  # (2 segments, 2, pairs)
    return sentence_offsets[np.moveaxis(sentences, 2, 0)], is_random.astype(np.int32)


def cut_sentences(documents, target_length):
    """The same documents, in which a sentence of more than `target_length` tokens is several of about half as many.

    A pair would keep `target_length` tokens of such a sentence, and half of these if a random second segment follows.
    """
    lengths, size = documents.values.lengths, (target_length + 1) // 2
    parts = np.where(lengths > target_length, -(-lengths // size), 1)
    last = np.cumsum(parts)
    cut = np.full(parts.sum(), size, np.int64)
    cut[last - 1] = lengths - (parts - 1) * size
    counts = np.diff(np.concatenate([[0], last])[documents.offsets])
    return Ragged(Ragged(documents.flat_values, cut), counts)


def boundaries(documents):
    """First token of each sentence, and first sentence of each document; both arrays end with the total."""
    sentence_offsets = documents.values.offsets
    document_offsets = sentence_offsets[documents.offsets]
    # An empty sentence repeats an offset, and so does an empty document.
    sentence_offsets, document_offsets = np.unique(sentence_offsets), np.unique(document_offsets)
    return sentence_offsets, np.searchsorted(sentence_offsets, document_offsets)


def target_lengths(num_documents, target_length, short_sequence_probability, seed, number):
    """The tokens wanted in the pairs of each document: (documents,)."""
    document = np.arange(num_documents)
    is_short = uniforms(random_keys(Stream.SHORT_DOCUMENT, seed, number, document), 0)
    keys = random_keys(Stream.SHORT_LENGTH, seed, number, document)
    short_length = 2 + uniform_integers(keys, 0, target_length - 1)  # in [2, target_length]
    return np.where(is_short < short_sequence_probability, short_length, target_length)


def cut_chunks(sentence_offsets, first_sentences, targets, seed, number, with_random=True):
    """Decides, chunk after chunk, where it ends, where it splits, and whether its second segment is random.

    Without `with_random` no second segment is random, and in a chunk of a single sentence it is empty.

    This is a loop because a chunk begins where the previous one left text unused. The draws of a chunk are indexed by
    its first sentence. The loop uses lists of Python integers: NumPy scalars would make it five times slower.

    Returns: five arrays (pairs,): document, first sentence, sentence of the split, sentence after the last, and
        bool whether the second segment is random.
    """
    sentence = np.arange(len(sentence_offsets) - 1)
    split_draw = uniforms(random_keys(Stream.SEGMENT_SPLIT, seed, number, sentence), 0).tolist()
    is_heads = (uniforms(random_keys(Stream.NEXT_SENTENCE, seed, number, sentence), 0) < 0.5).tolist()
    offsets, targets, first_sentences = sentence_offsets.tolist(), targets.tolist(), first_sentences.tolist()
    chunks = []
    for document, target in enumerate(targets):
        start, document_end = first_sentences[document], first_sentences[document + 1]
        while start < document_end:
            end = bisect_left(offsets, offsets[start] + target, start + 1, document_end)
            split = start + 1 + int(split_draw[start] * (end - start - 1))
            is_random = with_random and (end - start == 1 or is_heads[start])
            chunks.append((document, start, split, end, is_random))
            start = split if is_random else end
    *numbers, is_random = np.array(chunks, np.int64).T
    return (*numbers, is_random.astype(bool))


def _other_sentences(sentence_offsets, first_sentences, document, start, num_tokens, seed, number):
    """For each chunk, sentences from another document that hold `num_tokens` or run to that document's end.

    Returns: two arrays (pairs,): first sentence, sentence after the last.
    """
    num_documents = len(first_sentences) - 1
    keys = random_keys(Stream.OTHER_DOCUMENT, seed, number, start)
    other = uniform_integers(keys, 0, num_documents - 1)
    other += other >= document  # skips the chunk's own document, so that every other one is equally likely
    keys = random_keys(Stream.OTHER_SENTENCE, seed, number, start)
    num_sentences = first_sentences[other + 1] - first_sentences[other]
    other_start = first_sentences[other] + uniform_integers(keys, 0, num_sentences)
    other_end = np.searchsorted(sentence_offsets, sentence_offsets[other_start] + num_tokens)
    # At least one sentence, even if the first segment alone reached the target.
    return other_start, np.clip(other_end, other_start + 1, first_sentences[other + 1])


def order_documents(documents, target_length, short_sequence_probability, seed, number):
    """Cuts documents into chunks of whole sentences and each chunk into two segments, swapped in half of the cases.

    The chunks are those of `chunk_documents`. A chunk of one sentence is split in its middle. A
    chunk of one token gives no pair; ALBERT's code would take its second segment from another document.

    Args: as `chunk_documents`.
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
        end = stops[bisect_right(stops, limit) - 1]
        end = end if end > place else limit  # a sentence that does not fit
        first, last = place, end
        if sep_id is not None:
            first += tokens[first] == sep_id
            last -= last > first and tokens[last - 1] == sep_id
        if last > first:
            ranges.append((first, last))
        place = end
    return tokens, np.array(ranges, np.int64).reshape(-1, 2)
