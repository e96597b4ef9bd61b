"""Losses and metrics given to `compile` are computed from logits, as all models here return them.

By their names, Keras computes them from probabilities: a model compiled with "sparse_categorical_crossentropy" would
never learn, and say nothing.
"""

import keras

from keras_bert_impl.user_warnings import warn_user

CROSS_ENTROPIES = {
    keras.losses.binary_crossentropy: keras.losses.BinaryCrossentropy,
    keras.losses.binary_focal_crossentropy: keras.losses.BinaryFocalCrossentropy,
    keras.losses.categorical_crossentropy: keras.losses.CategoricalCrossentropy,
    keras.losses.categorical_focal_crossentropy: keras.losses.CategoricalFocalCrossentropy,
    keras.losses.sparse_categorical_crossentropy: keras.losses.SparseCategoricalCrossentropy,
}
METRICS_FROM_LOGITS = (
    keras.metrics.AUC,
    keras.metrics.BinaryCrossentropy,
    keras.metrics.CategoricalCrossentropy,
    keras.metrics.SparseCategoricalCrossentropy,
)
# What compares probabilities with a threshold, or needs them, and has no form for logits.
OF_PROBABILITIES = (
    keras.losses.KLDivergence,
    keras.losses.Poisson,
    keras.metrics.BinaryAccuracy,
    keras.metrics.BinaryIoU,
    keras.metrics.FalseNegatives,
    keras.metrics.FalsePositives,
    keras.metrics.KLDivergence,
    keras.metrics.Poisson,
    keras.metrics.Precision,
    keras.metrics.PrecisionAtRecall,
    keras.metrics.Recall,
    keras.metrics.RecallAtPrecision,
    keras.metrics.SensitivityAtSpecificity,
    keras.metrics.SpecificityAtSensitivity,
    keras.metrics.TrueNegatives,
    keras.metrics.TruePositives,
)
ACCURACY = ("accuracy", "acc")
OF_PROBABILITIES_BY_NAME = (keras.losses.kl_divergence, keras.losses.poisson, keras.metrics.binary_accuracy)


@keras.saving.register_keras_serializable("keras_bert_impl")
class AUC(keras.metrics.AUC):
    """`keras.metrics.AUC` that also takes numbers of two classes; then it is that of class 1 against class 0, by the
    difference of their logits, which is the logit of class 1's probability; and one logit, with labels of which those
    above a half are of class 1."""

    def update_state(self, y_true, y_pred, sample_weight=None):
        y_true, y_pred = keras.ops.convert_to_tensor(y_true), keras.ops.convert_to_tensor(y_pred)
        if len(y_pred.shape) == 2 and y_pred.shape[-1] == 1 and not self.multi_label:  # one logit, of class 1
            y_true, y_pred = keras.ops.reshape(y_true, (-1,)), y_pred[:, 0]
            y_true = keras.ops.greater(y_true, 0.5)  # of a relevance, too, which is a fraction; Keras would take 0.1
            sample_weight = None if sample_weight is None else keras.ops.reshape(sample_weight, (-1,))
        elif len(y_true.shape) < len(y_pred.shape) or (y_true.shape[-1] == 1 and y_pred.shape[-1] != 1):
            if y_pred.shape[-1] != 2 or len(y_pred.shape) != 2:
                raise ValueError(
                    f"AUC got a number of a class for each row and logits of shape {tuple(y_pred.shape)}: it is "
                    "defined for two classes, or for a 0 or 1 for each class (multi_label=True)."
                )
            y_true, y_pred = keras.ops.reshape(y_true, (-1,)), y_pred[:, 1] - y_pred[:, 0]
        super().update_state(y_true, y_pred, sample_weight)


def loss_on_logits(loss):
    """A loss given to `compile`, made to read logits; a warning says that it was made so.

    Raises: ValueError for a loss of probabilities that has no form for logits.
    """
    if isinstance(loss, str) and loss.lower() in ("crossentropy", "ce"):
        raise ValueError(
            f"loss {loss!r} can be several: give 'sparse_categorical_crossentropy' for numbers of classes, or "
            "'categorical_crossentropy' or 'binary_crossentropy' for a number for each class."
        )
    found = keras.losses.get(loss) if isinstance(loss, str) else loss
    _refuse_probabilities(found)
    if callable(found) and found in CROSS_ENTROPIES:
        made = CROSS_ENTROPIES[found](from_logits=True)
    elif isinstance(found, tuple(CROSS_ENTROPIES.values())) and not found.from_logits:
        made = type(found).from_config({**found.get_config(), "from_logits": True})
    else:
        return loss
    warn_user(f"The model returns logits: the loss {made.name} is computed with from_logits=True.")
    return made


def metrics_on_logits(metrics):
    """Metrics given to `compile`, one or a list, made to read logits.

    Raises: ValueError for a metric of probabilities that has no form for logits.
    """
    if isinstance(metrics, list | tuple):
        return [metrics_on_logits(metric) for metric in metrics]
    is_name = isinstance(metrics, str) and metrics.lower() not in ACCURACY
    found = keras.metrics.get(metrics) if is_name else metrics
    _refuse_probabilities(found)
    if not isinstance(found, METRICS_FROM_LOGITS):
        return metrics
    kind, config = AUC if type(found) is keras.metrics.AUC else type(found), found.get_config()
    if kind is type(found) and config["from_logits"]:
        return metrics  # the caller may hold it, to ask for its result
    return kind.from_config({**config, "from_logits": True})


def refuse_accuracy(kind, *metrics):
    """Raises ValueError for "accuracy" among the metrics of a model that returns numbers, which Keras would count with
    a threshold of 0.5. `kind` is the name of the model's class."""
    for metric in keras.tree.flatten(metrics):
        if isinstance(metric, str) and metric.lower() in ACCURACY:
            raise ValueError(
                f"The metric {metric!r} counts classes, but a {kind} returns numbers: give 'mean_absolute_error', or "
                "take a TextClassifier."
            )


def _refuse_probabilities(found):
    if isinstance(found, keras.metrics.BinaryAccuracy) and found.threshold == 0:
        return  # of logits
    if isinstance(found, OF_PROBABILITIES) or any(found is one for one in OF_PROBABILITIES_BY_NAME):
        name = getattr(found, "name", None) or found.__name__
        raise ValueError(
            f"{name} reads probabilities, but the model returns logits, whose threshold is 0. Losses that read logits "
            "are the cross-entropies of keras.losses with from_logits=True; metrics are 'accuracy', keras.metrics.AUC "
            "and keras_bert_impl.losses.MultiLabelF1."
        )
