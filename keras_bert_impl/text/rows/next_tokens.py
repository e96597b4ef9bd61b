"""The objective of a language model that reads in one direction, as GPT and ELMo (Devlin et al. 2019, section 5.1):
every token but the last of its sequence predicts the next one."""

from keras_bert_impl.text.rows import numpy_arrays


def predict_next_tokens(rows, direction, arrays=numpy_arrays):
    """Labels every token with the next one in reading direction; nothing is masked.

    Args:
        rows: dict with `token_ids` and `padding_mask`, int32 (batch, length), and of packed rows `sequence_ids`: no
            token predicts one of another sequence. Other entries are passed through.
        direction: "left_to_right": the token at i predicts that at i + 1; "right_to_left": that at i - 1.
        arrays: the module of the array operations, of which the rows are arrays.

    Returns: `rows` with, all (batch, length - 1), `mask_positions`, int32: 0 to length - 2 from left to right, 1 to
        length - 1 from right to left; `mask_ids`, int32, the token to predict there; `mask_weights`, float32, 1 for a
        prediction, 0 where the next token is padding or of another sequence.
    """
    token_ids = rows["token_ids"]
    numbers = rows.get("sequence_ids", rows["padding_mask"])  # 0 for padding
    first, second = token_ids[:, :-1], token_ids[:, 1:]
    is_pair = (numbers[:, :-1] == numbers[:, 1:]) & (numbers[:, 1:] > 0)
    is_forward = direction == "left_to_right"
    positions = arrays.arange(token_ids.shape[1] - 1) + (0 if is_forward else 1)
    return {
        **rows,
        "mask_positions": positions + 0 * first,  # for every row
        "mask_ids": arrays.where(is_pair, second if is_forward else first, 0),
        "mask_weights": arrays.cast(is_pair, arrays.float32),
    }
