"""Texts that are longer than a row, as windows of tokens that overlap."""

import numpy as np


def window_begins(count, room, stride):
    """The first token of each window over `count` tokens, `room` at a time; the last window reaches the end."""
    begins = [0]
    # A step larger than a window would skip tokens.
    while begins[-1] + room < count:
        begins.append(begins[-1] + min(stride, room))
    return begins


def windows_of(texts, room):
    """Windows of `room` ids that overlap by half, for lists of ids: a list as `window_begins` gives it for each text,
    and the ids of all windows, those of a text one after the other."""
    begins = [window_begins(len(ids), room, max(1, room // 2)) for ids in texts]
    windows = [ids[begin : begin + room] for ids, of_text in zip(texts, begins, strict=True) for begin in of_text]
    return begins, windows


def best_windows(count, begins, room):
    """For each token the number of the window that shows it with the most context, on the side that has less of it.

    Ties go to the longer window, as in the original code's `_check_is_max_context`, then to the earlier one.
    """
    token = np.arange(count)
    scores = np.full((len(begins), count), -1.0)
    for place, begin in enumerate(begins):
        end = min(begin + room, count)
        inside = slice(begin, end)
        left, right = token[inside] - begin, end - 1 - token[inside]
        scores[place, inside] = np.minimum(left, right) + 0.01 * (end - begin)
    return scores.argmax(axis=0) if count else np.zeros(0, int)
