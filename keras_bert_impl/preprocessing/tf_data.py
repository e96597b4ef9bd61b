"""Batches of pre-training rows from tf.data, which reads on many threads and from buckets, for TensorFlow's devices.

TFRecord -> interleave and shuffle -> batch -> parse -> mask

`numpy_data` gives the same batches without TensorFlow.
"""

import numpy as np

from keras_bert_impl.preprocessing import tensorflow_arrays
from keras_bert_impl.preprocessing.example_parsing import (
    parse_masked_examples,
    parse_packed_examples,
    parse_unmasked_examples,
)
from keras_bert_impl.preprocessing.masking import mask_tokens, masking_arguments
from keras_bert_impl.preprocessing.neighbours import predict_neighbours
from keras_bert_impl.preprocessing.numpy_data import (
    check_direction,
    check_fills,
    check_parts,
    check_streams,
    inputs_and_labels,
    shares,
)
from keras_bert_impl.preprocessing.shuffling import OPEN_FILES, WINDOW, shuffled_batches
from keras_bert_impl.text_graphs.quiet_tensorflow import tf


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
    masking_rate=0.15,
    mask_token_rate=0.8,
    random_token_rate=0.1,
    direction="both",
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
        tokenizer: the Tokenizer they were written with.
        sequence_length: as written.
        predictions_per_sequence: as written; any number for dynamic masks.
        batch_size: rows of a batch; with `repeat`, a last, smaller batch is dropped.
        seed: seed of the order and the masks.
        start_step: number of batches to skip, those that a resumed run has already seen.
        static_masks: whether the files were written with static masks.
        packed: whether their rows hold several pairs.
        masking_unit: "token", "whole_word", "span", "ngram" or "phrase", see `masking.mask_tokens`.
        masking_rate: share of a row's tokens that are chosen to be predicted, see there.
        mask_token_rate: share of the chosen tokens that become [MASK], see there.
        random_token_rate: share of them that become a random token, see there.
        direction: "both" masks tokens; "left_to_right" and "right_to_left" mask none, and every token predicts the next
            one in this direction, see `neighbours`.
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
    Raises: ValueError if there are too few examples for a whole batch, if a batch cannot be divided evenly, if
        there are more streams than files, or for rows with static masks in one direction.
    """
    paths = [str(path) for path in paths]
    whole_batches = whole_batches or repeat
    parts = part[1]
    streams = streams if repeat else 1
    check_parts(parts, batch_size, whole_batches)
    check_streams(streams, batch_size, parts, len(paths))
    if num_examples is None:
        num_examples = [int(tf.data.TFRecordDataset(path).reduce(0, lambda count, _: count + 1)) for path in paths]
    masking = masking_arguments(
        tokenizer, predictions_per_sequence, seed, masking_unit, masking_rate, mask_token_rate, random_token_rate
    )
    check_direction(direction, static_masks)

    def parse(batch):
        phrases = masking_unit == "phrase"
        if static_masks:
            return parse_masked_examples(batch, sequence_length, predictions_per_sequence)
        parse_rows = parse_packed_examples if packed else parse_unmasked_examples
        rows = parse_rows(batch, sequence_length, tokenizer.pad_id, phrases)
        return tokenizer.template.with_cls_segments(rows, tokenizer.cls_id, tf.where)

    def rows_of(records, epoch):
        rows = parse(records)
        if whole_batches:  # parsing loses the static number of rows, which a TPU needs
            rows = {name: tf.ensure_shape(value, (records.shape[0], *value.shape[1:])) for name, value in rows.items()}
        if direction != "both":
            rows = predict_neighbours(rows, direction, tensorflow_arrays)
        elif not static_masks:
            rows = mask_tokens(rows, epoch=epoch, arrays=tensorflow_arrays, **masking)
        return inputs_and_labels(rows, packed)

    if repeat:
        batches = _repeated(paths, num_examples, batch_size, seed, start_step, streams, part)
        return batches.map(rows_of, tf.data.AUTOTUNE).prefetch(4)
    counts = shares(num_examples, most_rows)
    total = sum(counts)
    check_fills(total, batch_size if whole_batches else 0)
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


def _endless_batches(paths, num_examples, batch_size, seed, start_step, stream, streams):
    """Endless batches of (records of a stream, their epoch) from `start_step` on; each epoch has its own order."""
    count = sum(num_examples)
    check_fills(count, batch_size)
    # These limits on rows in memory and on open files hold for all streams together.
    limits = {"window": -(-WINDOW // streams), "open_files": -(-OPEN_FILES // streams)}

    def batches_of(epoch):
        batches = shuffled_batches(paths, num_examples, batch_size, seed, epoch, stream, **limits)
        return batches.skip(tf.where(epoch == first, done, 0)).map(lambda batch: (batch, epoch))

    # Past epochs are not read again, and rows of this epoch that are skipped are neither parsed nor masked.
    first, done = (tf.constant(number, tf.int64) for number in divmod(start_step, count // batch_size))
    return tf.data.Dataset.range(first, np.iinfo("int64").max).flat_map(batches_of)


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
