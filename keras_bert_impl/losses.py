"""The losses of pre-training, in float32."""

import keras
from keras import ops


def masked_lm_loss(mask_ids, mask_weights, logits):
    """Mean cross-entropy over the predicted tokens of the batch (Devlin et al. 2019, section 3.1).

    Args:
        mask_ids: (batch, predictions), int, the tokens that stood there.
        mask_weights: (batch, predictions), float, 1 for a prediction, 0 for padding.
        logits: (batch, predictions, vocabulary).

    Returns: scalar, float32. BERT divides by the tokens predicted, Keras by default by batch * predictions: padding
        must not shrink the loss. The 1e-5 is Google's, for a batch without any prediction.
    """
    per_token = cross_entropy(mask_ids, logits)  # (batch, predictions)
    weights = ops.cast(mask_weights, "float32")
    return ops.sum(per_token * weights) / (ops.sum(weights) + 1e-5)


def next_sentence_loss(labels, logits, weights=None):
    """Mean cross-entropy of IsNext (0) against random (1).

    Args:
        labels: (batch,), or (batch, sequences) of packed rows.
        logits: (batch, 2), or (batch, sequences, 2).
        weights: of the labels, 1 for a sequence, 0 for padding; None: all count.

    Returns: scalar, float32.
    """
    losses = cross_entropy(labels, logits)
    if weights is None:
        return ops.mean(losses)
    weights = ops.cast(weights, "float32")
    return ops.sum(losses * weights) / (ops.sum(weights) + 1e-5)


def cross_entropy(labels, logits):
    """-log softmax(logits)[label] along the last axis, float32, of the shape of `labels`."""
    return keras.losses.sparse_categorical_crossentropy(labels, ops.cast(logits, "float32"), from_logits=True)
