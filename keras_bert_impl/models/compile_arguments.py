"""Losses and metrics given to `compile` are computed from logits, as all models here return them.

By their names, Keras computes them from probabilities: a model compiled with "sparse_categorical_crossentropy" would
never learn, and say nothing.
"""

import functools

import keras

from keras_bert_impl.losses import NO_LABEL, LabelledAccuracy, MultiLabelF1, WeightedCrossEntropy
from keras_bert_impl.metrics import FIGURES, ClassScore
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
OF_TOKENS, OF_NUMBERS = ("token", "masked"), ("number", "relevance")  # kinds of labels, see TaskModel
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
    above a half are of class 1. With `one_class`, one-hot labels are compared with the softmax of the logits, else
    with the sigmoid of each."""

    def __init__(self, *arguments, one_class=False, **options):
        super().__init__(*arguments, **options)
        self.one_class = one_class

    def get_config(self):
        return {**super().get_config(), "one_class": self.one_class}

    def update_state(self, y_true, y_pred, sample_weight=None):
        y_true, y_pred = keras.ops.convert_to_tensor(y_true), keras.ops.convert_to_tensor(y_pred)
        if len(y_pred.shape) == 2 and y_pred.shape[-1] == 1 and not self.multi_label:  # one logit, of class 1
            y_true, y_pred = keras.ops.reshape(y_true, (-1,)), y_pred[:, 0]
            y_true = keras.ops.greater(y_true, 0.5)  # of a relevance, too, which is a fraction; Keras would take 0.1
            sample_weight = None if sample_weight is None else keras.ops.reshape(sample_weight, (-1,))
        elif y_pred.shape[1:] == (2,) and (len(y_true.shape) == 1 or y_true.shape[-1] == 1):
            y_true, y_pred = keras.ops.reshape(y_true, (-1,)), y_pred[:, 1] - y_pred[:, 0]
        elif self.one_class and len(y_true.shape) == len(y_pred.shape) == 2:
            # log(p / (1 - p)), of which Keras takes the sigmoid
            logs = keras.ops.log_softmax(keras.ops.cast(y_pred, "float32"))
            y_pred = logs - keras.ops.log(-keras.ops.expm1(keras.ops.minimum(logs, -1e-7)))
        super().update_state(y_true, y_pred, sample_weight)


def computed_from_logits(model, loss, metrics, weighted_metrics):
    """What is given to `compile` of a TaskModel, as Keras gets it: (loss, metrics, weighted metrics).

    Raises: ValueError for what would count something else than the model's labels and logits, in silence.
    """
    loss = keras.tree.map_structure(functools.partial(loss_of, model), loss)
    if model.label_kind == "masked":  # rows are filled up with predictions of weight 0, which only these leave out
        given = [metric for metric in keras.tree.flatten([metrics, weighted_metrics]) if metric is not None]
        metrics, weighted_metrics = None, given or None
    change = functools.partial(metric_of, model, loss)
    return loss, *(keras.tree.map_structure(change, given) for given in (metrics, weighted_metrics))


def loss_of(model, loss):
    """One loss given to `compile`, made to read logits; a warning says that it was made so."""
    loss = loss_of_labelled(loss) if model.label_kind in OF_TOKENS else loss
    found = keras.losses.get(loss) if isinstance(loss, str) else loss
    if _reads_probabilities(found):
        raise ValueError(
            f"{_name(found)} reads probabilities, but the model returns logits: give a cross-entropy of keras.losses "
            "with from_logits=True."
        )
    made = loss
    if callable(found) and found in CROSS_ENTROPIES:
        made = CROSS_ENTROPIES[found](from_logits=True)
    elif isinstance(found, tuple(CROSS_ENTROPIES.values())) and not found.from_logits:
        made = type(found).from_config({**found.get_config(), "from_logits": True})
    if made is not loss:
        warn_user(f"The model returns logits: the loss {made.name} is computed with from_logits=True.")
    is_other = model.own_losses and made is not None and is_of_keras(made)
    has_no_class = model.label_kind in OF_NUMBERS or model.multi_label
    if is_other or (has_no_class and takes_class_numbers(made)):
        usual = "give 'binary_crossentropy'" if model.multi_label else "give 'mean_squared_error'"
        kind = type(model).__name__
        raise ValueError(f"{_name(made)} does not fit the labels of a {kind}: {model.own_losses or usual}.")
    return made


def loss_of_labelled(loss):
    """A loss of tokens, made to pass over those without a label, as padding is: one of class numbers becomes the mean
    over the others, which Keras' would divide by all of them; one that is summed stays so."""
    ignored = ignored_labels(loss)
    if not takes_class_numbers(loss) or (isinstance(loss, WeightedCrossEntropy) and set(NO_LABEL) <= set(ignored)):
        return loss
    if getattr(loss, "reduction", None) == "sum" and not isinstance(loss, WeightedCrossEntropy):
        return loss if ignored else type(loss).from_config({**loss.get_config(), "ignore_class": NO_LABEL[0]})
    return WeightedCrossEntropy(ignore_class=tuple(dict.fromkeys((*NO_LABEL, *ignored))))


def metric_of(model, loss, metric):
    """One metric given to `compile`, made to read logits. A name stays one, by which Keras calls the metric in logs,
    unless it stands for another metric here."""
    given = own_metric(model, loss, metric)
    found = _found(given)
    if reason := why_wrong(model, loss, found):
        raise ValueError(
            f"{_name(found)} {reason}. For class numbers use 'accuracy', 'f1_score' or 'AUC'. With multi_label use "
            "keras_bert_impl.losses.MultiLabelF1(), 'binary_accuracy' or 'AUC'. For numbers use 'mean_absolute_error'. "
            "For tokens use 'accuracy', or an IoU with ignore_class=-1."
        )
    name = given if isinstance(given, str) else getattr(found, "__name__", None)
    if callable(found) and found in CROSS_ENTROPIES:
        return keras.metrics.MeanMetricWrapper(found, name=name, from_logits=True)
    if not isinstance(found, (*METRICS_FROM_LOGITS, *CROSS_ENTROPIES.values())):
        return given
    kind, config = AUC if type(found) is keras.metrics.AUC else type(found), found.get_config()
    if kind is type(found) and config["from_logits"]:
        return given  # the caller may hold it, to ask for its result
    config |= {"one_class": not model.multi_label} if kind is AUC else {}
    return kind.from_config({**config, "from_logits": True, **({"name": name} if isinstance(given, str) else {})})


def own_metric(model, loss, metric):
    """What a metric means of the model's labels: one of ours in place of Keras', or the metric itself."""
    name, of_keras = metric.lower() if isinstance(metric, str) else None, keras.metrics
    if model.label_kind == "relevance" and name in (*ACCURACY, "binary_accuracy"):
        return of_keras.BinaryAccuracy(name="accuracy", threshold=0.0)
    if model.multi_label:
        is_binary = name == "binary_accuracy" or metric is of_keras.binary_accuracy
        return of_keras.BinaryAccuracy(threshold=0.0) if is_binary else metric
    if model.label_kind in OF_TOKENS and takes_class_numbers(loss):
        found = _found(metric)
        is_sparse = found is of_keras.sparse_categorical_accuracy or type(found) is of_keras.SparseCategoricalAccuracy
        if is_sparse or name in ACCURACY:
            return LabelledAccuracy(getattr(found, "name", "accuracy"))
    name = "f1_score" if name == "f1score" else name
    if model.class_names and name in FIGURES and takes_class_numbers(loss or getattr(model, "loss", None)):
        return ClassScore(name, len(model.class_names))
    return metric


def why_wrong(model, loss, found):
    """Why a metric would count something else than the model's labels and logits, in silence; None if it does not."""
    is_accuracy, of_tokens = isinstance(found, str), model.label_kind == "token" and takes_class_numbers(loss)
    of_one_class = isinstance(found, OF_ONE_CLASS) or found is keras.metrics.categorical_accuracy
    of_every_label = isinstance(found, OF_EVERY_LABEL) or found is keras.metrics.sparse_categorical_crossentropy
    reasons = {
        "counts the tokens without a label, padding too, which the loss ignores": of_every_label
        and (of_tokens and ignored_labels(loss) and getattr(found, "ignore_class", None) is None),
        "reads probabilities, but the model returns logits, whose threshold is 0": _reads_probabilities(found),
        "compares labels with numbers of classes, but the model returns logits": isinstance(found, OF_CLASS_NUMBERS)
        and getattr(found, "sparse_y_pred", True),
        "reads one-hot labels, but the loss takes the numbers of classes": of_one_class and takes_class_numbers(loss),
        "takes the largest logit of a text, but with multi_label a text has several classes, or none": model.multi_label
        and (is_accuracy or (of_one_class and not isinstance(found, MultiLabelF1))),
        "counts classes, but the model returns numbers": is_accuracy and model.label_kind in OF_NUMBERS,
    }
    return next((reason for reason, holds in reasons.items() if holds), None)


def the_loss(given):
    """What was given to `compile` as the loss, also in a list or by the name of a model's only output."""
    losses = keras.tree.flatten(given)
    return losses[0] if isinstance(given, dict | list | tuple) and len(losses) == 1 else given


def takes_class_numbers(loss):
    """Whether a loss given to `compile` takes class numbers as labels, as the models' default losses do."""
    loss = the_loss(loss)
    kinds = WeightedCrossEntropy, keras.losses.SparseCategoricalCrossentropy
    named = "sparse_categorical_crossentropy", keras.losses.sparse_categorical_crossentropy
    return isinstance(loss, kinds) or any(loss is one or loss == one for one in named)


def is_of_keras(loss):
    """Whether a loss given to `compile` is one of Keras' own, by its name or as a function or object."""
    loss = the_loss(loss)
    found = keras.losses.get(loss) if isinstance(loss, str) else loss
    return getattr(found, "__module__", "").startswith("keras.")


def takes_zeros_and_ones(loss):
    """Whether a loss given to `compile` takes 0 or 1 for each class, as the default loss with multi_label does."""
    loss = the_loss(loss)
    kinds = keras.losses.BinaryCrossentropy, keras.losses.BinaryFocalCrossentropy
    named = "binary_crossentropy", "binary_focal_crossentropy"
    return isinstance(loss, kinds) or loss in (*named, *(getattr(keras.losses, name) for name in named))


def ignored_labels(loss):
    """The labels that a loss ignores, as a tuple."""
    ignored = getattr(the_loss(loss), "ignore_class", None)
    return tuple(ignored) if isinstance(ignored, list | tuple) else () if ignored is None else (ignored,)


def _found(metric):
    """What a name among metrics stands for; that of the accuracy, which Keras decides by the labels, stays a name."""
    is_name = isinstance(metric, str) and metric.lower() not in ACCURACY
    return keras.metrics.get(metric) if is_name else metric


def _name(found):
    return found if isinstance(found, str) else getattr(found, "name", None) or found.__name__


def _reads_probabilities(found):
    is_other = isinstance(found, str | keras.metrics.AUC) or not is_of_keras(found)
    if is_other or getattr(found, "threshold", None) == 0:
        return False
    has_threshold = any(getattr(found, name, None) is not None for name in ("threshold", "thresholds"))
    is_one = any(getattr(found, "fn", found) is one for one in OF_PROBABILITIES)
    return has_threshold or is_one or isinstance(found, keras.metrics.KLDivergence | keras.metrics.Poisson)
