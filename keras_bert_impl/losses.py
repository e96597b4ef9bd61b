"""The losses of pre-training and the weighted loss of fine-tuning, in float32.

If a batch is distributed over the replicas of a strategy, each loss is the replica's share, and the shares add up to
the loss of the batch (`equal_share`). A mean of the replicas' means would differ, because replicas may have different
numbers of masked tokens.
"""

import functools

import keras
from keras import ops

from keras_bert_impl.distribution import equal_share, sum_over_replicas
from keras_bert_impl.kernels.cross_entropy import cross_entropy_of_rows

__all__ = ["NO_LABEL", "LabelledAccuracy", "MultiLabelF1", "WeightedCrossEntropy", "WeightedLoss"]

# The label of a token without a label: -1 in Google's code and scikit-learn, -100 in Hugging Face and torch.
NO_LABEL = (-1, -100)


def masked_lm_loss(mask_ids, mask_weights, logits):
    """Mean cross-entropy over the predicted tokens of the batch (Devlin et al. 2019, section 3.1).

    Args:
        mask_ids: (batch, predictions), int, the original tokens.
        mask_weights: (batch, predictions), float, 1 for a prediction, 0 for padding.
        logits: (batch, predictions, vocabulary).

    Returns: scalar, float32. BERT divides by the number of predicted tokens, so that padding does not shrink the
        loss; Keras by default divides by batch * predictions. The 1e-5 is Google's, for a batch without predictions.
    """
    per_token = cross_entropy(mask_ids, logits)  # (batch, predictions)
    weights = ops.cast(mask_weights, "float32")
    return equal_share(ops.sum(per_token * weights) / (sum_over_replicas(ops.sum(weights)) + 1e-5))


def next_sentence_loss(labels, logits, weights=None):
    """Mean cross-entropy of IsNext (0) against random (1).

    Args:
        labels: (batch,), or (batch, sequences) of packed rows.
        logits: (batch, 2), or (batch, sequences, 2).
        weights: weights of the labels, 1 for a sequence, 0 for padding; None: all labels count.

    Returns: scalar, float32.
    """
    losses = cross_entropy(labels, logits)
    weights = ops.ones_like(losses) if weights is None else ops.cast(weights, "float32")
    return weighted_mean(losses, weights)


def replaced_token_loss(is_replaced, logits, weights):
    """Mean binary cross-entropy over the tokens of the batch (Clark et al. 2020, section 3.1, L_Disc).

    Args:
        is_replaced: (batch, length), float, 1 for a token that was replaced, else 0.
        logits: (batch, length).
        weights: (batch, length), float, 1 for a token, 0 for padding.

    Returns: scalar, float32.
    """
    logits = ops.cast(logits, "float32")
    # -log sigmoid(logits) for a replaced token, -log sigmoid(-logits) for an original one.
    return weighted_mean(ops.softplus(logits) - logits * is_replaced, weights)


def soft_target_loss(student_logits, teacher_logits, weights, temperature):
    """Mean divergence of the student's distribution from the teacher's, KL(teacher || student), both softened by a
    temperature, times its square, so that gradients keep their size (Hinton et al. 2015, section 2).

    Args:
        student_logits: (..., classes).
        teacher_logits: of the same shape.
        weights: (...), float, 1 for a distribution that counts, 0 for padding.
        temperature: divides the logits; above 1 it shows more of what the teacher thinks of wrong classes.

    Returns: scalar, float32.
    """
    student, teacher = (ops.cast(logits, "float32") / temperature for logits in (student_logits, teacher_logits))
    return temperature**2 * weighted_mean(divergence(teacher, student), weights)


def cosine_loss(student_vectors, teacher_vectors, weights):
    """Mean of 1 - cos(student, teacher), the published code's torch.nn.CosineEmbeddingLoss (Sanh et al. 2019,
    section 2).

    Args:
        student_vectors: (..., width).
        teacher_vectors: of the same shape.
        weights: (...), float, 1 for a vector that counts, 0 for padding.

    Returns: scalar, float32.
    """
    student, teacher = (ops.cast(vectors, "float32") for vectors in (student_vectors, teacher_vectors))
    # torch adds this epsilon to both squared norms; without it the gradient at a vector of zeros is NaN.
    lengths = [ops.sqrt(ops.sum(ops.square(vectors), axis=-1) + 1e-12) for vectors in (student, teacher)]
    return weighted_mean(1 - ops.sum(student * teacher, axis=-1) / (lengths[0] * lengths[1]), weights)


def hidden_state_loss(student_vectors, teacher_vectors, weights):
    """Mean squared difference of hidden states (Jiao et al. 2020, "TinyBERT", equations 8 and 9).

    Args:
        student_vectors: (..., width).
        teacher_vectors: of the same shape.
        weights: (...), float, 1 for a vector that counts, 0 for padding.

    Returns: scalar, float32.
    """
    student, teacher = (ops.cast(vectors, "float32") for vectors in (student_vectors, teacher_vectors))
    return weighted_mean(ops.mean(ops.square(student - teacher), axis=-1), weights)


def divergence(logits, other_logits):
    """KL(softmax(logits) || softmax(other_logits)) along the last axis, float32."""
    logs, other_logs = ops.log_softmax(logits), ops.log_softmax(other_logits)
    return ops.sum(ops.exp(logs) * (logs - other_logs), axis=-1)


class WeightedLoss(keras.losses.Loss):
    """Base class of losses that are a weighted mean over the batch and, in the logs, over the epoch.

    Args:
        name (str): name of the loss.
    """

    def __init__(self, name):
        super().__init__(name=name, reduction="sum", dtype="float32")

    def weights(self, y_true, y_pred, sample_weight=None):
        """The weights of the rows, (batch,), float32."""
        return weights_of_rows(sample_weight, y_pred)


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class WeightedCrossEntropy(WeightedLoss):
    """Mean cross-entropy on logits, weighted by the sample weights, for padding and rare classes.

    On one device it equals Keras' SparseCategoricalCrossentropy with reduction="mean_with_sample_weight".

    Args:
        ignore_class (int or tuple of int, optional): labels that have weight 0, such as `NO_LABEL`. Default: None, all
            labels count.

    Input:  logits (batch, ..., classes).
    Labels: int (batch, ...). Sample weights have the shape of the labels, or (batch,); by default 1 each.

    Example:
        >>> loss = kbi.losses.WeightedCrossEntropy(ignore_class=kbi.losses.NO_LABEL)
        >>> round(float(loss(np.array([[1, -100]]), np.zeros((1, 2, 2)))), 3)
        0.693
    """

    def __init__(self, ignore_class=None, name="weighted_cross_entropy"):
        super().__init__(name)
        self.ignore_class = ignore_class

    def __call__(self, y_true, y_pred, sample_weight=None):
        labels = ops.cast(y_true, "int32")
        if self.ignore_class is not None:
            labels = ops.where(has_label(labels, self.ignore_class), labels, 0)
        return weighted_mean(cross_entropy(labels, y_pred), self.weights(y_true, y_pred, sample_weight))

    def weights(self, y_true, y_pred, sample_weight=None):
        """The weights of the labels, of their shape, float32."""
        weights = weights_of_labels(1.0 if sample_weight is None else sample_weight, y_true)
        if self.ignore_class is None:
            return weights
        return weights * ops.cast(has_label(ops.cast(y_true, "int32"), self.ignore_class), "float32")

    def get_config(self):
        return {"ignore_class": self.ignore_class, "name": self.name}


def has_label(labels, ignore_class=NO_LABEL):
    """Whether each label is a real one, that is none of those to be ignored, bool."""
    ignored = ignore_class if isinstance(ignore_class, list | tuple) else [ignore_class]
    return functools.reduce(ops.logical_and, [ops.not_equal(labels, one) for one in ignored])


def weights_of_labels(weights, labels):
    """Expands sample weights, one per label or one per row, to one per label, float32."""
    weights = ops.cast(weights, "float32")
    if len(weights.shape) > len(labels.shape):  # (batch, 1) beside labels (batch,)
        weights = ops.reshape(weights, ops.shape(labels))
    for _ in range(len(labels.shape) - len(weights.shape)):
        weights = ops.expand_dims(weights, -1)
    return weights * ops.ones_like(labels, dtype="float32")


def weights_of_rows(weights, outputs):
    """Sample weights of the rows of outputs, (batch,), float32; 1 each if None."""
    weights = ops.ones((ops.shape(outputs)[0],)) if weights is None else weights
    return ops.reshape(ops.cast(weights, "float32"), (-1,))


def cross_entropy(labels, logits):
    """-log softmax(logits)[label] along the last axis, float32, of the shape of `labels`.

    A label that is not a class gives NaN, unless the backend raises an error; JAX by itself would give 0.
    """
    # Flattened to one axis of predictions: with more axes, Keras on torch moves the classes to the second axis, and
    # every pass over them is slow, because they are no longer contiguous in memory.
    classes = ops.shape(logits)[-1]  # for an answer, the length: TensorFlow does not know it while it traces
    losses = cross_entropy_of_rows(ops.reshape(labels, (-1,)), ops.reshape(logits, (-1, classes)))
    is_class = ops.logical_and(ops.greater_equal(labels, 0), ops.less(labels, classes))
    return ops.where(is_class, ops.reshape(losses, ops.shape(labels)), float("nan"))


def accuracy(labels, logits, weights):
    """The replica's share of the weighted accuracy: how often the largest logit is at the label; scalar, float32."""
    is_right = ops.cast(ops.equal(ops.argmax(logits, axis=-1), ops.cast(labels, "int32")), "float32")
    return weighted_mean(is_right, ops.cast(weights, "float32"))


def weighted_mean(values, weights):
    """The replica's share of the mean over the batch, scalar; 0 if all weights are 0."""
    return equal_share(ops.divide_no_nan(ops.sum(values * weights), sum_over_replicas(ops.sum(weights))))


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class MultiLabelF1(keras.metrics.F1Score):
    """Metric for texts with several classes: F1 over all pairs of a text and a class.

    A class is predicted if its logit is above 0, a probability above 0.5. With many classes, nearly all labels are 0: a
    model that never predicts a class has a high accuracy, but an F1 of 0.

    Input:  logits (batch, classes).
    Labels: (batch, classes), 1 for a class of the text, else 0.

    Example:
        >>> f1 = kbi.losses.MultiLabelF1()
        >>> labels, logits = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[2.0, -1.0], [0.5, 1.0]])
        >>> round(float(f1(labels, logits)), 3)
        0.8
    """

    def __init__(self, name="f1", dtype=None):
        super().__init__(average="micro", threshold=0.5, name=name, dtype=dtype)

    def update_state(self, y_true, y_pred, sample_weight=None):
        return super().update_state(y_true, ops.sigmoid(y_pred), sample_weight)

    def get_config(self):
        return {"name": self.name, "dtype": self.dtype}


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class LabelledAccuracy(keras.metrics.SparseCategoricalAccuracy):
    """Metric for tokens: accuracy over the tokens that have a label. -1 and -100 (`NO_LABEL`) mean no label.

    Input:  logits (batch, length, classes).
    Labels: int (batch, length).

    Example:
        >>> accuracy = kbi.losses.LabelledAccuracy()
        >>> labels, logits = np.array([[1, 0, -100]]), np.array([[[0.0, 1.0], [0.0, 1.0], [1.0, 0.0]]])
        >>> float(accuracy(labels, logits))
        0.5
    """

    def __init__(self, name="accuracy", dtype=None):
        super().__init__(name=name, dtype=dtype)

    def update_state(self, y_true, y_pred, sample_weight=None):
        labelled = ops.cast(has_label(y_true), "float32")
        if sample_weight is not None:
            labelled = labelled * weights_of_labels(sample_weight, y_true)
        # Flat: over an axis of tokens Keras takes means, by which a token of a longer batch would count less.
        logits = ops.reshape(y_pred, (-1, y_pred.shape[-1]))
        return super().update_state(ops.reshape(ops.maximum(y_true, 0), (-1,)), logits, ops.reshape(labelled, (-1,)))
