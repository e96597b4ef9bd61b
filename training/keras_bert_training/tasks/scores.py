"""Figures of agreement between labels and predictions, as in the tables of GLUE and the paper."""

import numpy as np
import scipy.stats
import sklearn.metrics


def classification_scores(class_ids, predicted_ids, class_names):
    """Figures over predicted classes.

    Args:
        class_ids: (examples,) int, indices into `class_names`.
        predicted_ids: likewise.
        class_names: names of the classes.

    Returns: dict of `examples`, `accuracy`, `macro_f1`, `matthews_correlation`, `class_names` and `confusion`
        [true][predicted]; for two classes also `f1`, of the second (MRPC: equivalent; QQP: duplicate). An undefined
        figure (of a class that neither occurs nor is predicted) counts as 0.
    """
    labels = range(len(class_names))
    by_class = sklearn.metrics.f1_score(class_ids, predicted_ids, labels=labels, average=None, zero_division=0)
    return {
        "examples": len(class_ids),
        "accuracy": float(sklearn.metrics.accuracy_score(class_ids, predicted_ids)),
        **({"f1": float(by_class[1])} if len(class_names) == 2 else {}),
        "macro_f1": float(by_class.mean()),
        "matthews_correlation": float(sklearn.metrics.matthews_corrcoef(class_ids, predicted_ids)),
        "class_names": list(class_names),
        "confusion": sklearn.metrics.confusion_matrix(class_ids, predicted_ids, labels=labels).tolist(),
    }


def regression_scores(values, predicted):
    """Pearson and Spearman correlation (ties share their mean rank) and mean squared error.

    A correlation with a constant is undefined; it counts as 0, like Matthews correlation: a model that learned nothing
    must not be chosen as the best because its figure is undefined.

    Raises: ValueError for NaN or infinity.
    """
    values, predicted = np.asarray(values), np.asarray(predicted)
    for name, array in (("Labels", values), ("Predictions", predicted)):
        refuse_nan(array, name)
    constant = np.ptp(values) == 0 or np.ptp(predicted) == 0
    return {
        "examples": len(values),
        "pearson": 0.0 if constant else float(scipy.stats.pearsonr(values, predicted).statistic),
        "spearman": 0.0 if constant else float(scipy.stats.spearmanr(values, predicted).statistic),
        "mean_squared_error": float(np.mean((values - predicted) ** 2)),
    }


def refuse_nan(outputs, what):
    """Raises ValueError if a model's outputs hold NaN or infinity, which would otherwise be ranked like valid ones."""
    for index, row in enumerate(outputs):
        if not np.isfinite(row).all():
            raise ValueError(f"{what} {index} holds NaN or infinity: training diverged, or the input was damaged.")
