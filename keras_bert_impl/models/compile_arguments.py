"""Losses and metrics given to `compile` are computed from logits, as all models here return them.

By their names, Keras computes them from probabilities: a model compiled with "sparse_categorical_crossentropy" would
never learn, and say nothing.
"""

import keras

from keras_bert_impl.losses import NO_LABEL, LabelledAccuracy, MultiLabelF1, WeightedCrossEntropy
from keras_bert_impl.metrics import FIGURES, ClassScore
from keras_bert_impl.natural_data.labels import ignored_labels, is_of_keras, takes_class_numbers
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
    keras.losses.CategoricalGeneralizedCrossEntropy,
    keras.losses.Dice,
    keras.losses.KLDivergence,
    keras.losses.Poisson,
    keras.losses.Tversky,
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
# What counts every label, also those of padding.
OF_EVERY_LABEL = (
    keras.metrics.IoU,
    keras.metrics.MeanIoU,
    keras.metrics.SparseCategoricalCrossentropy,
    keras.metrics.SparseTopKCategoricalAccuracy,
    keras.losses.SparseCategoricalCrossentropy,
)
ACCURACY = ("accuracy", "acc")
OF_PROBABILITIES_BY_NAME = (
    keras.losses.categorical_generalized_cross_entropy,
    keras.losses.dice,
    keras.losses.kl_divergence,
    keras.losses.poisson,
    keras.losses.tversky,
    keras.metrics.binary_accuracy,
)
# What compares labels with outputs as they are, unless these are said to be a number for each class.
OF_CLASS_NUMBERS = (keras.metrics.Accuracy, keras.metrics.IoU, keras.metrics.MeanIoU)
# What takes the class with the largest of a row's labels, and of its logits, though a row may have several classes.
OF_ONE_CLASS = (
    keras.metrics.CategoricalAccuracy,
    keras.metrics.FBetaScore,
    keras.metrics.OneHotIoU,
    keras.metrics.OneHotMeanIoU,
    keras.metrics.TopKCategoricalAccuracy,
)


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


def of_each(change, given):
    """`change` of what was given to `compile`, or of each entry of lists and dicts of it."""
    if isinstance(given, dict):
        return {name: of_each(change, one) for name, one in given.items()}
    return [of_each(change, one) for one in given] if isinstance(given, list | tuple) else change(given)


def loss_on_logits(loss):
    """A loss given to `compile`, made to read logits; a warning says that it was made so.

    Raises: ValueError for a loss of probabilities that has no form for logits.
    """
    if isinstance(loss, dict | list | tuple):
        return of_each(loss_on_logits, loss)
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


def refuse_loss_of_others(model, loss):
    """Raises ValueError for a loss whose labels a model cannot have: of Keras', for a model with losses of its own; of
    numbers of classes, for one that returns a number, or several classes for a text."""
    kind = type(model).__name__
    for found in keras.tree.flatten(loss):
        if model.own_losses and found is not None and is_of_keras(found):
            raise ValueError(f"{_name(found)} takes other labels than a {kind} has: {model.own_losses}.")
        if takes_class_numbers(found) and (model.returns_numbers or getattr(model, "multi_label", False)):
            remedy = "'mean_squared_error'" if model.returns_numbers else "'binary_crossentropy'"
            raise ValueError(
                f"{_name(found)} takes the number of one class for each row, which the {kind} does not have: give "
                f"{remedy}."
            )


def metrics_on_logits(metrics):
    """Metrics given to `compile`, one or several, made to read logits.

    Raises: ValueError for a metric of probabilities, or of numbers of classes, that has no form for logits.
    """
    return of_each(_metric_on_logits, metrics)


def metrics_of_classes(metrics, num_classes, multi_label):
    """Metrics given to `compile` of a model with classes, with those that Keras' names mean of numbers of classes, or
    of a 0 or 1 for each class."""

    def of_classes(metric):
        name = metric.lower() if isinstance(metric, str) else None
        if multi_label:
            is_accuracy = name == "binary_accuracy" or metric is keras.metrics.binary_accuracy
            return keras.metrics.BinaryAccuracy(threshold=0.0) if is_accuracy else metric
        name = "f1_score" if name == "f1score" else name
        return ClassScore(name, num_classes) if name in FIGURES else metric

    return of_each(of_classes, metrics)


def _metric_on_logits(metric):
    found = _found(metric)
    _refuse_probabilities(found)
    if isinstance(found, OF_CLASS_NUMBERS) and getattr(found, "sparse_y_pred", True):
        raise ValueError(
            f"{found.name} compares labels with numbers of classes, but the model returns logits: give 'accuracy', or "
            "for IoU and MeanIoU sparse_y_pred=False."
        )
    if callable(found) and found in CROSS_ENTROPIES:
        return keras.metrics.MeanMetricWrapper(found, name=found.__name__, from_logits=True)
    if not isinstance(found, (*METRICS_FROM_LOGITS, *CROSS_ENTROPIES.values())):
        return metric
    kind, config = AUC if type(found) is keras.metrics.AUC else type(found), found.get_config()
    if kind is type(found) and config["from_logits"]:
        return metric  # the caller may hold it, to ask for its result
    return kind.from_config({**config, "from_logits": True})


def _found(metric):
    """What a name among metrics stands for; that of the accuracy, which Keras decides by the labels, stays a name."""
    is_name = isinstance(metric, str) and metric.lower() not in ACCURACY
    return keras.metrics.get(metric) if is_name else metric


def loss_of_labelled(loss):
    """A loss given to `compile` of a model of tokens, made to pass over tokens without a label, as padding is: one of
    class numbers becomes the mean over the others, which Keras' would divide by all of them; one that is summed stays
    so."""
    if isinstance(loss, dict | list | tuple):
        return of_each(loss_of_labelled, loss)
    ignored = ignored_labels(loss)
    if not takes_class_numbers(loss) or (isinstance(loss, WeightedCrossEntropy) and set(NO_LABEL) <= set(ignored)):
        return loss
    if getattr(loss, "reduction", None) == "sum" and not isinstance(loss, WeightedCrossEntropy):
        return loss if ignored else type(loss).from_config({**loss.get_config(), "ignore_class": NO_LABEL[0]})
    return WeightedCrossEntropy(ignore_class=tuple(dict.fromkeys((*NO_LABEL, *ignored))))


def metrics_of_labelled(loss, metrics):
    """Metrics given to `compile` of a model of tokens, where the accuracy is that of the tokens that have a label:
    Keras' own would count padding and the further pieces of words as wrong.

    Raises: ValueError for another metric that counts them, beside a loss that ignores them.
    """

    def of_labelled(metric):
        found = _found(metric)
        is_accuracy = isinstance(found, str) or found is keras.metrics.sparse_categorical_accuracy
        if is_accuracy or type(found) is keras.metrics.SparseCategoricalAccuracy:
            return LabelledAccuracy(getattr(found, "name", "accuracy"))
        is_cross_entropy = found is keras.metrics.sparse_categorical_crossentropy
        if is_cross_entropy or (isinstance(found, OF_EVERY_LABEL) and getattr(found, "ignore_class", None) is None):
            if ignored_labels(loss):
                raise ValueError(
                    f"{_name(found)} counts the tokens without a label, padding too, which the loss ignores: give "
                    "'accuracy', or for IoU and MeanIoU ignore_class=-1."
                )
        return metric

    return of_each(of_labelled, metrics)


def refuse_one_hot(loss, *metrics):
    """Raises ValueError for a metric that takes the largest of a row's labels, beside a loss of numbers of classes."""
    for found in map(_found, keras.tree.flatten(metrics)) if takes_class_numbers(loss) else ():
        if isinstance(found, OF_ONE_CLASS) or found is keras.metrics.categorical_accuracy:
            raise ValueError(
                f"{_name(found)} reads one-hot labels, but the loss takes the number of a class for each label: give "
                "'accuracy' or 'f1_score', or for IoU and MeanIoU sparse_y_pred=False."
            )


def refuse_one_class(*metrics):
    """Raises ValueError for a metric of a row's one class, given to a model of which a row may have several."""
    for found in map(_found, keras.tree.flatten(metrics)):
        is_accuracy = isinstance(found, str) or found is keras.metrics.categorical_accuracy
        if is_accuracy or (isinstance(found, OF_ONE_CLASS) and not isinstance(found, MultiLabelF1)):
            raise ValueError(
                f"{_name(found)} takes the class with the largest logit of each text, but with multi_label a text has "
                "several classes, or none: give keras_bert_impl.losses.MultiLabelF1(), "
                "'binary_accuracy' or 'AUC'."
            )


def _name(found):
    return found if isinstance(found, str) else getattr(found, "name", None) or found.__name__


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
    is_f1 = isinstance(found, keras.metrics.FBetaScore) and not isinstance(found, MultiLabelF1)
    has_threshold = is_f1 and found.threshold is not None
    if has_threshold or isinstance(found, OF_PROBABILITIES) or any(found is one for one in OF_PROBABILITIES_BY_NAME):
        raise ValueError(
            f"{_name(found)} reads probabilities, but the model returns logits, whose threshold is 0. Losses that read "
            "logits are the cross-entropies of keras.losses with from_logits=True; metrics are 'accuracy', "
            "keras.metrics.AUC and keras_bert_impl.losses.MultiLabelF1, and for numbers of classes 'f1_score', "
            "'precision' and 'recall', or keras_bert_impl.metrics.ClassScore for one class."
        )
