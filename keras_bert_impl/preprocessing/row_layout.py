"""Builds rows of pre-training data from ranges of a block's tokens: cut to length, laid out as [CLS] a [SEP] b [SEP].

This is done in NumPy and without padding: each token is copied once, from the text into its row.
"""

import numpy as np

from keras_bert_impl.preprocessing.numpy_randomness import Stream, random_bits, random_keys
from keras_bert_impl.preprocessing.ragged import Ragged, places
from keras_bert_impl.tokenizers.row_template import BERT_ROWS


def truncate_at_random(ranges, max_tokens, seed, number, example_index):
    """Cuts pairs to `max_tokens`; each token is removed from the front or the back of its segment with equal chance.

    As `truncate_seq_pair` of google-research/bert's create_pretraining_data.py: lengths as in "longest_first" of
    `packing.truncate_pairs`, but "sometimes from the front and sometimes from the back to add more randomness and avoid
    biases".

    Args:
        ranges: int64 (pairs, 2 segments, 2), first token and the one after the last.
        max_tokens: tokens left for both segments together.
        seed: integer scalar.
        number: integer scalar, of the file that the rows are written to; each cuts differently.
        example_index: int64 (pairs,), the number of each pair in the dataset.

    Returns: ranges of the same shape.
    """
    starts, lengths = ranges[..., 0], np.diff(ranges)[..., 0]  # (pairs, 2)
    kept = longest_first_lengths(*lengths.T, max_tokens)
    ranges = np.empty_like(ranges)
    for segment, stream in enumerate((Stream.TRUNCATE_FIRST, Stream.TRUNCATE_SECOND)):
        keys = random_keys(stream, seed, number, example_index)
        start = starts[:, segment] + _count_heads(keys, lengths[:, segment] - kept[segment])
        ranges[:, segment] = np.stack([start, start + kept[segment]], axis=1)
    return ranges


def longest_first_lengths(first_length, second_length, max_tokens):
    """The numbers of tokens that "longest_first" keeps of segments of these lengths; see `packing`."""
    second_kept = np.minimum(second_length, np.maximum(max_tokens - first_length, max_tokens // 2))
    return np.minimum(first_length, max_tokens - second_kept), second_kept


def lay_out(tokens, ranges, cls_id, sep_id, template=BERT_ROWS):
    """Rows [CLS] a [SEP] or [CLS] a [SEP] b [SEP], or as another template of a tokenizer says.

    Args:
        tokens: int32 (tokens,) of a block.
        ranges: int64 (rows, 1 or 2 segments, 2), first token and the one after the last.
        cls_id: id of [CLS].
        sep_id: id of [SEP].
        template: the RowTemplate of the tokenizer.

    Returns: dict of `token_ids`, int32 `Ragged` (rows, tokens), and `first_segment_length`, int64 (rows,), the
        length of [CLS] a [SEP], and of the whole row if the template has no second segment.
    """
    lengths = np.diff(ranges)[..., 0]  # (rows, segments)
    is_pair = lengths.shape[1] == 2
    before, between, after = template.control_of(cls_id, sep_id)
    behind = [between, after] if is_pair else [after]
    with_control = lengths + np.array([len(slot) for slot in behind])
    row_lengths = np.sum(with_control, axis=1) + len(before)
    first = np.cumsum(row_lengths) - row_lengths  # where each row begins in the ids of all rows
    segment_starts = first[:, np.newaxis] + len(before) + np.cumsum(with_control, axis=1) - with_control
    token_ids = np.empty(row_lengths.sum(), tokens.dtype)
    for starts, slot in ((first, before), *zip((segment_starts + lengths).T, behind, strict=True)):
        for place, index in enumerate(slot):
            token_ids[starts + place] = index
    token_ids[places(segment_starts, lengths)] = tokens[places(ranges[..., 0], lengths)]
    first_length = template.first_length(lengths[:, 0], is_pair) if template.second_segment else row_lengths
    return {"token_ids": Ragged(token_ids, row_lengths), "first_segment_length": first_length}


def _count_heads(keys, num_tosses):
    """Tosses `num_tosses` (pairs,) coins for each pair and counts the heads: (pairs,).

    It tosses 64 at a time: an endless sentence, such as a table, loses thousands of tokens.
    """
    words = (num_tosses + 63) // 64  # of 64 coins
    pair, word = np.repeat(np.arange(len(words)), words), places(np.zeros_like(words), words)
    coins = random_bits(keys[pair], word)
    unused = np.maximum(64 * (word + 1) - num_tosses[pair], 0).astype(np.uint64)
    heads = np.bitwise_count(coins >> unused)
    return np.bincount(pair, weights=heads, minlength=len(words)).astype(np.int64)
