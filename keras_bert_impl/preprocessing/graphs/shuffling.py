"""The order of training rows: different in every epoch, and every stretch has rows of files from the whole list.

files -> groups, each read file by file -> in turn, each group at its own pace -> windows -> shuffled -> batches

Whole windows are shuffled at once, which takes half the time of a shuffle buffer that works row by row.
"""

import numpy as np

from keras_bert_impl.preprocessing.graphs import tensorflow_arrays
from keras_bert_impl.quiet_tensorflow import tf
from keras_bert_impl.text.rows.numpy_shuffling import OPEN_FILES, WINDOW, plan_reading
from keras_bert_impl.text.rows.randomness import Stream, random_keys, uniforms

READ_AT_ONCE = 64


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
