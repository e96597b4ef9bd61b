"""`validation_split` and `class_weight` of `fit` for texts and named classes."""

import math
import numbers

import numpy as np

from keras_bert_impl.natural_data.labels import named_by_numbers
from keras_bert_impl.natural_data.texts import is_texts


def split_rows(parts, share):
    """The last `share` of the rows is for validation, before anything is shuffled, as Keras splits arrays.

    Args:
        parts: (texts, labels, weights): texts or a tuple of columns of texts; labels and weights may be None.
        share: above 0 and below 1.

    Returns: the training rows and the validation rows, each as `parts`.
    Raises: ValueError if no row would be left for one of them.
    """
    if not 0 < share < 1:
        raise ValueError(f"validation_split is {share}, expected a share of the rows, above 0 and below 1.")
    texts, labels, weights = parts
    count = len(texts[0] if _is_columns(texts) else texts)
    kept = math.floor(count * (1 - share))  # as Keras rounds
    if not 0 < kept < count:
        raise ValueError(f"validation_split={share} of {count} texts leaves none for training or for validation.")
    for name, rows in (("labels", labels), ("sample weights", weights)):
        if rows is not None and not isinstance(rows, dict) and len(rows) != count:
            raise ValueError(f"{count:,} examples but {len(rows):,} {name}: each example needs its own.")
    return tuple(
        (
            tuple(_sliced(column, rows) for column in texts) if _is_columns(texts) else _sliced(texts, rows),
            _sliced(labels, rows),
            _sliced(weights, rows),
        )
        for rows in (slice(kept), slice(kept, None))
    )


def _is_columns(texts):
    return isinstance(texts, tuple) and not is_texts(texts)


def _sliced(values, rows):
    """These rows of a column, or of each column of a dict."""
    if isinstance(values, dict):
        return {name: _sliced(column, rows) for name, column in values.items()}
    if hasattr(values, "iloc"):  # a pandas DataFrame, whose index need not be the numbers of its rows
        return values.iloc[rows]
    return None if values is None else values[rows]


def weights_by_number(class_weight, model):
    """`class_weight` with the numbers of classes as keys, which may be names.

    Raises: ValueError for a class that the model does not have, or for a model whose rows do not have one class each.
    """
    if class_weight is None:
        return None
    if not isinstance(class_weight, dict) and not (isinstance(class_weight, str) and class_weight == "balanced"):
        raise ValueError(f"class_weight is {class_weight!r}, expected a dict of weights by class, or 'balanced'.")
    output = model.outputs[0].shape
    class_names = getattr(model, "class_names", None)
    several = len(output) > 2 or getattr(model, "multi_label", False)
    if several or (class_names is None and output[-1] == 1):
        found = "has several" if several else "has none"
        raise ValueError(
            f"Keras applies class_weight to rows of one class each, but a row of {type(model).__name__} {found}: give "
            "sample_weight."
        )
    if class_weight == "balanced":
        return class_weight
    names = class_names or [str(number) for number in range(output[-1] or 0)]
    found = {_number_of(key, names) if names else key: weight for key, weight in class_weight.items()}
    for key, weight in class_weight.items():
        if not (math.isfinite(weight) and weight >= 0):
            raise ValueError(f"class_weight[{key!r}] is {weight}, expected a finite number of at least 0.")
    if len(found) < len(class_weight):
        raise ValueError(f"class_weight names a class twice: {', '.join(map(repr, class_weight))}.")
    return found


def in_order_of_classes(labels, names):
    """Labels; of a table with a column for each class, the columns in the order of the model's classes.

    Raises: ValueError if the columns have other names.
    """
    columns = getattr(labels, "columns", None)
    if columns is None or not names or len(columns) < 2:
        return labels
    found = [str(column) for column in columns]
    if sorted(found) != sorted(names):
        raise ValueError(
            f"The table of labels has the columns {', '.join(found[:10])}, but the classes are {', '.join(names)}: it "
            "needs a column for each class, or pass the one column that names the class."
        )
    return labels[[columns[found.index(name)] for name in names]]


def weights_of_rows(class_weight, labels, weights):
    """Sample weights of rows, float32: those of their classes, times those that were given.

    Args:
        class_weight: the weights by the numbers of classes, 1 for one that is missing; or "balanced", which gives the
            classes that occur the same total, as scikit-learn does.
        labels: (rows,), numbers of classes.
        weights: (rows,), or None.
    """
    labels = np.asarray(labels).reshape(-1)
    if class_weight == "balanced":
        found, counts = np.unique(labels, return_counts=True)
        class_weight = dict(zip(found, len(labels) / (len(found) * counts), strict=True))
    of_rows = np.array([class_weight.get(label, 1.0) for label in labels.tolist()], "float32")
    return of_rows if weights is None else of_rows * np.asarray(weights, "float32")


def _number_of(key, names):
    key = key.item() if isinstance(key, np.generic) else key
    if isinstance(key, str) and key in names:
        return names.index(key)
    by_number = named_by_numbers(names)
    if by_number and isinstance(key, numbers.Real) and key in by_number:
        return by_number[key]
    if not by_number and isinstance(key, numbers.Integral) and 0 <= key < len(names):
        return int(key)
    raise ValueError(
        f"class_weight has {key!r}, which is not one of the classes {', '.join(names)}"
        + ("." if by_number else f", nor a number from 0 to {len(names) - 1}.")
    )
