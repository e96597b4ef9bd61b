"""Pre-training data: documents to examples on disk, and what both ways of reading them have in common.

documents -> WordPiece -> sentence pairs -> truncate -> lay out -> TFRecord   `shards`, `write_rows`
TFRecord  -> interleave and shuffle -> parse -> mask -> batches               `numpy_data`, `tf_data`
"""

import numpy as np

from keras_bert_impl import features
from keras_bert_impl.preprocessing.examples import (
    write_masked_examples,
    write_packed_examples,
    write_unmasked_examples,
)
from keras_bert_impl.preprocessing.next_sentence import chunk_documents
from keras_bert_impl.preprocessing.numpy_masking import mask_tokens
from keras_bert_impl.preprocessing.numpy_parsing import pad_rows
from keras_bert_impl.preprocessing.numpy_randomness import Stream, random_keys, uniforms
from keras_bert_impl.preprocessing.phrases import with_marks_apart
from keras_bert_impl.preprocessing.row_layout import lay_out, truncate_at_random
from keras_bert_impl.preprocessing.row_packing import assign_rows, most_sequences
from keras_bert_impl.preprocessing.sentence_order import order_documents, running_sentences

ROWS_AT_ONCE = 4096

# What a row holds: a pair, that is two segments and a label that tells how the second was chosen, or running text.
PAIRS = {"next_sentence": chunk_documents, "sentence_order": order_documents}
RUNS = ("full_sentences", "doc_sentences")


def write_rows(
    path,
    documents,
    tokenizer,
    *,
    sequence_length,
    predictions_per_sequence,
    pairs="next_sentence",
    static_masks=False,
    packed=False,
    masking_unit="token",
    phrases=False,
    short_sequence_probability=0.1,
    seed=0,
    number=0,
):
    """Turns documents into one file of pre-training examples.

    Args:
        path: the file; it gets its name only when it is complete.
        documents: `Ragged` (documents, sentences, tokens) of ids.
        tokenizer: the Tokenizer that produced the ids.
        sequence_length: tokens of a row, [CLS], [SEP] and padding included.
        predictions_per_sequence: the most predictions of a row; used for static masks.
        pairs: what a row holds. "next_sentence": two segments, the second one random in half of the rows (Devlin et
            al. 2019); "sentence_order": two consecutive ones, swapped in half of the rows (Lan et al. 2020);
            "full_sentences" and "doc_sentences": as many sentences as fit, across documents or not (Liu et al. 2019).
        static_masks: masks rows now, in google-research/bert's format, instead of differently in every epoch.
        packed: puts several pairs in a row, so that hardly any position is padding; see `row_packing`.
        masking_unit: unit of static masks: "token", "whole_word", "span", "ngram" or "phrase", see
            `masking.mask_tokens`.
        phrases: whether ids are marked as `phrases` describes.
        short_sequence_probability: share of documents cut into shorter pairs; 0.1 in Google's code.
        seed: seed of every random choice.
        number: number of the file in the dataset. The same documents give different rows with another number.

    Returns: (examples written, tokens in them that are not padding).
    Raises: ValueError if there are too few documents for pairs, or for packed rows with static masks.
    """
    if packed and static_masks:
        raise ValueError("Google's format has no packed rows: use either static_masks or packed.")
    if pairs in RUNS:
        count, rows_at = _rows_of_runs(documents, tokenizer, sequence_length, pairs == "full_sentences")
    else:
        count, rows_at = _rows_of_pairs(
            PAIRS[pairs], documents, tokenizer, sequence_length, short_sequence_probability, seed, number
        )
    # Shuffled, so that rows of neighbouring text are far apart, whatever the size of a reader's shuffle buffer.
    draws = uniforms(random_keys(Stream.ORDER_IN_FILE, seed, number), np.arange(count))
    order = np.argsort(draws, kind="stable")
    first_index = number << 32  # no two rows of a dataset share a number, whichever process writes the others
    tokens = []

    def batches():
        for start in range(0, count, ROWS_AT_ONCE):
            rows = rows_at(order[start : start + ROWS_AT_ONCE])
            rows = with_marks_apart(rows) if phrases else rows
            tokens.append(len(rows["token_ids"].values))
            index = first_index + start
            yield {**rows, "example_index": np.arange(index, index + len(rows["first_segment_length"]))}

    if packed:

        def share_out(lengths):
            shared = assign_rows(lengths, sequence_length, most_sequences(sequence_length))
            np.random.default_rng((seed, number)).shuffle(shared)
            return shared

        written = write_packed_examples(path, batches(), share_out, first_index)
    elif static_masks:
        masking = masking_arguments(tokenizer, predictions_per_sequence, seed, masking_unit)
        padded = (pad_rows(batch, sequence_length, tokenizer.pad_id) for batch in batches())
        written = write_masked_examples(path, (mask_tokens(batch, epoch=0, **masking) for batch in padded))
    else:
        written = write_unmasked_examples(path, batches())
    return written, sum(tokens)


def check_parts(parts, batch_size, whole_batches):
    """Raises ValueError if batches cannot be divided evenly among `parts` processes."""
    if batch_size % parts or (parts > 1 and not whole_batches):
        raise ValueError(
            f"Batches of {batch_size} rows (whole_batches={whole_batches}) cannot be divided evenly among {parts} "
            f"processes: use whole batches, of a multiple of {parts} rows."
        )


def check_streams(streams, batch_size, parts, num_files):
    """Raises ValueError if the files cannot be divided among `streams` for batches of `parts` parts."""
    if streams > 1 and (batch_size % streams or streams % parts or streams > num_files):
        raise ValueError(
            f"{streams} streams must divide the {batch_size} rows of a batch, be a multiple of the number of "
            f"processes, {parts}, and not be more than the {num_files} files of training rows."
        )


def shares(num_examples, most_rows):
    """The number of rows to take from each file, in proportion to its size: `most_rows` altogether, or all."""
    if most_rows is None or most_rows >= sum(num_examples):
        return num_examples
    ends = np.cumsum(num_examples, dtype=np.int64) * most_rows // sum(num_examples)
    return np.diff(ends, prepend=0).tolist()


def check_fills(num_examples, batch_size):
    """Raises ValueError if there are fewer examples than a batch has rows."""
    if num_examples < batch_size:
        raise ValueError(f"{num_examples} examples do not fill a batch of {batch_size}: use smaller batches.")


def masking_arguments(
    tokenizer,
    predictions_per_sequence,
    seed,
    unit="token",
    masking_rate=0.15,
    mask_token_rate=0.8,
    random_token_rate=0.1,
):
    """The arguments of `mask_tokens`, except for the rows and the epoch.

    Raises: ValueError if the masking rate is no share, or the others are none that add up to at most 1.
    """
    if not 0 < masking_rate < 1:
        raise ValueError(f"masking_rate {masking_rate} must be a share of the tokens, above 0 and below 1.")
    if min(mask_token_rate, random_token_rate) < 0 or mask_token_rate + random_token_rate > 1 + 1e-9:
        raise ValueError(
            f"mask_token_rate {mask_token_rate} and random_token_rate {random_token_rate} must be shares of at least 0 "
            "that add up to at most 1: the rest of the chosen tokens stays as it is."
        )
    return {
        "unit": unit,
        "masking_rate": masking_rate,
        "mask_token_rate": mask_token_rate,
        "random_token_rate": random_token_rate,
        "is_continuation": tokenizer.is_continuation,
        "vocabulary_size": tokenizer.vocabulary_size,
        "mask_id": tokenizer.mask_id,
        "special_ids": tokenizer.control_ids,
        "predictions_per_sequence": predictions_per_sequence,
        "seed": seed,
    }


def check_direction(direction, static_masks):
    """Raises ValueError for an unknown direction, and for one that needs the words that static masks hide."""
    if direction not in features.DIRECTIONS:
        raise ValueError(f"direction {direction!r} is unknown; known are {', '.join(features.DIRECTIONS)}.")
    if direction != "both" and static_masks:
        raise ValueError(
            f"direction {direction!r} predicts the words of unmasked rows, but these were masked while they were "
            "prepared: prepare the data without static_masks."
        )


def inputs_and_labels(rows, packed):
    """The arrays of rows that the model reads, and those that it is compared with: two dicts, see `features`."""
    if packed:
        inputs, labels = features.PACKED_PRETRAINING_INPUTS, features.PACKED_PRETRAINING_LABELS
    else:
        inputs, labels = features.PRETRAINING_INPUTS, features.PRETRAINING_LABELS
    return {name: rows[name] for name in inputs}, {name: rows[name] for name in labels}


def _rows_of_pairs(cut, documents, tokenizer, sequence_length, short_sequence_probability, seed, number):
    """The number of rows [CLS] a [SEP] b [SEP], and a function that makes the rows with given numbers, (rows,).

    The rows are unmasked and have `next_sentence_labels`. All at once would take many times the memory of the text.
    """
    target_length = sequence_length - tokenizer.template.num_control(is_pair=True)
    pairs = cut(documents, target_length, short_sequence_probability, seed, number)
    ranges = np.stack([pairs.first_range, pairs.second_range], axis=1)  # (pairs, 2 segments, 2)
    tokens = documents.flat_values

    def rows_at(index):
        cut_ranges = truncate_at_random(ranges[index], target_length, seed, number, index)
        rows = lay_out(tokens, cut_ranges, tokenizer.cls_id, tokenizer.sep_id, tokenizer.template)
        return {**rows, "next_sentence_labels": pairs.next_sentence_labels[index]}

    return len(ranges), rows_at


def _rows_of_runs(documents, tokenizer, sequence_length, cross_documents):
    """As `_rows_of_pairs`, for rows [CLS] a [SEP]; their labels, which the file format requires, are 0."""
    room = sequence_length - tokenizer.template.num_control(is_pair=False)
    tokens, ranges = running_sentences(documents, room, tokenizer.sep_id if cross_documents else None)

    def rows_at(index):
        rows = lay_out(tokens, ranges[index][:, np.newaxis], tokenizer.cls_id, tokenizer.sep_id, tokenizer.template)
        return {**rows, "next_sentence_labels": np.zeros(len(index), np.int32)}

    return len(ranges), rows_at
