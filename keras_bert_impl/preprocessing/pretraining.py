"""The pipeline of pre-training data: documents to examples on disk, and examples to batches.

documents -> WordPiece -> sentence pairs -> truncate -> lay out -> TFRecord   `shards`, `write_rows`
TFRecord  -> interleave and shuffle -> batch -> parse -> mask                 `read_training_data`
"""

import numpy as np
import tensorflow as tf

from keras_bert_impl import features
from keras_bert_impl.preprocessing.examples import (
    parse_masked_examples,
    parse_packed_examples,
    parse_unmasked_examples,
    write_masked_examples,
    write_packed_examples,
    write_unmasked_examples,
)
from keras_bert_impl.preprocessing.masking import mask_tokens
from keras_bert_impl.preprocessing.next_sentence import chunk_documents
from keras_bert_impl.preprocessing.packing import pad_rows
from keras_bert_impl.preprocessing.row_layout import lay_out, truncate_at_random
from keras_bert_impl.preprocessing.row_packing import assign_rows, most_sequences
from keras_bert_impl.preprocessing.sentence_order import order_documents, running_sentences
from keras_bert_impl.preprocessing.shuffling import OPEN_FILES, WINDOW, shuffled_batches

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
    short_sequence_probability=0.1,
    seed=0,
    number=0,
):
    """Turns documents into one file of pre-training examples.

    Args:
        path: the file; it gets its name only when it is complete.
        documents: RaggedTensor (documents, sentences, tokens) of ids.
        tokenizer: the WordPieceTokenizer that produced the ids.
        sequence_length: tokens of a row, [CLS], [SEP] and padding included.
        predictions_per_sequence: the most predictions of a row; used for static masks.
        pairs: what a row holds. "next_sentence": two segments, the second one random in half of the rows (Devlin et
            al. 2019); "sentence_order": two consecutive ones, swapped in half of the rows (Lan et al. 2020);
            "full_sentences" and "doc_sentences": as many sentences as fit, across documents or not (Liu et al. 2019).
        static_masks: masks rows now, in google-research/bert's format, instead of differently in every epoch.
        packed: puts several pairs in a row, so that hardly any position is padding; see `row_packing`.
        masking_unit: unit of static masks: "token", "whole_word" or "span", see `masking.mask_tokens`.
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
    order = tf.argsort(tf.random.stateless_uniform([count], seed=[seed, number])).numpy()
    first_index = number << 32  # no two rows of a dataset share a number, whichever process writes the others
    tokens = []

    def batches():
        for start in range(0, count, ROWS_AT_ONCE):
            rows = rows_at(order[start : start + ROWS_AT_ONCE])
            tokens.append(len(rows["token_ids"].flat_values))
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


def read_training_data(
    paths,
    tokenizer,
    *,
    sequence_length,
    predictions_per_sequence,
    batch_size,
    seed=0,
    start_step=0,
    static_masks=False,
    packed=False,
    masking_unit="token",
    repeat=True,
    whole_batches=False,
    part=(0, 1),
    streams=1,
    num_examples=None,
    most_rows=None,
):
    """Batches for `Pretrainer.fit`: what batch N holds depends on the seed and N alone, so a run can resume.

    Args:
        paths: files of `write_rows`.
        tokenizer: the WordPieceTokenizer they were written with.
        sequence_length: as written.
        predictions_per_sequence: as written; any number for dynamic masks.
        batch_size: rows of a batch; with `repeat`, a last, smaller batch is dropped.
        seed: seed of the order and the masks.
        start_step: number of batches to skip, those that a resumed run has already seen.
        static_masks: whether the files were written with static masks.
        packed: whether their rows hold several pairs.
        masking_unit: "token", "whole_word" or "span", see `masking.mask_tokens`.
        repeat: True gives epochs without end, each in its own order, see `shuffling`; False one epoch in file order.
        whole_batches: drop a last, smaller batch even without `repeat`, so that devices can share each batch evenly.
        part: (number, number of parts): the part of each batch to read, for one of several processes; needs whole
            batches. The rows of the other parts are neither parsed nor masked.
        streams: with `repeat`, the files are divided among this many streams, each shuffled by itself, and a batch
            takes equally many rows from each. A part of the batch then reads only its own streams, and any number of
            parts that divides `streams` gives the same batches.
        num_examples: list, the number of examples in each file; None counts them.
        most_rows: without `repeat`, the most rows to read, from each file in proportion to its size; None reads all.

    Returns: tf.data.Dataset of (inputs, labels), see `features.PRETRAINING_INPUTS` and `PRETRAINING_LABELS`, or their
        PACKED_ versions.
    Raises: ValueError if there are too few examples for a whole batch, if a batch cannot be divided evenly, or if
        there are more streams than files.
    """
    paths = [str(path) for path in paths]
    whole_batches = whole_batches or repeat
    parts = part[1]
    streams = streams if repeat else 1
    if batch_size % parts or (parts > 1 and not whole_batches):
        raise ValueError(
            f"Batches of {batch_size} rows (whole_batches={whole_batches}) cannot be divided evenly among {parts} "
            f"processes: use whole batches, of a multiple of {parts} rows."
        )
    check_streams(streams, batch_size, parts, len(paths))
    if num_examples is None:
        num_examples = [int(tf.data.TFRecordDataset(path).reduce(0, lambda count, _: count + 1)) for path in paths]
    masking = masking_arguments(tokenizer, predictions_per_sequence, seed, masking_unit)

    def parse(batch):
        if packed:
            return parse_packed_examples(batch, sequence_length, tokenizer.pad_id)
        if static_masks:
            return parse_masked_examples(batch, sequence_length, predictions_per_sequence)
        return parse_unmasked_examples(batch, sequence_length, tokenizer.pad_id)

    def rows_of(records, epoch):
        rows = parse(records)
        if whole_batches:  # parsing loses the static number of rows, which a TPU needs
            rows = {name: tf.ensure_shape(value, (records.shape[0], *value.shape[1:])) for name, value in rows.items()}
        rows = rows if static_masks else mask_tokens(rows, epoch=epoch, **masking)
        return _packed_inputs_and_labels(rows) if packed else _inputs_and_labels(rows)

    if repeat:
        batches = _repeated(paths, num_examples, batch_size, seed, start_step, streams, part)
        return batches.map(rows_of, tf.data.AUTOTUNE).prefetch(4)
    counts = _shares(num_examples, most_rows)
    total = sum(counts)
    _check_fills(total, batch_size if whole_batches else 0)
    files = tf.data.Dataset.from_tensor_slices((paths, np.int64(counts)))
    records = files.flat_map(lambda path, count: tf.data.TFRecordDataset(path).take(count))
    batches = records.batch(batch_size, drop_remainder=whole_batches)
    batches = batches.map(lambda records: (_cut(records, part), 0)).map(rows_of, tf.data.AUTOTUNE)
    # With the number of batches Keras shows progress, and does not warn that the data ran out.
    size = total // batch_size if whole_batches else -(-total // batch_size)
    return batches.apply(tf.data.experimental.assert_cardinality(size)).prefetch(2)


def _repeated(paths, num_examples, batch_size, seed, start_step, streams, part):
    """Endless batches of (records of the part, their epoch); the epoch is one for all records, or one for each."""

    def stream(number):
        files, counts = paths[number::streams], num_examples[number::streams]
        return _endless_batches(files, counts, batch_size // streams, seed, start_step, number, streams)

    if streams == 1:
        return stream(0).map(lambda records, epoch: (_cut(records, part), epoch))
    number, parts = part
    own = range(number * streams // parts, (number + 1) * streams // parts)
    return tf.data.Dataset.zip(tuple(map(stream, own))).map(_joined)


def check_streams(streams, batch_size, parts, num_files):
    """Raises ValueError if the files cannot be divided among `streams` for batches of `parts` parts."""
    if streams > 1 and (batch_size % streams or streams % parts or streams > num_files):
        raise ValueError(
            f"{streams} streams must divide the {batch_size} rows of a batch, be a multiple of the number of "
            f"processes, {parts}, and not be more than the {num_files} files of training rows."
        )


def _endless_batches(paths, num_examples, batch_size, seed, start_step, stream, streams):
    """Endless batches of (records of a stream, their epoch) from `start_step` on; each epoch has its own order."""
    count = sum(num_examples)
    _check_fills(count, batch_size)
    # These limits on rows in memory and on open files hold for all streams together.
    limits = {"window": -(-WINDOW // streams), "open_files": -(-OPEN_FILES // streams)}

    def batches_of(epoch):
        batches = shuffled_batches(paths, num_examples, batch_size, seed, epoch, stream, **limits)
        return batches.skip(tf.where(epoch == first, done, 0)).map(lambda batch: (batch, epoch))

    # Past epochs are not read again, and rows of this epoch that are skipped are neither parsed nor masked.
    first, done = (tf.constant(number, tf.int64) for number in divmod(start_step, count // batch_size))
    return tf.data.Dataset.range(first, np.iinfo("int64").max).flat_map(batches_of)


def _shares(num_examples, most_rows):
    """The number of rows to take from each file, in proportion to its size: `most_rows` altogether."""
    if most_rows is None or most_rows >= sum(num_examples):
        return num_examples
    ends = np.cumsum(num_examples, dtype=np.int64) * most_rows // sum(num_examples)
    return np.diff(ends, prepend=0).tolist()


def _check_fills(num_examples, batch_size):
    if num_examples < batch_size:
        raise ValueError(f"{num_examples} examples do not fill a batch of {batch_size}: use smaller batches.")


def _cut(records, part):
    """The records of a part, (number, number of parts), of a batch."""
    number, parts = part
    if parts == 1:
        return records
    count = records.shape[0] // parts
    return records[number * count : (number + 1) * count]


def _joined(*parts):
    """Joins the batches of several streams to one, with the epoch of each row."""
    records = tf.concat([records for records, _ in parts], axis=0)
    return records, tf.concat([tf.fill(tf.shape(records), epoch) for records, epoch in parts], axis=0)


def masking_arguments(tokenizer, predictions_per_sequence, seed, unit="token"):
    """The arguments of `mask_tokens`, except for the rows and the epoch."""
    return {
        "unit": unit,
        "is_continuation": [token.startswith("##") for token in tokenizer.vocabulary],
        "vocabulary_size": tokenizer.vocabulary_size,
        "mask_id": tokenizer.mask_id,
        "special_ids": (tokenizer.cls_id, tokenizer.sep_id, tokenizer.pad_id),
        "predictions_per_sequence": predictions_per_sequence,
        "seed": seed,
    }


def _inputs_and_labels(rows):
    inputs = {name: rows[name] for name in features.PRETRAINING_INPUTS}
    return inputs, {name: rows[name] for name in features.PRETRAINING_LABELS}


def _packed_inputs_and_labels(rows):
    inputs = {name: rows[name] for name in features.PACKED_PRETRAINING_INPUTS}
    return inputs, {name: rows[name] for name in features.PACKED_PRETRAINING_LABELS}


def _rows_of_pairs(cut, documents, tokenizer, sequence_length, short_sequence_probability, seed, number):
    """The number of rows [CLS] a [SEP] b [SEP], and a function that makes the rows with given numbers, (rows,).

    The rows are unmasked and have `next_sentence_labels`. All at once would take many times the memory of the text.
    """
    target_length = sequence_length - 3
    pairs = cut(documents, target_length, short_sequence_probability, seed, number)
    ranges = np.stack([pairs.first_range, pairs.second_range], axis=1)  # (pairs, 2 segments, 2)
    tokens = documents.flat_values.numpy()

    def rows_at(index):
        cut_ranges = truncate_at_random(ranges[index], target_length, seed, number, index)
        rows = lay_out(tokens, cut_ranges, tokenizer.cls_id, tokenizer.sep_id)
        return {**rows, "next_sentence_labels": pairs.next_sentence_labels[index]}

    return len(ranges), rows_at


def _rows_of_runs(documents, tokenizer, sequence_length, cross_documents):
    """As `_rows_of_pairs`, for rows [CLS] a [SEP]; their labels, which the file format requires, are 0."""
    tokens, ranges = running_sentences(documents, sequence_length - 2, tokenizer.sep_id if cross_documents else None)

    def rows_at(index):
        rows = lay_out(tokens, ranges[index][:, np.newaxis], tokenizer.cls_id, tokenizer.sep_id)
        return {**rows, "next_sentence_labels": np.zeros(len(index), np.int32)}

    return len(ranges), rows_at
