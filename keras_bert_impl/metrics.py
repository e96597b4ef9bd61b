"""Metrics of classes, for `compile(metrics=...)`; those of sentence embeddings are in `embedding_metrics`."""

import keras
from keras import ops

from keras_bert_impl.losses import has_label, weights_of_labels
from keras_bert_impl.suggestions import one_of

FIGURES = ("f1_score", "precision", "recall")


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class ClassScore(keras.metrics.Metric):
    """Metric for classes: F1, precision or recall of one class, or their mean over all classes, over an epoch.

    For the mean, pass the name alone to a model with classes: `metrics=["f1_score"]`. An undefined value, of a class
    that does not occur or is not predicted, counts as 0.

    Args:
        figure (str): "f1_score", "precision" or "recall".
        num_classes (int): number of classes.
        class_number (int, optional): number of the class. Default: None, the mean over all classes, scikit-learn's
            "macro", which `keras-bert finetune` prints as `macro_f1`.

    Input:  logits (batch, ..., classes).
    Labels: int (batch, ...); any of `losses.NO_LABEL` does not count.
    Raises: ValueError for an unknown figure, or a class_number that is no class.

    Example:
        >>> model = kbi.TextClassifier.from_pretrained("small_english", num_classes=2)
        >>> score = kbi.metrics.ClassScore("f1_score", num_classes=2, class_number=1)
        >>> model.compile(kbi.optimization.BertAdamW(5e-5), model.loss, metrics=[score])
        >>> history = model.fit(["I loved it.", "Far too long."], [1, 0], verbose=0)
        >>> sorted(history.history)
        ['f1_score', 'loss']
    """

    def __init__(self, figure, num_classes, class_number=None, name=None, dtype="float32"):
        one_of("figure", figure, FIGURES)
        one_of("class_number", class_number or 0, range(num_classes))
        super().__init__(name=name or figure, dtype=dtype)
        self.figure, self.num_classes, self.class_number = figure, num_classes, class_number
        self.right, self.labelled, self.predicted = (
            self.add_variable((num_classes,), initializer="zeros", name=of) for of in ("right", "labelled", "predicted")
        )
        self._direction = "up"  # for EarlyStopping and others with mode="auto"

    def update_state(self, y_true, y_pred, sample_weight=None):
        labels = ops.cast(y_true, "int32")
        weights = weights_of_labels(1.0 if sample_weight is None else sample_weight, labels)
        weights = ops.reshape(weights * ops.cast(has_label(labels), "float32"), (-1, 1))
        labelled, predicted = (
            weights * ops.one_hot(ops.reshape(numbers, (-1,)), self.num_classes, dtype="float32")
            for numbers in (ops.maximum(labels, 0), ops.argmax(y_pred, axis=-1))
        )
        right = labelled * ops.cast(predicted > 0, "float32")
        for variable, counts in ((self.right, right), (self.labelled, labelled), (self.predicted, predicted)):
            variable.assign_add(ops.sum(counts, axis=0))

    def result(self):
        right, labelled, predicted = (counts.value for counts in (self.right, self.labelled, self.predicted))
        of = {"f1_score": (labelled + predicted) / 2, "precision": predicted, "recall": labelled}[self.figure]
        figures = ops.divide_no_nan(right, of)
        return ops.mean(figures) if self.class_number is None else figures[self.class_number]

    def get_config(self):
        arguments = {"figure": self.figure, "num_classes": self.num_classes, "class_number": self.class_number}
        return {**super().get_config(), **arguments}
