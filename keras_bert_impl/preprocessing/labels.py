"""Labels and sample weights as arrays, checked before training, with the same errors on every backend.

Without this, a label beyond the last class adds no loss on JAX, gives NaN on a TensorFlow GPU and aborts torch.
"""

import numbers
import typing

import keras
import numpy as np

from keras_bert_impl.batching import of_width
from keras_bert_impl.losses import NO_LABEL
from keras_bert_impl.preprocessing.texts import is_texts
from keras_bert_impl.text.tokenizers.rows import rounded_length


class LabelRule(typing.NamedTuple):
    """The labels that a model expects.

    Args:
        shape: of all labels together.
        limit: labels are whole numbers from 0 to below this, one limit for all or an array that broadcasts to `shape`;
            None: any finite numbers.
        meaning: of one label, for messages.
        per_token: whether there is a label for each token of a row.
        names: of the classes, which may be given instead of their numbers.
        are_booleans_clear: whether True can only mean 1.
        scale: of finite numbers the lowest, the highest and why there are such, or None.
    """

    shape: tuple
    limit: typing.Any
    meaning: str
    per_token: bool = False
    names: tuple = ()
    are_booleans_clear: bool = True
    scale: tuple | None = None


class Positions(np.ndarray):
    """Labels that are already the positions of their classes: a number among them is never the name of a class."""


class RowSizes(typing.NamedTuple):
    """The sizes of the rows that labels are checked against.

    Args:
        tokens: the number of tokens of each example, up to its last one, (examples,) or (examples, choices).
        width: positions of a row; for texts, which are padded batch by batch, those of the longest.
        choices, predictions: their number in an example, for models that have them.
        room: the number of tokens that texts are cut to; None for rows of ids.
        texts: of rows of several texts a number for each, the same for equal ones, (examples, columns).
    """

    tokens: np.ndarray
    width: int
    choices: int | None = None
    predictions: int | None = None
    room: int | None = None
    texts: np.ndarray | None = None


def sizes_of_texts(rows, template, sequence_length):
    """The RowSizes of `batching.Rows`, laid out as a tokenizer's `template` says."""
    tokens = rows.lengths(template)
    longest = int(tokens.max(initial=1))
    return RowSizes(tokens, rounded_length(longest, sequence_length), rows.choices, room=sequence_length)


def sizes_of_arrays(inputs):
    """The RowSizes of a model's input arrays; None if the inputs are not a dict of arrays."""
    if not isinstance(inputs, dict) or "padding_mask" not in inputs:
        return None
    mask = to_array(inputs["padding_mask"]) != 0
    if not mask.size:
        return None  # a model refuses it
    width = mask.shape[-1]
    predictions = inputs["mask_positions"].shape[-1] if "mask_positions" in inputs else None
    return RowSizes(
        width - mask[..., ::-1].argmax(axis=-1), width, mask.shape[1] if mask.ndim == 3 else None, predictions
    )


def checked_labels(labels, weights, rule, sizes, ignored=()):
    """Labels and sample weights as arrays of the rule's shape.

    Args:
        labels: an array, a list or tuple of numbers or of names of classes, or of lists of them.
        weights: the same, one for each label or one for each row; or None.
        rule: a LabelRule; None checks only the number of labels.
        sizes: RowSizes.
        ignored: labels that the loss ignores.

    Raises: ValueError naming the first label that is wrong, and what was expected.
    """
    if rule is not None and rule.names:
        labels = numbers_of_names(labels, rule.names)
    if rule is not None and rule.per_token and sizes.room is not None:
        return _labels_of_text_tokens(labels, weights, rule, sizes, ignored)
    labels = _checked_numbers(to_array(labels), rule, len(sizes.tokens), ignored)
    return labels, checked_weights(weights, labels)


def checked_word_labels(labels, name, counts, rule=None):
    """Labels of words, or their weights, as an array (texts, words of the longest); shorter ones are filled up with -1.

    Args:
        labels: for each text a list of numbers, or names of classes.
        name: of the argument, for messages.
        counts: the number of words of each text.
        rule: a LabelRule for labels; -1 and -100 are allowed, too. None for weights.

    Raises: ValueError naming the text with another number of labels than words, or the label that is wrong.
    """
    rows = list(map(to_array, labels if rule is None else numbers_of_names(labels, rule.names)))
    for place, (row, count) in enumerate(zip(rows, counts, strict=True)):
        if row.shape != (count,):
            raise ValueError(
                f"{name}[{place}] has {len(row)} values, but text {place} has {count} words: give each word one."
            )
    array = _filled_up(rows, NO_LABEL[0])
    return array if rule is None else _checked_numbers(array, rule._replace(shape=array.shape), len(array), NO_LABEL)


def named_by_numbers(names):
    """The positions of classes that are named by numbers other than their positions, by these numbers; {} if the names
    are words, or are the positions.

    Numbers as names come from `Series.unique()`, in order of appearance: ["1", "0"]. "False" and "True" are 0 and 1.
    """
    found = [_number_in(name) for name in names]
    positions = {number: place for place, number in enumerate(found) if number is not None}
    return {} if all(number == place for number, place in positions.items()) else positions


def refuse_numbers_as_names(names):
    """Raises ValueError for classes that are named by numbers, given data whose labels Keras takes for positions."""
    if named_by_numbers(names):
        raise ValueError(
            f"The classes are named by numbers ({', '.join(names)}), but in a dataset of ids labels are the positions "
            "of the classes: give class_names that are words, or the numbers 0, 1, ... in order."
        )


def _number_in(name):
    if name in ("False", "True"):
        return int(name == "True")
    try:
        number = float(name)
    except ValueError:
        return None
    return number if np.isfinite(number) else None


def numbers_of_names(labels, names):
    """Labels with the names of classes replaced by the positions of the classes.

    A number is a position, unless the classes are named by other numbers (`named_by_numbers`): then it is a name.

    Args:
        labels: an array, list or tuple of labels, or, for tokens, of lists of them.
        names: of the classes.

    Raises: ValueError for a name that is not a class.
    """
    if isinstance(labels, Positions):
        return labels
    if is_texts(labels) or (isinstance(labels, np.ndarray) and labels.dtype.kind in "OSUT"):
        labels = np.asarray(labels, dtype=object).tolist()
    is_list, by_number = isinstance(labels, list | tuple), named_by_numbers(names)
    if not by_number and not (is_list and (is_texts(labels) or any(map(is_texts, labels)))):
        return labels
    positions = {name: place for place, name in enumerate(names)}
    return _positions_of(labels if is_list else to_array(labels).tolist(), "", positions, by_number)


def _positions_of(label, place, positions, by_number):
    """The position of a label, or those of lists of labels; -1 and -100 stay where no class is called so."""
    if isinstance(label, list | tuple | np.ndarray):
        return [_positions_of(one, f"{place}[{index}]", positions, by_number) for index, one in enumerate(label)]
    return position_of_class(label, f"labels{place}", positions, by_number, NO_LABEL)


def position_of_class(label, what, positions, by_number, others=()):
    """The position of the class that a name or a number stands for. Raises ValueError if there is no such class.

    Args:
        label: a name, or a number.
        what: the label's place in the data, for the error.
        positions: the positions of the classes by their names.
        by_number: their positions by the numbers that name them, as `named_by_numbers` returns them; {} leaves numbers.
        others: numbers that are no classes, and stay.
    """
    label = label.decode("utf-8", errors="replace") if isinstance(label, bytes) else label
    if isinstance(label, str):
        found = positions.get(label)
    else:
        found = by_number.get(label, label if not by_number or label in others else None)
    if found is None:
        raise ValueError(f"{what} is {label!r}, which is not one of the classes {', '.join(positions)}.")
    return found


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
        raise ValueError("labels contain a string, expected a list of classes for each text, such as ['a', 'b'].")
    rows = [row.tolist() if hasattr(row, "tolist") else list(row) for row in labels]
    if rows and all(len(row) == len(class_names) and set(row) <= {0, 1} for row in rows):
        if all(_may_be_class_numbers(row) for row in rows):
            raise ValueError(
                "The labels could be lists of class numbers, or rows of 0 and 1. Pass np.array(labels) if they are "
                "rows with a column for each class, or give class names."
            )
        return np.array(rows, "int32")
    positions, by_number = {name: place for place, name in enumerate(class_names)}, named_by_numbers(class_names)
    found = np.zeros((len(rows), len(class_names)), "int32")
    for index, row in enumerate(rows):
        classes = [position_of_class(one, f"labels[{index}]", positions, by_number) for one in row]
        if len(set(classes)) < len(classes) or not all(_is_number(one) and one < len(class_names) for one in classes):
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


def to_array(values):
    """`values`, an array of any library or lists of numbers, as a NumPy array."""
    return keras.ops.convert_to_numpy(values) if keras.ops.is_tensor(values) else np.asarray(values)


def refuse(array, is_wrong, name, what):
    """Raises ValueError naming the first value of an array that `is_wrong`, and `what` is wrong with it."""
    if np.any(is_wrong):
        place = tuple(map(int, np.argwhere(is_wrong)[0]))
        raise ValueError(f"{name}{''.join(f'[{index}]' for index in place)} is {array[place]}, {what}.")


def _checked_numbers(labels, rule, count, ignored):
    """The labels of `count` rows in the rule's shape and range."""
    shape = (count, *labels.shape[1:]) if rule is None else rule.shape
    if rule is not None and labels.shape == (*shape, 1):
        labels = labels[..., 0]
    meaning = "" if rule is None else f" Each label is {rule.meaning}."
    if labels.shape != shape:
        raise ValueError(f"labels have shape {labels.shape}, expected {shape}.{meaning}")
    if rule is None:
        return labels
    if labels.dtype.kind == "b" and not rule.are_booleans_clear:
        raise ValueError(f"labels are booleans, whose meaning is ambiguous: each label is {rule.meaning}.")
    if rule.limit is None:
        refuse(labels, ~np.isfinite(labels), "labels", "not a finite number")
        if rule.scale is not None:
            low, high, why = rule.scale
            refuse(labels, (labels < low) | (labels > high), "labels", why)
        return labels
    refuse(labels, np.mod(labels, 1) != 0, "labels", "not a whole number")
    classes = labels.astype("int32")
    limits = f", here 0 to {rule.limit - 1}" if np.ndim(rule.limit) == 0 else ""
    is_wrong = ((classes < 0) | (classes >= rule.limit)) & ~np.isin(classes, ignored)
    refuse(classes, is_wrong, "labels", f"out of range: each label is {rule.meaning}{limits}")
    return classes


def checked_weights(weights, labels):
    """Sample weights as an array, (examples,) or of the labels' shape; None stays None."""
    if weights is None:
        return None
    weights = to_array(weights)
    if weights.shape == (len(labels), 1):
        weights = weights[:, 0]
    if weights.shape not in ((len(labels),), labels.shape):
        raise ValueError(
            f"sample_weight has shape {weights.shape}, expected ({len(labels)},), one for each example"
            + (f", or {labels.shape}, one for each label." if labels.ndim > 1 else ".")
        )
    return finite_weights(weights)


def finite_weights(weights, name="sample_weight"):
    """Weights as float32. Raises ValueError naming the first that is negative or not finite: it would turn the loss
    around, or make every weight of the model NaN."""
    refuse(weights, ~(np.isfinite(weights) & (weights >= 0)), name, "expected a finite number of at least 0")
    return weights.astype("float32")


def _labels_of_text_tokens(labels, weights, rule, sizes, ignored):
    """As `checked_labels`, for a label per token of a text: lists as long as the rows, or an array at least as wide."""
    is_per_label = weights is not None and np.ndim(weights[0]) > 0
    labels = _numbers_of_tokens(labels, "labels", sizes, NO_LABEL[0])
    labels = _checked_numbers(labels, rule._replace(shape=labels.shape), len(labels), ignored)
    counts = ~np.isin(labels, ignored)
    if is_per_label:
        weights = finite_weights(_numbers_of_tokens(weights, "sample_weight", sizes, 0))
        counts &= of_width(weights, labels.shape[1], 0) != 0
        weights = of_width(weights, sizes.width, 0)
    else:
        weights = checked_weights(weights, labels)
    # Labels behind the text were made for another tokenization; only a text that was cut may have more.
    behind = (np.arange(labels.shape[1]) >= sizes.tokens[:, None]) & (sizes.tokens < sizes.room)[:, None] & counts
    refuse(labels, behind, "labels", "after the last token of its text, where -1 is expected")
    return of_width(labels, sizes.width, NO_LABEL[0]), weights


def _numbers_of_tokens(values, name, sizes, padding):
    """Numbers for the tokens of each text as an array (texts, longest)."""
    rows = list(map(to_array, values))
    for place, (row, tokens) in enumerate(zip(rows, sizes.tokens, strict=True)):
        if row.ndim != 1 or len(row) < tokens:
            raise ValueError(
                f"{name}[{place}] has shape {row.shape}, but text {place} has {tokens} tokens, including control "
                "tokens: give a number for each, or pass lists of words and one number for each word."
            )
    return _filled_up(rows, padding)


def _filled_up(rows, padding):
    array = np.full((len(rows), max(map(len, rows))), padding, np.result_type(*rows))
    for place, row in enumerate(rows):
        array[place, : len(row)] = row
    return array
