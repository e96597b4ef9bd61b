"""Batches of pre-training rows from tf.data, which reads on many threads and from buckets, for TensorFlow's devices.

TFRecord -> interleave and shuffle -> batch -> parse -> mask

`numpy_data` gives the same batches without TensorFlow.
"""

import numpy as np

from keras_bert_impl.preprocessing.graphs import tensorflow_arrays
from keras_bert_impl.preprocessing.graphs.example_parsing import (
    parse_masked_examples,
    parse_packed_examples,
    parse_unmasked_examples,
)
from keras_bert_impl.preprocessing.graphs.shuffling import OPEN_FILES, WINDOW, shuffled_batches
from keras_bert_impl.quiet_tensorflow import tf
from keras_bert_impl.text.rows.next_tokens import predict_next_tokens
from keras_bert_impl.text.rows.numpy_data import TrainingBatches, inputs_and_labels


def read_training_data(paths, tokenizer, **options):
    """The batches of `numpy_data.TrainingBatches`, with its arguments; without `num_examples`, the files must be here.

    Returns: tf.data.Dataset of (inputs, labels), see `features.PRETRAINING_INPUTS` and `PRETRAINING_LABELS`, or their
        PACKED_ versions.
    Raises: ValueError as there.
    """
    of = TrainingBatches(paths, tokenizer, **options)
    packed, whole_batches = of.packed, of.whole_batches

    def parse(batch):
        if of.static_masks:
            return parse_masked_examples(batch, of.sequence_length, of.predictions_per_sequence)
        parse_rows = parse_packed_examples if packed else parse_unmasked_examples
        rows = parse_rows(batch, of.sequence_length, tokenizer.pad_id, of.masking.unit == "phrase")
        return tokenizer.template.with_cls_segments(rows, tokenizer.cls_id, tf.where)

    def rows_of(records, epoch):
        rows = parse(records)
        if whole_batches:  # parsing loses the static number of rows, which a TPU needs
            rows = {name: tf.ensure_shape(value, (records.shape[0], *value.shape[1:])) for name, value in rows.items()}
        if of.direction != "both":
            rows = predict_next_tokens(rows, of.direction, tensorflow_arrays)
        elif not of.static_masks:
            rows = of.masking.mask(rows, epoch, tensorflow_arrays)
        return inputs_and_labels(rows, packed)

    if of.repeat:
        return _repeated(of).map(rows_of, tf.data.AUTOTUNE).prefetch(4)
    files = tf.data.Dataset.from_tensor_slices((of.paths, np.int64(of.counts)))
    records = files.flat_map(lambda path, count: tf.data.TFRecordDataset(path).take(count))
    batches = records.batch(of.batch_size, drop_remainder=whole_batches)
    batches = batches.map(lambda records: (_cut(records, of.part), 0)).map(rows_of, tf.data.AUTOTUNE)
    # With the number of batches Keras shows progress, and does not warn that the data ran out.
    return batches.apply(tf.data.experimental.assert_cardinality(of.num_batches)).prefetch(2)


def _repeated(of):
    """Endless batches of (records of the part, their epoch); the epoch is one for all records, or one for each."""

    def stream(number):
        files, counts = of.paths[number::streams], of.counts[number::streams]
        return _endless_batches(files, counts, of.batch_size // streams, of.seed, of.start_step, number, streams)

    streams, (number, parts) = of.streams, of.part
    if streams == 1:
        return stream(0).map(lambda records, epoch: (_cut(records, of.part), epoch))
    own = range(number * streams // parts, (number + 1) * streams // parts)
    return tf.data.Dataset.zip(tuple(map(stream, own))).map(_joined)


def _endless_batches(paths, num_examples, batch_size, seed, start_step, stream, streams):
    """Endless batches of (records of a stream, their epoch) from `start_step` on; each epoch has its own order."""
    count = sum(num_examples)
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
