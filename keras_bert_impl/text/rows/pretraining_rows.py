"""Documents to files of pre-training rows.

documents of ids -> sentence pairs -> cut to length -> laid out as [CLS] a [SEP] b [SEP] -> TFRecord

In NumPy and without padding: each token is copied once, from the text into its row.
"""

import dataclasses

import numpy as np

from keras_bert_impl.text.ragged import Ragged, concatenated, places, take
from keras_bert_impl.text.rows.example_files import write_examples
from keras_bert_impl.text.rows.masking import MaskingRule
from keras_bert_impl.text.rows.next_sentence import chunk_documents, cut_sentences, order_documents, running_sentences
from keras_bert_impl.text.rows.phrases import MARKS, with_marks_apart
from keras_bert_impl.text.rows.randomness import Stream, random_bits, random_keys, uniforms
from keras_bert_impl.text.rows.row_features import assign_rows, google_features, most_sequences, padded_rows
from keras_bert_impl.text.tokenizers.rows import kept_lengths

ROWS_AT_ONCE = 4096

# What a row holds: a pair, that is two segments and a label that tells how the second was chosen, or running text.
PAIRS = {"next_sentence": chunk_documents, "sentence_order": order_documents}
RUNS = ("full_sentences", "doc_sentences")


@dataclasses.dataclass(frozen=True)
class RowFormat:
    """The format of pre-training examples in a file: length, pairs, masks and packing.

    Args:
        sequence_length (int): number of tokens of an example, [CLS], [SEP] and padding included.
        predictions_per_sequence (int): largest number of predictions in an example with static masks.
        pairs (str, optional): content of an example. "next_sentence": two segments, the second random in half of the
            examples (Devlin et al. 2019); "sentence_order": two consecutive ones, swapped in half of the examples (Lan
            et al. 2020); "full_sentences" and "doc_sentences": as many sentences as fit, across documents or not (Liu
            et al. 2019). Default: "next_sentence".
        static_masks (bool, optional): whether masks are written, in google-research/bert's format, instead of drawn
            anew in each epoch. Default: False.
        packed (bool, optional): whether an example holds several pairs, so that there is hardly any padding.
            Default: False.
        masking_unit (str, optional): unit of static masks, see `MaskingRule`. Default: "token".
        phrases (bool, optional): whether phrases are marked, for masking by phrases. Default: False.
        short_sequence_probability (float, optional): fraction of documents that are split into shorter pairs.
            Default: 0.1, as in Google's code.
    """

    sequence_length: int
    predictions_per_sequence: int
    pairs: str = "next_sentence"
    static_masks: bool = False
    packed: bool = False
    masking_unit: str = "token"
    phrases: bool = False
    short_sequence_probability: float = 0.1


def write_rows(path, documents, tokenizer, rows, seed=0, number=0):
    """Turns documents into one file of pre-training examples.

    Args:
        path: the file.
        documents: `Ragged` (documents, sentences, tokens) of ids.
        tokenizer: the Tokenizer that produced the ids.
        rows: their RowFormat.
        seed: seed of every random choice.
        number: number of the file in the dataset. The same documents give different rows with another number.

    Returns: (examples written, tokens in them that are not padding, tokens of the documents that no example holds).
    Raises: ValueError if there are too few documents for pairs.
    """
    length = rows.sequence_length
    if rows.pairs in RUNS:
        count, rows_at = _rows_of_runs(documents, tokenizer, length, rows.pairs == "full_sentences")
        unused = 0
    else:
        count, rows_at, unused = _rows_of_pairs(documents, tokenizer, rows, seed, number)
    # Shuffled, so that rows of neighbouring text are far apart, whatever the size of a reader's shuffle buffer.
    draws = uniforms(random_keys(Stream.ORDER_IN_FILE, seed, number), np.arange(count))
    order = np.argsort(draws, kind="stable")
    first_index = number << 32  # no two rows of a dataset share a number, whichever process writes the others
    tokens = []

    def batches():
        for start in range(0, count, ROWS_AT_ONCE):
            batch = rows_at(order[start : start + ROWS_AT_ONCE])
            batch = with_marks_apart(batch) if rows.phrases else batch
            tokens.append(len(batch["input_ids"].values))
            index = first_index + start
            yield {**batch, "example_index": np.arange(index, index + len(batch["first_segment_length"]))}

    written = batches()
    if rows.packed:
        written = _packed(list(written), length, np.random.default_rng((seed, number)), first_index)
    elif rows.static_masks:
        masking = MaskingRule(tokenizer, rows.predictions_per_sequence, seed, rows.masking_unit)
        padded = (padded_rows(batch, length, tokenizer) for batch in written)
        written = (google_features(masking.mask(batch, 0)) for batch in padded)
    return write_examples(path, written), sum(tokens), unused


def _packed(batches, length, random, first_index):
    """Yields the features of rows of several pairs, from batches of pairs, which are without padding.

    Args:
        batches: list of dicts.
        length: tokens of a row.
        random: np.random.Generator, for the order of the rows.
        first_index: `example_index` of the first row; the others count from it.
    """
    if not batches:
        return
    columns = {name: concatenated([batch[name] for batch in batches]) for name in batches[0]}
    rows_of_pairs = assign_rows(columns["input_ids"].lengths, length, most_sequences(length))
    random.shuffle(rows_of_pairs)
    for start in range(0, len(rows_of_pairs), ROWS_AT_ONCE):
        part = rows_of_pairs[start : start + ROWS_AT_ONCE]
        pairs, counts = np.concatenate(part), np.array(list(map(len, part)))
        tokens = take(columns["input_ids"], pairs)
        first_pairs = np.cumsum(counts) - counts
        lengths = np.add.reduceat(tokens.lengths, first_pairs)
        marks = {MARKS: Ragged(take(columns[MARKS], pairs).values, lengths)} if MARKS in columns else {}
        yield {
            "input_ids": Ragged(tokens.values, lengths),
            **marks,
            "lengths": Ragged(tokens.lengths, counts),
            "first_segment_lengths": Ragged(columns["first_segment_length"][pairs], counts),
            "next_sentence_labels": Ragged(columns["next_sentence_labels"][pairs], counts),
            "example_index": np.arange(first_index + start, first_index + start + len(part)),
        }


def _rows_of_pairs(documents, tokenizer, rows, seed, number):
    """The number of rows [CLS] a [SEP] b [SEP], a function that makes the rows with given numbers, (rows,), and the
    number of tokens that no row holds.

    The rows are unmasked and have `next_sentence_labels`. All at once would take many times the memory of the text.
    """
    target_length = rows.sequence_length - tokenizer.template.num_control(is_pair=True)
    documents = cut_sentences(documents, target_length)
    ranges, labels = PAIRS[rows.pairs](documents, target_length, rows.short_sequence_probability, seed, number)
    ranges = truncate_at_random(ranges, target_length, seed, number, np.arange(len(ranges)))
    tokens = documents.flat_values

    def rows_at(index):
        return {**lay_out(tokens, ranges[index], tokenizer), "next_sentence_labels": labels[index]}

    begun, ended = (np.bincount(ranges[..., place].ravel(), minlength=len(tokens) + 1) for place in (0, 1))
    return len(ranges), rows_at, len(tokens) - np.count_nonzero(np.cumsum(begun - ended))


def _rows_of_runs(documents, tokenizer, sequence_length, cross_documents):
    """As `_rows_of_pairs`, for rows [CLS] a [SEP], which hold all tokens; their labels, which files need, are 0."""
    room = sequence_length - tokenizer.template.num_control(is_pair=False)
    tokens, ranges = running_sentences(documents, room, tokenizer.sep_id if cross_documents else None)

    def rows_at(index):
        laid_out = lay_out(tokens, ranges[index][:, np.newaxis], tokenizer)
        return {**laid_out, "next_sentence_labels": np.zeros(len(index), np.int32)}

    return len(ranges), rows_at


def truncate_at_random(ranges, max_tokens, seed, number, example_index):
    """Cuts pairs to `max_tokens`; each token is removed from the front or the back of its segment with equal chance.

    As `truncate_seq_pair` of google-research/bert's create_pretraining_data.py: lengths as in "longest_first" of
    `tokenizers.rows.kept_lengths`, but "sometimes from the front and sometimes from the back to add more randomness and
    avoid biases".

    Args:
        ranges: int64 (pairs, 2 segments, 2), first token and the one after the last.
        max_tokens: tokens left for both segments together.
        seed: integer scalar.
        number: integer scalar, of the file that the rows are written to; each cuts differently.
        example_index: int64 (pairs,), the number of each pair in the dataset.

    Returns: ranges of the same shape.
    """
    starts, lengths = ranges[..., 0], np.diff(ranges)[..., 0]  # (pairs, 2)
    kept = kept_lengths(*lengths.T, max_tokens, least=np.minimum, most=np.maximum)
    ranges = np.empty_like(ranges)
    for segment, stream in enumerate((Stream.TRUNCATE_FIRST, Stream.TRUNCATE_SECOND)):
        keys = random_keys(stream, seed, number, example_index)
        start = starts[:, segment] + _count_heads(keys, lengths[:, segment] - kept[segment])
        ranges[:, segment] = np.stack([start, start + kept[segment]], axis=1)
    return ranges


def lay_out(tokens, ranges, tokenizer):
    """Rows [CLS] a [SEP] or [CLS] a [SEP] b [SEP], or as another template of the tokenizer says.

    Args:
        tokens: int32 (tokens,) of a file.
        ranges: int64 (rows, 1 or 2 segments, 2), first token and the one after the last.
        tokenizer: that the tokens are of.

    Returns: dict of `input_ids`, int32 `Ragged` (rows, tokens), and `first_segment_length`, int64 (rows,), the
        length of [CLS] a [SEP], and of the whole row if the template has no second segment.
    """
    template = tokenizer.template
    lengths = np.diff(ranges)[..., 0]  # (rows, segments)
    is_pair = lengths.shape[1] == 2
    before, between, after = template.control_of(tokenizer.cls_id, tokenizer.sep_id)
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
    return {"input_ids": Ragged(token_ids, row_lengths), "first_segment_length": first_length}


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
