"""The loss that `fit` and `evaluate` show is the mean over all that the batches of an epoch count.

Keras takes the mean of the batches' losses by their rows, but equally many rows may hold different numbers of labelled
tokens, of masks and of sample weights: the figure would depend on how rows are divided into batches, and over devices.
"""

import keras
from keras import ops

from keras_bert_impl.distribution import sum_over_replicas
from keras_bert_impl.losses import WeightedLoss


class EpochLoss(keras.metrics.Mean):
    """The mean of batches' losses by what they count, which `add` is given; Keras calls `update_state` with rows."""

    def update_state(self, values, sample_weight=None):
        return None

    def add(self, share, weights):
        """Adds a batch's loss, the sum of the replicas' shares, which is a mean by these weights."""
        super().update_state(sum_over_replicas(share), sum_over_replicas(ops.sum(weights)))


class EpochLossMixin:
    """For models that are compiled with one of our losses, or with any other."""

    def compile(self, *arguments, **options):
        super().compile(*arguments, **options)
        if isinstance(self.loss, WeightedLoss):
            # Not tracked as a metric of the model's own: Keras shows it as its loss.
            object.__setattr__(self, "_loss_tracker", EpochLoss(name="loss"))

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        loss = super().compute_loss(x, y, y_pred, sample_weight, training)
        if isinstance(self._loss_tracker, EpochLoss):
            self._loss_tracker.add(loss, self.loss.weights(y, y_pred, sample_weight))
        return loss


class SumOfMeansMixin:
    """For models that compute a loss of several parts, each a mean over something else.

    Attributes:
        means: a keras.metrics.Mean by its name, for each part of the loss, and for other figures.
        part_weights: the weight of each part in the loss.
    """

    def record(self, name, share, weights):
        """Adds a batch's value, the sum of the replicas' shares, to a mean, weighted by what it is a mean over: the
        mean of an epoch is over tokens, say, and its exp() a perplexity."""
        count = sum_over_replicas(ops.sum(ops.cast(weights, "float32")))
        self.means[name].update_state(sum_over_replicas(share), sample_weight=count)

    def get_metrics_result(self):
        """As Keras', with the sum of the parts' means as the loss."""
        found = super().get_metrics_result()
        return {**found, "loss": sum(weight * found[name] for name, weight in self.part_weights.items())}
