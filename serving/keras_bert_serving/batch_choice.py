"""Which of the waiting requests run as one batch, and how a large one is cut; see `request_queue`."""

import math

import numpy as np

# Running a batch costs about as much as this many further bytes of text, measured with MiniLM-L6 on two cores.
BYTES_PER_BATCH = 512
PADDING_SHARE = 0.25  # of the texts' own bytes, that may be added as padding
# Milliseconds per text, MiniLM-L6 on two cores, in batches of 1, 2, 8 and 32: 7.6, 4.2, 2.1, 1.5 for 62 bytes; 32, 23,
# 19, 19 for 248 bytes; 51, 44, 61, 65 for 930 bytes. Beyond about 2000 bytes a batch only makes the others wait.
BATCH_BYTES_ON_CPU = 2048
BATCH_BYTES_ON_GPU = 65_536


def choose_company(oldest, alike, max_batch_size, max_batch_bytes):
    """The work that runs as one batch: the oldest, and of the others those of the most similar lengths.

    Padding texts to the longest costs less than a batch of their own, up to the limit of BYTES_PER_BATCH.
    """
    batch, rows, texts = [oldest], oldest.rows, oldest.texts
    own, longest = oldest.rows * oldest.length, oldest.length
    for work in sorted(alike, key=lambda work: abs(work.length - oldest.length)):
        rows_after, own_after = rows + work.rows, own + work.rows * work.length
        longest_after = max(longest, work.length)
        padded = rows_after * longest_after
        if texts + work.texts > max_batch_size or padded > max_batch_bytes:
            continue
        if padded - own_after <= BYTES_PER_BATCH + PADDING_SHARE * own_after:
            batch.append(work)
            texts += work.texts
            rows, own, longest = rows_after, own_after, longest_after
    return batch


def part_starts(lengths, max_batch_size, max_batch_bytes):
    """Where the rows of a large request, of ascending lengths, are cut into batches; [] if they are one."""
    starts, begin = [], 0
    for place, length in enumerate(lengths):
        if place - begin == max_batch_size or (place > begin and (place - begin + 1) * length > max_batch_bytes):
            starts.append(place)
            begin = place
    return starts


def rows_of(inputs):
    """The number of rows that all inputs have, or None if they differ, or one has no rows."""
    counts = {array.shape[0] if array.ndim else None for array in inputs.values()}
    return counts.pop() if len(counts) == 1 else None


def texts_of_row(inputs):
    """How many texts are computed for each row: 1, but for rows with several, such as the endings to choose from."""
    return max((math.prod(array.shape[1:]) for array in inputs.values() if array.dtype == object), default=1)


def row_lengths(inputs, rows):
    """The bytes of the texts in each row, (rows,); 0 where the inputs are not texts."""
    lengths = np.zeros(rows, np.int64)
    for array in inputs.values():
        if array.dtype == object and array.ndim and len(array) == rows:
            lengths += np.fromiter((sum(map(len, np.ravel(row).tolist())) for row in array), np.int64, rows)
    return lengths
