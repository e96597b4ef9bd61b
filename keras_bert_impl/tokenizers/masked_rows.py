"""Masks rows in memory, without TensorFlow, by the rule that `preprocessing.masking` applies in the tf.data graph."""

import numpy as np


def mask_rows(rows, tokenizer, random, masking_rate=0.15, mask_token_rate=0.8, random_token_rate=0.1):
    """Chooses 15 % of each row's tokens to predict; shows 80 % of them as [MASK], 10 % as a random token.

    Args:
        rows: dict of `token_ids` and `padding_mask`, int (batch, length); other entries are passed through.
        tokenizer: gives the ids of the special tokens, which are never chosen.
        random: a `numpy.random.Generator`.
        masking_rate: share of the tokens to predict. All three rates are those of Devlin et al. 2019, section 3.1.
        mask_token_rate: share of these that is shown as [MASK].
        random_token_rate: share of these that is shown as a random token; the rest stays unchanged.

    Returns: (inputs, mask_ids, mask_weights): inputs with new `token_ids` and with ascending `mask_positions`.
        `mask_positions`, `mask_ids` and `mask_weights` are (batch, predictions), where predictions is masking_rate *
        length, rounded up.
    """
    token_ids = rows["token_ids"]
    batch, length = token_ids.shape
    predictions = max(1, int(np.ceil(masking_rate * length)))
    special = [tokenizer.cls_id, tokenizer.sep_id, tokenizer.pad_id]
    candidates = (rows["padding_mask"] == 1) & ~np.isin(token_ids, special)
    # As in Google's code: a share of all tokens of the row, special ones included, and at least one.
    wanted = np.clip(np.round(rows["padding_mask"].sum(1) * masking_rate), 1, predictions)  # (batch,)
    wanted = np.minimum(wanted, candidates.sum(1))

    # The candidates with the smallest random numbers are chosen: uniform, without replacement.
    order = np.argsort(np.where(candidates, random.random((batch, length)), 2.0), axis=1)[:, :predictions]
    weights = (np.arange(predictions) < wanted[:, None]).astype("float32")  # (batch, predictions)
    positions = np.sort(np.where(weights > 0, order, length), axis=1)  # ascending, unused columns last
    positions = np.where(weights > 0, positions, 0).astype("int32")
    mask_ids = np.where(weights > 0, np.take_along_axis(token_ids, positions, 1), 0).astype("int32")

    draw = random.random((batch, predictions))
    words = random.integers(0, tokenizer.vocabulary_size, (batch, predictions))
    shown = np.where(draw < mask_token_rate, tokenizer.mask_id, mask_ids)
    shown = np.where((draw >= mask_token_rate) & (draw < mask_token_rate + random_token_rate), words, shown)
    masked = token_ids.copy()
    row, column = np.nonzero(weights)
    masked[row, positions[row, column]] = shown[row, column]
    return {**rows, "token_ids": masked, "mask_positions": positions}, mask_ids, weights
