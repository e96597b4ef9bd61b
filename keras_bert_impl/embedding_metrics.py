"""Metrics of sentence embeddings, for `compile(metrics=...)`; vectors and labels as in `embedding_losses`."""

import keras
from keras import ops

from keras_bert_impl.distribution import adds_up_replicas, num_replicas, replica_number
from keras_bert_impl.embedding_losses import (
    candidate_cosines,
    check_columns,
    columns_of,
    cosines_of_pairs,
    distances_of_triplets,
    similarities,
)
from keras_bert_impl.losses import weights_of_rows

__all__ = ["RankingAccuracy", "SpearmanCorrelation", "TripletAccuracy"]


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class SpearmanCorrelation(keras.metrics.Metric):
    """Metric for pairs with a similarity: Spearman's correlation of cosine and label, as reported for STS.

    It is computed over all batches of an epoch, or its last 32,768 pairs, with ties as in SciPy (Reimers & Gurevych
    2019, section 4.1). The correlation with a constant counts as 0. It is NaN if a label is outside label_range, or if
    a cosine is NaN.

    Args:
        label_range (tuple of float, optional): lowest and highest label; (0, 5) for STS-B's own scores.
            Default: (-1.0, 1.0).

    Input:  vectors (batch, 2, width).
    Labels: similarities (batch,).
    """

    columns = (2, 2)
    ROOM = 2**15

    def __init__(self, label_range=(-1.0, 1.0), name="spearman", dtype="float32"):
        super().__init__(name=name, dtype=dtype)
        self.label_range = tuple(label_range)
        self.kept = [self.add_variable((self.ROOM,), "zeros", name=of) for of in ("labels", "cosines", "weights")]
        self.num_pairs = self.add_variable((), initializer="zeros", dtype="int32", name="num_pairs")
        self.num_wrong = self.add_variable((), initializer="zeros", name="num_wrong")

    def update_state(self, y_true, y_pred, sample_weight=None):
        check_columns(self, columns_of(y_pred))
        labels, cosines = similarities(self, y_true), cosines_of_pairs(y_pred)
        low, high = self.label_range
        is_right = ops.logical_and(ops.logical_and(labels >= low, labels <= high), ops.isfinite(cosines))
        # What is wrong makes the result NaN; it only needs a place.
        labels, cosines = ops.where(is_right, labels, low), ops.where(is_right, cosines, 0.0)
        places = self._places(ops.shape(labels)[0])
        found = labels, cosines, weights_of_rows(sample_weight, y_pred)
        for variable, values in zip(self.kept, found, strict=True):
            kept = ops.convert_to_tensor(variable)
            variable.assign(ops.scatter_update(kept, places[:, None], ops.cast(values, variable.dtype)))
        self.num_pairs.assign_add(ops.shape(labels)[0])
        self.num_wrong.assign_add(ops.sum(ops.cast(ops.logical_not(is_right), "float32")))

    def _places(self, count):
        """Where the next `count` pairs are kept. Replicas, whose variables are added up, take turns at the places."""
        replicas = num_replicas() if adds_up_replicas() else 1
        numbers = (ops.convert_to_tensor(self.num_pairs) + ops.arange(count, dtype="int32")) % (self.ROOM // replicas)
        return numbers * replicas + replica_number()

    def result(self):
        labels, cosines, weights = (ops.convert_to_tensor(variable) for variable in self.kept)
        shares = weights * ops.divide_no_nan(1.0, ops.sum(weights))
        label_ranks, cosine_ranks = centred_ranks(labels, shares), centred_ranks(cosines, shares)
        product = ops.sum(shares * label_ranks * cosine_ranks)
        squares = ops.sum(shares * label_ranks**2) * ops.sum(shares * cosine_ranks**2)
        return ops.where(self.num_wrong > 0, float("nan"), ops.divide_no_nan(product, ops.sqrt(squares)))

    def get_config(self):
        return {**super().get_config(), "label_range": self.label_range}


def centred_ranks(values, shares):
    """The rank of each value, from -0.5 to 0.5; equal values have their mean rank. Float32.

    Args:
        values: (count,).
        shares: (count,), of the total that each value stands for; 0 for one that does not count.
    """
    order = ops.argsort(values)
    ascending = ops.take(values, order)
    is_new = ops.concatenate([ops.zeros(1, "int32"), ops.cast(ascending[1:] != ascending[:-1], "int32")], axis=0)
    group = ops.cumsum(is_new)  # equal values have one number
    of_group = ops.segment_sum(ops.take(shares, order), group, num_segments=values.shape[0])
    ranks = ops.take(ops.cumsum(of_group) - of_group / 2, group) - 0.5
    return ops.take(ranks, ops.argsort(order))


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class RankingAccuracy(keras.metrics.Mean):
    """Metric for pairs: how often an anchor's positive has the largest cosine of all candidates in the batch.

    The candidates are those of `MultipleNegativesRankingLoss`.
    """

    columns = (2, None)

    def __init__(self, name="ranking_accuracy", dtype="float32"):
        super().__init__(name=name, dtype=dtype)

    def update_state(self, y_true, y_pred, sample_weight=None):
        check_columns(self, columns_of(y_pred))
        own, others = candidate_cosines(y_true, y_pred)
        return super().update_state(own > ops.max(others, axis=-1), weights_of_rows(sample_weight, y_pred))


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class TripletAccuracy(keras.metrics.Mean):
    """Metric for triplets: how often an anchor is nearer to its positive than to its negative (Euclidean)."""

    columns = (3, 3)

    def __init__(self, name="triplet_accuracy", dtype="float32"):
        super().__init__(name=name, dtype=dtype)

    def update_state(self, y_true, y_pred, sample_weight=None):
        check_columns(self, columns_of(y_pred))
        to_positive, to_negative = distances_of_triplets(y_pred)
        return super().update_state(to_positive < to_negative, weights_of_rows(sample_weight, y_pred))
