"""The loss that `fit` and `evaluate` show: the mean over all that the batches of an epoch count.

Keras weights the batches' losses by their numbers of examples, but these may have different numbers of labelled tokens
and masks, and different sample weights: the loss would depend on how examples are divided into batches, and over
devices.
"""

import keras
from keras import ops

from keras_bert_impl.distribution import sum_over_replicas
from keras_bert_impl.encoders.keras_methods import AdaptedModel
from keras_bert_impl.losses import WeightedLoss


class EpochLoss(keras.metrics.Mean):
    """The mean of batches' losses, weighted by `counted` if it is set before `update_state`, else by examples."""

    counted = None

    def update_state(self, values, sample_weight=None):
        counted, self.counted = self.counted, None
        super().update_state(values, sample_weight if counted is None else counted)


class EpochLossModel(AdaptedModel):
    """For models that are compiled with one of our losses, or with any other."""

    def compile(self, *arguments, **options):
        super().compile(*arguments, **options)
        # Not tracked as a metric of the model's own: Keras shows it as its loss.
        object.__setattr__(self, "_loss_tracker", EpochLoss(name="loss"))

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        loss = super().compute_loss(x, y, y_pred, sample_weight, training)
        given, *others = keras.tree.flatten(self.loss)  # which may be in a list, or a dict by the output
        if isinstance(given, WeightedLoss) and not others:
            weights = given.weights(keras.tree.flatten(y)[0], y_pred, keras.tree.flatten(sample_weight)[0])
            self._loss_tracker.counted = sum_over_replicas(ops.sum(weights))
        return loss


class SumOfMeansModel(AdaptedModel):
    """For models whose loss has several parts, each a mean over something else.

    Attributes:
        means: a keras.metrics.Mean by name for each part of the loss, and for other metrics.
        part_weights: the weight of each part in the loss.
    """

    def record(self, name, share, weights):
        """Adds a batch's value, the sum of the replicas' shares, to a mean, weighted by what it is a mean over, such as
        tokens, so that exp() of an epoch's mean is a perplexity."""
        count = sum_over_replicas(ops.sum(ops.cast(weights, "float32")))
        self.means[name].update_state(sum_over_replicas(share), sample_weight=count)

    def get_metrics_result(self):
        """As Keras', with the sum of the parts' means as the loss."""
        found = super().get_metrics_result()
        return {**found, "loss": sum(weight * found[name] for name, weight in self.part_weights.items())}


class Judge(EpochLossModel):
    """A model whose `evaluate` compares given outputs with labels."""


def evaluate_outputs(model, outputs, labels, weights, batch_size, verbose, others, return_dict=False, callbacks=None):
    """Returns the result of `model.evaluate` for outputs that are already computed.

    Args:
        model: a compiled keras.Model.
        outputs: (examples, ...), float.
        labels: (examples, ...).
        weights: sample weights, or None.
        batch_size: number of outputs compared at once.
        verbose: as for `keras.Model.evaluate`.
        others: further metrics by name, which are returned after the loss and the metrics.
        return_dict: as for `keras.Model.evaluate`.
        callbacks: as for `keras.Model.evaluate`.
    """
    given = keras.Input(outputs.shape[1:])
    judge = Judge(given, given)
    options = keras.saving.deserialize_keras_object(model.get_compile_config())
    names = ("loss", "loss_weights", "metrics", "weighted_metrics", "run_eagerly")
    judge.compile(**{name: options.get(name) for name in names}, jit_compile=False)
    if callbacks and not isinstance(callbacks, keras.callbacks.CallbackList):
        # Their `model` is the one that is judged, not the one that compares its outputs.
        callbacks = keras.callbacks.CallbackList(callbacks, add_progbar=verbose != 0, model=model, verbose=verbose)
    judged = judge.evaluate(outputs, labels, batch_size, verbose, weights, callbacks=callbacks, return_dict=return_dict)
    if return_dict:
        return {**judged, **others}
    return [*keras.tree.flatten(judged), *(others[name] for name in sorted(others))] if others else judged
