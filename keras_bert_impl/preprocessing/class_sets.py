"""Labels of texts that have several classes, or none: from lists of classes to rows of 0 and 1."""

import numbers

import keras
import numpy as np

from keras_bert_impl.preprocessing.labels import named_by_numbers, position_of_class


def rows_of_zeros_and_ones(labels, class_names):
    """An array (texts, classes) that is 1 where a text belongs to a class.

    Args:
        labels: for each text a list of names or numbers of classes, which may be empty; or rows of 0 and 1 with a
            column for each class, as lists or an array. An array of numbers is returned as it is.
        class_names: of the columns.

    Raises: ValueError naming the first label that is not a class, or if it is not clear whether numbers are 0 and 1 or
        numbers of classes.
    """
    is_array = keras.ops.is_tensor(labels) or (hasattr(labels, "shape") and np.ndim(labels) > 1)
    if is_array and getattr(getattr(labels, "dtype", None), "kind", "f") not in "OSUT":
        return labels
    if any(isinstance(row, str | bytes) for row in labels):
        raise ValueError("labels of several classes are a list for each text, and one of them is a string.")
    rows = [row.tolist() if hasattr(row, "tolist") else list(row) for row in labels]
    if rows and all(len(row) == len(class_names) and set(row) <= {0, 1} for row in rows):
        if all(_may_be_class_numbers(row) for row in rows):
            raise ValueError(
                "labels could be lists of class numbers, or rows of 0 and 1: pass np.array(labels) for rows with a "
                "column for each class, or give the names of the classes."
            )
        return np.array(rows, "int32")
    positions, by_number = {name: place for place, name in enumerate(class_names)}, named_by_numbers(class_names)
    found = np.zeros((len(rows), len(class_names)), "int32")
    for index, row in enumerate(rows):
        classes = [position_of_class(one, f"labels[{index}]", positions, by_number) for one in row]
        if len(set(classes)) < len(classes) or not all(map(_is_number, classes)):
            raise ValueError(
                f"labels[{index}] is {str(row)[:60]}: give different classes, by their names or by numbers from 0, or "
                f"rows of 0 and 1 with {len(class_names)} columns."
            )
        found[index, classes] = 1
    return found


def _may_be_class_numbers(row):
    """Whether a row of 0 and 1 could also be a list of the numbers of different classes."""
    return len(set(row)) == len(row) and all(_is_number(label) and label < len(row) for label in row)


def _is_number(label):
    return isinstance(label, numbers.Integral) and not isinstance(label, bool) and label >= 0
