"""The losses of pre-training, and the weighted one of fine-tuning, in float32.

Of a batch that is spread over the replicas of a strategy each gives the replica's share, and the shares add up to the
loss of the batch: a mean of the replicas' means would be another number where one has more masked tokens than another.
"""

import keras
from keras import ops

from keras_bert_impl.distribution import sum_over_replicas


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
    return ops.sum(per_token * weights) / (sum_over_replicas(ops.sum(weights)) + 1e-5)


def next_sentence_loss(labels, logits, weights=None):
    """Mean cross-entropy of IsNext (0) against random (1).

    Args:
        labels: (batch,), or (batch, sequences) of packed rows.
        logits: (batch, 2), or (batch, sequences, 2).
        weights: of the labels, 1 for a sequence, 0 for padding; None: all count.

    Returns: scalar, float32.
    """
    losses = cross_entropy(labels, logits)
    weights = ops.ones_like(losses) if weights is None else ops.cast(weights, "float32")
    return weighted_mean(losses, weights)


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class WeightedCrossEntropy(keras.losses.Loss):
    """Mean cross-entropy by the sample weights of the batch, as padding and rare classes ask for.

    As Keras' SparseCategoricalCrossentropy with reduction="mean_with_sample_weight" on one device.

    Args:
        ignore_class: a label that has no weight; None: all count.

    Labels (batch, ...), int; logits (batch, ..., classes); sample weights as the labels, default 1 each.
    """

    def __init__(self, ignore_class=None, name="weighted_cross_entropy"):
        super().__init__(name=name, reduction="sum", dtype="float32")
        self.ignore_class = ignore_class

    def __call__(self, y_true, y_pred, sample_weight=None):
        labels = ops.cast(y_true, "int32")
        weights = (
            ops.ones(ops.shape(labels), "float32") if sample_weight is None else ops.cast(sample_weight, "float32")
        )
        if self.ignore_class is not None:
            is_label = ops.not_equal(labels, self.ignore_class)
            labels, weights = ops.where(is_label, labels, 0), weights * ops.cast(is_label, "float32")
        return weighted_mean(cross_entropy(labels, y_pred), ops.reshape(weights, ops.shape(labels)))

    def get_config(self):
        return {"ignore_class": self.ignore_class, "name": self.name}


def cross_entropy(labels, logits):
    """-log softmax(logits)[label] along the last axis, float32, of the shape of `labels`."""
    # As one long row of predictions: with further axes Keras moves the classes to the second, on torch, and every pass
    # over them goes against the order of the memory.
    flat = ops.reshape(ops.cast(logits, "float32"), (-1, logits.shape[-1]))
    losses = keras.losses.sparse_categorical_crossentropy(ops.reshape(labels, (-1,)), flat, from_logits=True)
    return ops.reshape(losses, ops.shape(labels))


def accuracy(labels, logits, weights):
    """The replica's share of the weighted share of `labels` that have the largest of `logits`, scalar, float32."""
    is_right = ops.cast(ops.equal(ops.argmax(logits, axis=-1), ops.cast(labels, "int32")), "float32")
    return weighted_mean(is_right, ops.cast(weights, "float32"))


def weighted_mean(values, weights):
    """The replica's share of the mean over the batch, scalar; 0 where nothing has a weight."""
    return ops.divide_no_nan(ops.sum(values * weights), sum_over_replicas(ops.sum(weights)))
