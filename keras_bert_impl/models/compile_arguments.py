"""Losses and metrics given to `compile` are computed from logits, as all models here return them.

By their names, Keras computes them from probabilities: a model compiled with "sparse_categorical_crossentropy" would
never learn, and say nothing.
"""

import keras

from keras_bert_impl.losses import NO_LABEL, LabelledAccuracy, MultiLabelF1, WeightedCrossEntropy
from keras_bert_impl.metrics import FIGURES, ClassScore
from keras_bert_impl.preprocessing.labels import ignored_labels, is_of_keras, takes_class_numbers
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
# What counts every label, also those of padding.
OF_EVERY_LABEL = (
    keras.metrics.IoU,
    keras.metrics.MeanIoU,
    keras.metrics.SparseCategoricalCrossentropy,
    keras.metrics.SparseTopKCategoricalAccuracy,
    keras.losses.SparseCategoricalCrossentropy,
)
ACCURACY = ("accuracy", "acc")
# What reads probabilities and has no form for logits, beside the metrics that have a threshold.
OF_PROBABILITIES = (
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
        elif y_pred.shape[1:] == (2,) and (len(y_true.shape) == 1 or y_true.shape[-1] == 1):
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
    found = keras.losses.get(loss) if isinstance(loss, str) else loss
    if _reads_probabilities(found):
        raise ValueError(
            f"{_name(found)} reads probabilities, but the model returns logits: give a cross-entropy of keras.losses "
            "with from_logits=True."
        )
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
    for found in keras.tree.flatten(loss):
        is_other = model.own_losses and found is not None and is_of_keras(found)
        has_no_class = model.returns_numbers or getattr(model, "multi_label", False)
        if is_other or (has_no_class and takes_class_numbers(found)):
            usual = "give 'mean_squared_error'" if model.returns_numbers else "give 'binary_crossentropy'"
            kind = type(model).__name__
            raise ValueError(f"{_name(found)} takes other labels than a {kind} has: {model.own_losses or usual}.")


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


def metric_on_logits(metric):
    """A metric given to `compile`, made to read logits."""
    found = _found(metric)
    if callable(found) and found in CROSS_ENTROPIES:
        name = metric if isinstance(metric, str) else found.__name__
        return keras.metrics.MeanMetricWrapper(found, name=name, from_logits=True)
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


def made(metric):
    """The metric that a name stands for if it is one to change, made once: a second one would have another name in the
    logs. Others stay names, by which Keras calls them there."""
    found = _found(metric)
    if not isinstance(found, keras.metrics.Metric) or metric_on_logits(found) is found:
        return metric
    if isinstance(metric, str):
        found.name = metric  # as Keras does
    return found


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


def refuse_metrics(model, loss, *metrics):
    """Raises ValueError for a metric that would silently count something else than the model's labels and logits."""
    multi_label = getattr(model, "multi_label", False)
    for found in map(_found, keras.tree.flatten(metrics)):
        is_accuracy = isinstance(found, str)
        of_one_class = isinstance(found, OF_ONE_CLASS) or found is keras.metrics.categorical_accuracy
        of_numbers = isinstance(found, OF_CLASS_NUMBERS) and getattr(found, "sparse_y_pred", True)
        reasons = {
            "reads probabilities, but the model returns logits, whose threshold is 0": _reads_probabilities(found),
            "compares labels with numbers of classes, but the model returns logits": of_numbers,
            "reads one-hot labels, but the loss takes the numbers of classes": of_one_class
            and takes_class_numbers(loss),
            "takes the largest logit of a text, but with multi_label a text has several classes, or none": multi_label
            and (is_accuracy or (of_one_class and not isinstance(found, MultiLabelF1))),
            "counts classes, but the model returns numbers": is_accuracy and model.returns_numbers,
        }
        for reason in (reason for reason, holds in reasons.items() if holds):
            raise ValueError(
                f"{_name(found)} {reason}. For class numbers give 'accuracy', 'f1_score' or 'AUC', with multi_label "
                "keras_bert_impl.losses.MultiLabelF1(), 'binary_accuracy' or 'AUC', for numbers 'mean_absolute_error'."
            )


def _name(found):
    return found if isinstance(found, str) else getattr(found, "name", None) or found.__name__


def _reads_probabilities(found):
    is_other = isinstance(found, str | keras.metrics.AUC) or not is_of_keras(found)
    if is_other or getattr(found, "threshold", None) == 0:
        return False
    has_threshold = any(getattr(found, name, None) is not None for name in ("threshold", "thresholds"))
    is_one = any(getattr(found, "fn", found) is one for one in OF_PROBABILITIES)
    return has_threshold or is_one or isinstance(found, keras.metrics.KLDivergence | keras.metrics.Poisson)
