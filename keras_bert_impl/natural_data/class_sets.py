"""Labels of texts that have several classes, or none: from lists of classes to rows of 0 and 1."""

import numbers

import keras
import numpy as np

from keras_bert_impl.natural_data.labels import named_by_numbers, names_to_give
from keras_bert_impl.natural_data.texts import is_texts

AMBIGUOUS = (
    "labels could be lists of class numbers, or rows of 0 and 1: pass np.array(labels) for rows with a column for each "
    "class, or give the names of the classes."
)


def rows_of_zeros_and_ones(labels, class_names):
    """An array (texts, classes) that is 1 where a text belongs to a class.

    Args:
        labels: for each text a list of names or numbers of classes, which may be empty; or rows of 0 and 1 with a
            column for each class, as lists, an array or a pandas DataFrame. An array of numbers is returned as it is.
        class_names: of the columns.

    Raises: ValueError naming the first label that is not a class; if the columns of a DataFrame are not the classes; or
        if it is not clear whether numbers are 0 and 1 or numbers of classes.
    """
    if hasattr(labels, "columns"):
        return _of_columns(labels, class_names)
    if keras.ops.is_tensor(labels) or (np.ndim(labels) > 1 if hasattr(labels, "shape") else False):
        if getattr(getattr(labels, "dtype", None), "kind", "f") not in "OSUT":
            return labels
    rows = [_row(row, index) for index, row in enumerate(labels)]
    if rows and all(len(row) == len(class_names) and set(row) <= {0, 1} for row in rows):
        if all(_may_be_class_numbers(row) for row in rows):
            raise ValueError(AMBIGUOUS)
        return np.array(rows, "int32")
    found = np.zeros((len(rows), len(class_names)), "int32")
    for index, row in enumerate(rows):
        found[index, _class_numbers(row, class_names, index, rows)] = 1
    return found


def refuse_several(labels):
    """Raises ValueError for lists of names of classes, given to a classifier whose texts have one class each."""
    for index, row in enumerate(labels if isinstance(labels, (list, tuple)) else ()):
        if isinstance(row, (list, tuple, set)) and len(row) > 1 and is_texts(list(row)):
            raise ValueError(
                f"labels[{index}] is {str(row)[:60]}, but each text has one class here: give its name, or build the "
                "TextClassifier with multi_label=True for texts with several."
            )


def _of_columns(frame, class_names):
    """The columns of a pandas DataFrame in the order of the classes."""
    columns = [str(column) for column in frame.columns]
    if sorted(columns) != sorted(class_names):
        raise ValueError(
            f"The columns of the labels are {', '.join(columns)}, but the classes are {', '.join(class_names)}: select "
            "one column for each class, or pass labels.to_numpy() if they are in the order of the classes."
        )
    return frame.to_numpy()[:, [columns.index(name) for name in class_names]]


def _row(row, index):
    """The classes of one text as a list."""
    if isinstance(row, (list, tuple, set, frozenset)):
        return list(row)
    if getattr(row, "ndim", 0) == 1:
        return row.tolist()
    raise ValueError(
        f"labels[{index}] is {str(row)[:60]!r}, but a text may have several classes: expected a list of the names or "
        f"numbers of its classes, such as [{str(row)[:60]!r}], or [] for none."
    )


def _may_be_class_numbers(row):
    """Whether a row of 0 and 1 could also be a list of the numbers of different classes."""
    return len(set(row)) == len(row) and all(
        isinstance(label, numbers.Integral) and not isinstance(label, bool) and label < len(row) for label in row
    )


def _class_numbers(row, class_names, index, rows):
    """The positions of the classes in the row of text `index`, one of `rows`."""
    found, by_number = [], named_by_numbers(class_names)
    for place, label in enumerate(row):
        label = label.decode("utf-8", errors="replace") if isinstance(label, bytes) else label
        if label in class_names:
            number = class_names.index(label)
        else:
            number = by_number.get(label) if by_number and not isinstance(label, str) else label
        is_number = isinstance(number, numbers.Integral) and not isinstance(number, bool)
        if not is_number or not 0 <= number < len(class_names):
            raise ValueError(
                f"labels[{index}][{place}] is {label!r}, which is not one of the classes {', '.join(class_names)}, nor "
                f"a number from 0 to {len(class_names) - 1}.{names_to_give(rows, class_names)}"
            )
        found.append(int(number))
    if len(set(found)) < len(found):
        raise ValueError(
            f"labels[{index}] is {str(row)[:60]}, which has a class twice. Rows of 0 and 1 need {len(class_names)} "
            "columns, one for each class."
        )
    return found
