"""Batches of pre-training rows from tf.data, which reads on many threads and from buckets, for TensorFlow's devices.

TFRecord -> interleave and shuffle -> batch -> parse -> mask

`numpy_data` gives the same batches without TensorFlow.
"""

import numpy as np

from keras_bert_impl.preprocessing.graphs import tensorflow_arrays
from keras_bert_impl.preprocessing.graphs.shuffling import shuffled_batches
from keras_bert_impl.quiet_tensorflow import tf


def read_training_data(source):
    """The same batches as a tf.data.Dataset.

    Args:
        source: a `numpy_data.TrainingBatches`. If its files are not here, it has to know their `num_examples`.

    Returns: tf.data.Dataset of (inputs, labels), see `features.PRETRAINING_INPUTS` and `PRETRAINING_LABELS`, or their
        PACKED_ versions.
    """

    def rows_of(records, epoch):
        found = source.inputs_and_labels(parsed(records, source.features), epoch, tensorflow_arrays)
        if not source.whole_batches:
            return found
        # Parsing loses the static number of rows, which a TPU needs.
        return tf.nest.map_structure(lambda array: tf.ensure_shape(array, (records.shape[0], *array.shape[1:])), found)

    if source.repeat:
        return _repeated(source).map(rows_of, tf.data.AUTOTUNE).prefetch(4)
    files = tf.data.Dataset.from_tensor_slices((source.paths, np.int64(source.counts)))
    records = files.flat_map(lambda path, count: tf.data.TFRecordDataset(path).take(count))
    batches = records.batch(source.batch_size, drop_remainder=source.whole_batches)
    batches = batches.map(lambda records: (_cut(records, source.part), 0)).map(rows_of, tf.data.AUTOTUNE)
    # With the number of batches Keras shows progress, and does not warn that the data ran out.
    return batches.apply(tf.data.experimental.assert_cardinality(source.num_batches)).prefetch(2)


def parsed(records, widths):
    """The features of records, strings (batch,), by `numpy_parsing.widths_of`: RaggedTensors where rows differ."""
    kinds = {
        name: tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int64)
        if width is None
        else tf.io.FixedLenFeature([width] if width else [], tf.float32 if "weights" in name else tf.int64)
        for name, width in widths.items()
    }
    return tf.io.parse_example(records, kinds)


def _repeated(source):
    """Endless batches of (records of the part, their epoch); the epoch is one for all records, or one for each."""
    if source.streams == 1:
        return _stream(source, 0).map(lambda records, epoch: (_cut(records, source.part), epoch))
    return tf.data.Dataset.zip(tuple(_stream(source, number) for number in source.own_streams())).map(_joined)


def _stream(source, number):
    """Endless batches of (records of a stream, their epoch) from `start_step` on; each epoch has its own order."""
    paths, counts, batch_size, limits = source.stream(number)

    def batches_of(epoch):
        batches = shuffled_batches(paths, counts, batch_size, source.seed, epoch, number, **limits)
        return batches.skip(tf.where(epoch == first, done, 0)).map(lambda batch: (batch, epoch))

    # Past epochs are not read again, and rows of this epoch that are skipped are neither parsed nor masked.
    first, done = (tf.constant(place, tf.int64) for place in divmod(source.start_step, sum(counts) // batch_size))
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
