"""Long texts in TensorFlow graphs: what `preprocessing.long_texts` does in NumPy."""

from keras_bert_impl.preprocessing.graphs.ragged import between, row_numbers, side_by_side
from keras_bert_impl.quiet_tensorflow import tf

ROWS = 64  # that are computed at once, so that a book takes no more memory than these


def head_and_tail(pieces, room):
    """At most `room` pieces of each text, (batch, pieces): of more a quarter from the beginning and the rest from the
    end."""
    length, head = pieces.row_lengths(), room // 4
    is_long = length > room
    begin, end = pieces.row_starts(), pieces.row_limits()
    first = between(pieces.flat_values, begin, tf.where(is_long, begin + head, end))
    rest = between(pieces.flat_values, tf.where(is_long, end - (room - head), end), end)
    return side_by_side([first, rest])


def windows_of(pieces, room, step=None):
    """Windows of `room` pieces, those of a text one after the other; the last one reaches the end. From one to the next
    are `step` pieces; None lets them overlap by half.

    Returns: RaggedTensor (windows, pieces); how many windows each text has, int32 (batch,).
    """
    length, step = pieces.row_lengths(), max(1, room // 2) if step is None else step
    counts = 1 + tf.maximum(-((room - length) // step), 0)  # rounded up
    number = tf.ragged.range(counts)  # (batch, windows)
    of_text = row_numbers(number)
    begins = number.flat_values * step
    ends = tf.minimum(begins + room, tf.gather(length, of_text))
    start = tf.gather(pieces.row_starts(), of_text)
    return between(pieces.flat_values, start + begins, start + ends), tf.cast(counts, tf.int32)


def computed_in_parts(model, rows):
    """The output of a keras.Model with a single one for rows, of at most ROWS of them at a time.

    Args:
        model: its output is (rows, ...).
        rows: dict of arrays (rows, length).
    """
    number = tf.maximum(-(-tf.shape(rows["padding_mask"])[0] // ROWS), 1)
    found = tf.TensorArray(model.output.dtype, number, element_shape=model.output_shape, infer_shape=False)

    def one_more(index, found):
        part = {name: row[index * ROWS : (index + 1) * ROWS] for name, row in rows.items()}
        return index + 1, found.write(index, checked_output(model, part))

    return tf.while_loop(lambda index, _: index < number, one_more, (0, found), parallel_iterations=1)[1].concat()


def checked_output(model, rows):
    """The output of a keras.Model with a single one. Rows with more global tokens than a Longformer has room for, of
    which its outputs are NaN, are an error of the request."""
    output, config = model(rows, training=False), model.encoder.config
    if not hasattr(config, "max_global_tokens"):
        return output
    message = f"A text has more global tokens than the model's max_global_tokens, {config.max_global_tokens}."
    return tf.debugging.assert_all_finite(output, message)


def means_of_texts(outputs, counts):
    """The mean outputs (texts, ...) of the windows of each text, of which there are `counts` (texts,)."""
    owner = tf.repeat(tf.range(tf.size(counts)), counts)
    sums = tf.math.segment_sum(outputs, owner)
    return sums / tf.cast(tf.reshape(counts, [-1, *[1] * (outputs.shape.rank - 1)]), outputs.dtype)
