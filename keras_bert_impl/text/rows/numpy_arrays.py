"""The array operations by which tokens are drawn and masked, in NumPy; `tensorflow_arrays` has the same ones.

Arrays of rows have the shape (batch, length), and operations along an axis go along the length.
"""

import numpy as np

int32, int64, uint64, float32, float64 = np.int32, np.int64, np.uint64, np.float32, np.float64
where, round_half_to_even = np.where, np.rint
TOO_LONG = "A row has more values than {}: read the rows with the sequence_length that they were written with."


def wrapping():
    """Within this context, integers wrap around without a warning."""
    return np.errstate(over="ignore")


def constant(value, dtype):
    return np.asarray(value, dtype)


def cast(array, dtype):
    return np.asarray(array).astype(dtype, copy=False)


def shape(array):
    return array.shape


def arange(count):
    """0, 1, 2, ..., int32 (count,)."""
    return np.arange(count, dtype=np.int32)


def lengths_of(rows):
    """The number of values of each row of a `Ragged`, or in TensorFlow of a RaggedTensor: int32 (rows, 1)."""
    return rows.lengths[:, np.newaxis].astype(np.int32)


def padded(rows, columns, fill=0):
    """The values of such rows, and `fill` behind them: int32 (rows, columns).

    Raises: ValueError if a row is longer.
    """
    if rows.lengths.max(initial=0) > columns:
        raise ValueError(TOO_LONG.format(columns))
    array = np.full((len(rows.lengths), columns), fill, np.int32)
    array[np.arange(columns) < rows.lengths[:, np.newaxis]] = rows.values
    return array


def check_equal(one, other, message):
    """Raises ValueError with this message if two arrays differ."""
    if not np.array_equal(one, other):
        raise ValueError(message)


def spread(array, shape):
    """The array broadcast to a shape."""
    return np.broadcast_to(array, shape)


def shift_right(bits, count):
    return bits >> np.uint64(count)


def look_up(table, indices):
    """The entries of a table at these indices."""
    return np.asarray(table)[indices]


def take(array, positions):
    """Of each row the entries at its own positions."""
    return np.take_along_axis(array, positions, axis=1)


def put(array, positions, values, is_real):
    """The rows with other values at these positions where `is_real`; all of the same shape but for `array`."""
    row, column = np.nonzero(is_real)
    changed = array.copy()
    changed[row, positions[row, column]] = values[row, column]
    return changed


def of_place_before(array):
    """Of each place the entry of the place before it, False for the first: bool (batch, length)."""
    return np.pad(array[:, :-1], [(0, 0), (1, 0)])


def smallest(array, count):
    """The smallest numbers of each row, ascending: (batch, count)."""
    return np.sort(array, axis=1)[:, :count]


def order_of(array):
    """The places of each row's numbers in ascending order; of equal numbers in that of their places, int32."""
    return np.argsort(array, axis=1, kind="stable").astype(np.int32)


def running_sum(array):
    """The sum of the numbers up to each place, int32."""
    return np.cumsum(array, axis=1, dtype=np.int32)


def row_sum(array):
    """(batch, 1), int32."""
    return np.sum(array, axis=1, keepdims=True, dtype=np.int32)


def row_max(array):
    """(batch, 1)."""
    return np.max(array, axis=1, keepdims=True)


def row_min(array):
    """(batch, 1)."""
    return np.min(array, axis=1, keepdims=True)


def row_any(array):
    """(batch, 1)."""
    return np.any(array, axis=1, keepdims=True)


def any_of(array):
    """A single bool."""
    return array.any()


def counts_of(numbers, is_counted, count):
    """How often each row has each number below `count` where `is_counted`: int32 (batch, count)."""
    batch = len(numbers)
    flat = numbers + count * np.arange(batch)[:, np.newaxis]
    return np.bincount(flat[is_counted], minlength=batch * count).reshape(batch, count).astype(np.int32)


def places_in(bounds, numbers):
    """How many of the ascending bounds are at most each number, int32."""
    return np.searchsorted(bounds, numbers, side="right").astype(np.int32)


def loop(goes_on, step, *state):
    """`state = step(*state)` as long as `goes_on(*state)`."""
    while goes_on(*state):
        state = step(*state)
    return state
