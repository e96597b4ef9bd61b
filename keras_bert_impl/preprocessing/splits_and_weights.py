"""`validation_split` and `class_weight` of `fit` for texts and named classes."""

import math

import numpy as np

from keras_bert_impl.preprocessing.labels import finite_weights, named_by_numbers, position_of_class
from keras_bert_impl.preprocessing.texts import is_texts


def split_rows(parts, share):
    """The last `share` of the rows is for validation, before anything is shuffled, as Keras splits arrays.

    Returns: the training rows and the validation rows, each (texts, labels, weights) as `parts`.
    Raises: ValueError if no row would be left for one of them.
    """
    texts, labels, weights = parts
    count = len(texts[0] if _is_columns(texts) else texts)
    kept = math.floor(count * (1 - share))  # as Keras rounds
    if not 0 < kept < count:
        raise ValueError(f"validation_split={share} of {count} texts leaves none for training or for validation.")
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

    Raises: ValueError for a class that the model does not have, or for a model whose rows do not have one class each,
        where Keras would take other weights in silence.
    """
    output = model.outputs[0].shape
    several = len(output) > 2 or model.multi_label or model.own_losses
    if several or (model.class_names is None and output[-1] == 1):
        raise ValueError(
            f"class_weight needs one class for each example, but a {type(model).__name__} has several or none: "
            "use sample_weight instead."
        )
    if class_weight == "balanced":
        return class_weight
    return weights_of_names(class_weight, model.class_names or [str(number) for number in range(output[-1] or 0)])


def weights_of_names(class_weight, names):
    """`class_weight` with the positions of classes of these names as keys. Raises ValueError for another class."""
    if names:
        positions = {name: place for place, name in enumerate(names)}
        by_number = named_by_numbers(names) or dict(enumerate(range(len(names))))
        numbers = [position_of_class(key, "A key of class_weight", positions, by_number) for key in class_weight]
        if len(set(numbers)) < len(numbers):
            raise ValueError(f"class_weight has a class twice: {class_weight}.")
        class_weight = dict(zip(numbers, class_weight.values(), strict=True))
    finite_weights(np.array([*class_weight.values()], float), "class_weight")
    return class_weight


def balanced_weights(labels):
    """{class: its weight} of the classes that occur in labels, (rows,): all have the same total, as in scikit-learn."""
    found, counts = np.unique(labels, return_counts=True)
    return dict(zip(found.tolist(), len(labels) / (len(found) * counts), strict=True))


def weights_of_rows(class_weight, labels, weights):
    """Sample weights of rows, float32: those of their classes, times those that were given.

    Args:
        class_weight: the weights by the numbers of classes, 1 for one that is missing; or "balanced", which gives the
            classes that occur the same total, as scikit-learn does.
        labels: (rows,), numbers of classes; or of the shape of `weights`; or (rows, classes), one-hot.
        weights: (rows,), or None.
    """
    labels = np.asarray(labels)
    if labels.ndim == 2 and labels.shape[1] > 1 and labels.shape != np.shape(weights):
        labels = labels.argmax(axis=1)  # as Keras does
    labels = labels.reshape(-1)
    if class_weight == "balanced":
        class_weight = balanced_weights(labels)
    of_rows = np.array([class_weight.get(label, 1.0) for label in labels.tolist()], "float32")
    return of_rows if weights is None else of_rows.reshape(np.shape(weights)) * np.asarray(weights, "float32")


def with_class_weights(class_weight, rows):
    """The weights of `batching.Rows`, with those of their classes; a text counts once, however many windows it has."""
    if rows.windows is None:
        return weights_of_rows(class_weight, rows.labels, rows.weights)
    of_texts = weights_of_rows(class_weight, rows.of_texts(rows.labels), None)
    return np.repeat(of_texts, rows.windows) * (1 if rows.weights is None else rows.weights)
