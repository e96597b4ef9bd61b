"""The labels of `neighbours`, number for number, in NumPy: for reading rows without TensorFlow.

`neighbours` explains what the function does and why; the tests hold both equal.
"""

import numpy as np


def predict_neighbours(rows, direction):
    """Labels every token with the next one in reading direction.

    Args: as `neighbours.predict_neighbours`, with NumPy arrays.
    Returns: as there.
    """
    token_ids = rows["token_ids"]
    numbers = rows.get("sequence_ids", rows["padding_mask"])  # 0 for padding
    batch, length = token_ids.shape
    first, second = token_ids[:, :-1], token_ids[:, 1:]
    is_pair = (numbers[:, :-1] == numbers[:, 1:]) & (numbers[:, 1:] > 0)
    is_forward = direction == "left_to_right"
    positions = np.arange(length - 1, dtype=np.int32) + (0 if is_forward else 1)
    return {
        **rows,
        "mask_positions": np.broadcast_to(positions, (batch, length - 1)).copy(),
        "mask_ids": np.where(is_pair, second if is_forward else first, 0).astype(np.int32),
        "mask_weights": is_pair.astype(np.float32),
    }
