"""Several sentence pairs in one row, so that hardly any position is padding.

Attention and positions stay within a pair (`sequence_ids`, `position_ids`), and every pair has its own [CLS], so the
pairs of a packed row get the same results as if each were alone (Krell et al. 2021, "Efficient sequence packing without
cross-contamination").
"""

import numpy as np


def assign_rows(lengths, capacity, most):
    """Decides which pairs share a row: best fit, longest pair first.

    Args:
        lengths: (pairs,), the number of tokens of each.
        capacity: tokens of a row.
        most: the most pairs in a row.

    Returns: a list of rows, each a list of indices into `lengths`; every pair is in exactly one row.
    """
    lengths = np.asarray(lengths)
    rows, open_rows = [], [[] for _ in range(capacity + 1)]  # numbers of rows, by the tokens that still fit
    for place in np.argsort(-lengths, kind="stable").tolist():
        length = int(lengths[place])
        room = next((room for room in range(length, capacity + 1) if open_rows[room]), None)
        if room is None:
            number, room = len(rows), capacity
            rows.append([])
        else:
            number = open_rows[room].pop()
        rows[number].append(place)
        if len(rows[number]) < most and room > length:
            open_rows[room - length].append(number)
    return rows


def most_sequences(sequence_length):
    """The most pairs in a row, and so the number of its `cls_positions`. A pair of fewer than 16 tokens is rare."""
    return max(1, sequence_length // 16)
