"""Metrics of sentence embeddings, for `compile(metrics=...)`; vectors and labels as in `embedding_losses`."""

import keras
from keras import ops

from keras_bert_impl.embedding_losses import (
    candidate_cosines,
    check_columns,
    columns_of,
    cosines_of_pairs,
    distances_of_triplets,
    similarities,
    weights_of_rows,
)


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class SpearmanCorrelation(keras.metrics.Metric):
    """Spearman's correlation between the cosine of a pair and its labelled similarity, the figure that is reported for
    STS (Reimers & Gurevych 2019, section 4.1), over all batches of an epoch.

    Keras adds up metrics batch by batch and replica by replica, which ranks cannot be. Therefore pairs are counted in
    1,000 intervals of cosines and 1,000 of labels; pairs of an interval share their mean rank, as ties do. With the
    labels of STS-B's dev set, divided by 5, the figure is within 1e-4 of SciPy's.

    Args:
        label_range: the lowest and the highest label. STS-B's scores from 0 to 5 need (0, 5), unless divided by 5.

    The correlation with a constant counts as 0. It is NaN if a label is outside its range, or a cosine is NaN.
    """

    columns = (2, 2)
    INTERVALS = 1000

    def __init__(self, label_range=(-1.0, 1.0), name="spearman", dtype="float32"):
        super().__init__(name=name, dtype=dtype)
        self.label_range = tuple(label_range)
        self.counts = self.add_variable((self.INTERVALS, self.INTERVALS), initializer="zeros", name="counts")
        self.num_wrong = self.add_variable((), initializer="zeros", name="num_wrong")

    def update_state(self, y_true, y_pred, sample_weight=None):
        check_columns(self, columns_of(y_pred))
        labels, cosines = similarities(self, y_true), cosines_of_pairs(y_pred)
        low, high = self.label_range
        is_right = ops.logical_and(ops.logical_and(labels >= low, labels <= high), ops.isfinite(cosines))
        # What is wrong makes the result NaN; it only needs a place.
        rows = self._intervals(ops.where(is_right, labels, low), low, high)
        columns = self._intervals(ops.where(is_right, cosines, 0.0), -1.0, 1.0)
        weights = weights_of_rows(sample_weight, y_pred)
        counts = ops.segment_sum(weights, rows * self.INTERVALS + columns, num_segments=self.INTERVALS**2)
        self.counts.assign_add(ops.reshape(counts, (self.INTERVALS, self.INTERVALS)))
        self.num_wrong.assign_add(ops.sum(ops.cast(ops.logical_not(is_right), "float32")))

    def _intervals(self, values, low, high):
        numbers = ops.floor((values - low) / (high - low) * self.INTERVALS)
        return ops.cast(ops.clip(numbers, 0, self.INTERVALS - 1), "int32")

    def result(self):
        counts = ops.convert_to_tensor(self.counts)
        of_labels, of_cosines = ops.sum(counts, axis=1), ops.sum(counts, axis=0)
        shares = counts * ops.divide_no_nan(1.0, ops.sum(counts))
        label_ranks, cosine_ranks = centred_ranks(of_labels), centred_ranks(of_cosines)
        product = ops.sum(shares * label_ranks[:, None] * cosine_ranks[None, :])
        squares = ops.sum(shares * label_ranks[:, None] ** 2) * ops.sum(shares * cosine_ranks[None, :] ** 2)
        return ops.where(self.num_wrong > 0, float("nan"), ops.divide_no_nan(product, ops.sqrt(squares)))

    def get_config(self):
        return {**super().get_config(), "label_range": self.label_range}


def centred_ranks(counts):
    """The mean rank of what each interval holds, divided by the total, less the mean of all ranks; float32."""
    ranks = ops.cumsum(counts) - counts / 2
    return ops.divide_no_nan(ranks, ops.sum(counts)) - 0.5


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class RankingAccuracy(keras.metrics.Mean):
    """How often the own positive of an anchor has a larger cosine than all other candidates of its batch, which are
    those of `MultipleNegativesRankingLoss`."""

    columns = (2, None)

    def __init__(self, name="ranking_accuracy", dtype="float32"):
        super().__init__(name=name, dtype=dtype)

    def update_state(self, y_true, y_pred, sample_weight=None):
        check_columns(self, columns_of(y_pred))
        own, others = candidate_cosines(y_true, y_pred)
        return super().update_state(own > ops.max(others, axis=-1), weights_of_rows(sample_weight, y_pred))


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class TripletAccuracy(keras.metrics.Mean):
    """How often an anchor is nearer to its positive than to its negative, by Euclidean distance."""

    columns = (3, 3)

    def __init__(self, name="triplet_accuracy", dtype="float32"):
        super().__init__(name=name, dtype=dtype)

    def update_state(self, y_true, y_pred, sample_weight=None):
        check_columns(self, columns_of(y_pred))
        to_positive, to_negative = distances_of_triplets(y_pred)
        return super().update_state(to_positive < to_negative, weights_of_rows(sample_weight, y_pred))
