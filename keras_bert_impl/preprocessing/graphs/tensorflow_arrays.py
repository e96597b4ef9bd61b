"""The operations of `numpy_arrays`, by the same names, as graph operations of TensorFlow."""

import contextlib

from keras_bert_impl.quiet_tensorflow import tf
from keras_bert_impl.text.rows.numpy_arrays import TOO_LONG

int32, int64, uint64, float32, float64 = tf.int32, tf.int64, tf.uint64, tf.float32, tf.float64
where, round_half_to_even, cast, shape, spread = tf.where, tf.round, tf.cast, tf.shape, tf.broadcast_to
wrapping = contextlib.nullcontext


def constant(value, dtype):
    return tf.cast(value, dtype) if tf.is_tensor(value) else tf.constant(value, dtype)


def arange(count):
    return tf.range(count, dtype=tf.int32)


def lengths_of(rows):
    return tf.cast(rows.row_lengths(), tf.int32)[:, tf.newaxis]


def padded(rows, columns, fill=0):
    tf.debugging.assert_less_equal(rows.row_lengths(), tf.cast(columns, tf.int64), message=TOO_LONG.format(columns))
    return tf.cast(rows.to_tensor(fill, shape=(None, columns)), tf.int32)


def check_equal(one, other, message):
    tf.debugging.assert_equal(one, other, message=message)


def shift_right(bits, count):
    return tf.bitwise.right_shift(bits, tf.constant(count, bits.dtype))


def look_up(table, indices):
    return tf.gather(tf.constant(table), indices)


def take(array, positions):
    return tf.gather(array, positions, batch_dims=1)


def put(array, positions, values, is_real):
    # The difference is added, not assigned: positions that are not real may be those of others, and adding 0 there has
    # no effect.
    row = tf.range(tf.shape(positions)[0])[:, tf.newaxis] + tf.zeros_like(positions)
    change = tf.where(is_real, values - take(array, positions), 0)
    return tf.tensor_scatter_nd_add(array, tf.stack([row, positions], axis=-1), change)


def of_place_before(array):
    return tf.pad(array[:, :-1], [[0, 0], [1, 0]])


def smallest(array, count):
    return -tf.math.top_k(-array, count).values


def order_of(array):
    return tf.argsort(array, axis=1, stable=True)


def running_sum(array):
    return tf.cumsum(tf.cast(array, tf.int32), axis=1)


def row_sum(array):
    return tf.reduce_sum(tf.cast(array, tf.int32), axis=1, keepdims=True)


def row_max(array):
    return tf.reduce_max(array, axis=1, keepdims=True)


def row_min(array):
    return tf.reduce_min(array, axis=1, keepdims=True)


def row_any(array):
    return tf.reduce_any(array, axis=1, keepdims=True)


def any_of(array):
    return tf.reduce_any(array)


def counts_of(numbers, is_counted, count):
    batch = tf.shape(numbers)[0]
    flat = tf.reshape(numbers + count * tf.range(batch)[:, tf.newaxis], [-1])
    counted = tf.reshape(tf.cast(is_counted, tf.int32), [-1])
    return tf.reshape(tf.math.unsorted_segment_sum(counted, flat, batch * count), [batch, count])


def places_in(bounds, numbers):
    return tf.reshape(tf.searchsorted(tf.constant(bounds), tf.reshape(numbers, [-1]), side="right"), tf.shape(numbers))


def loop(goes_on, step, *state):
    return tf.while_loop(goes_on, step, state)
