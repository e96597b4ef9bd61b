"""Batches of pre-training rows from tf.data, which reads on many threads and from buckets, for TensorFlow's devices.

TFRecord -> interleave and shuffle -> batch -> parse -> mask

`numpy_data` gives the same batches without TensorFlow. Whole windows of rows are shuffled at once, which takes half the
time of a shuffle buffer that works row by row.
"""

import numpy as np

from keras_bert_impl.preprocessing.graphs import tensorflow_arrays
from keras_bert_impl.quiet_tensorflow import tf
from keras_bert_impl.text.rows.numpy_shuffling import OPEN_FILES, WINDOW, plan_reading
from keras_bert_impl.text.rows.randomness import Stream, random_keys, uniforms

READ_AT_ONCE = 64


def read_training_data(source):
    """Returns the batches of a `TrainingBatches` as a tf.data.Dataset, which reads on many threads.

    Args:
        source (TrainingBatches): the batches. For files on another machine, its RowFiles need `num_examples`.

    Returns: tf.data.Dataset of (inputs, labels), as in `TrainingBatches`.
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
    batches = batches.map(lambda records: (source.cut(records), 0)).map(rows_of, tf.data.AUTOTUNE)
    # With the number of batches Keras shows progress, and does not warn that the data ran out.
    return batches.apply(tf.data.experimental.assert_cardinality(source.num_batches)).prefetch(2)


def shuffled_batches(paths, num_examples, batch_size, seed, epoch, stream=0, window=WINDOW, open_files=OPEN_FILES):
    """The records of TFRecord files in the order of an epoch, a function of the arguments alone.

    Up to `open_files` files are read in parallel, from the beginning to the end of the epoch, each at a pace in
    proportion to its number of rows. More files are divided into `open_files` groups of consecutive files; each group
    reads one file at a time, in an order that `seed` and `epoch` determine. Neighbours in the list, which often hold
    neighbouring text, are then spread over the epoch, and every stretch of it has files from the whole list. (A single
    random order of all files, of which some are open at a time, correlates with their places in the list: by 0.1 for a
    hundred files.)

    Args:
        paths: list of files. Within a file, rows are in random order.
        num_examples: list, the rows in each.
        batch_size: records of a batch; a last, smaller batch is dropped.
        seed: integer.
        epoch: integer or integer tensor.
        stream: number that distinguishes readers with the same seed and epoch.
        window: rows that are shuffled together; the actual number is up to 1.5 times as large.
        open_files: most files to read at once.

    Returns: tf.data.Dataset of strings (batch_size,).
    """
    plan = plan_reading(paths, num_examples, window, open_files)
    files, order_of_groups = _groups_of_files(plan.paths, plan.splits, (seed, epoch, stream))
    rows = tf.constant(plan.rows)  # (groups,)

    def turns_of(group):
        """The records of a group at each of its turns, string (rows,); all groups end together."""
        ends = tf.range(plan.turns + 1, dtype=tf.int64) * rows[group] // plan.turns
        return tf.data.TFRecordDataset(files[group]).batch(READ_AT_ONCE).rebatch(ends[1:] - ends[:-1])

    def shuffled(number, records):
        keys = random_keys(Stream.ROW_ORDER, seed, epoch, stream, number, arrays=tensorflow_arrays)
        return tf.gather(records, tf.argsort(uniforms(keys, tf.range(tf.size(records)), tensorflow_arrays)))

    in_turn = order_of_groups.interleave(turns_of, cycle_length=len(plan.rows), block_length=1)
    # The next window is read while the current one is consumed, so that no batch waits for a whole window.
    in_windows = in_turn.rebatch(plan.window).enumerate().map(shuffled).prefetch(1)
    return in_windows.rebatch(batch_size, drop_remainder=True)


def _groups_of_files(paths, splits, counters):
    """The files of each group, RaggedTensor (groups, files), and the groups, a Dataset, both in random order."""
    keys = random_keys(Stream.FILE_ORDER, *counters, arrays=tensorflow_arrays)
    draws = uniforms(keys, tf.range(len(paths)), tensorflow_arrays)
    group_of_file = np.repeat(np.arange(len(splits) - 1), np.diff(splits))
    order = tf.argsort(tf.cast(draws, tf.float64) + group_of_file)
    files = tf.RaggedTensor.from_row_splits(tf.gather(paths, order), splits)
    return files, tf.data.Dataset.from_tensor_slices(tf.argsort(tf.gather(draws, splits[:-1])))


def parsed(records, widths):
    """The features of records, strings (batch,), by `row_features.widths_of`: RaggedTensors where rows differ."""
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
        return _stream(source, 0).map(lambda records, epoch: (source.cut(records), epoch))
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


def _joined(*parts):
    """Joins the batches of several streams to one, with the epoch of each row."""
    records = tf.concat([records for records, _ in parts], axis=0)
    return records, tf.concat([tf.fill(tf.shape(records), epoch) for records, epoch in parts], axis=0)
