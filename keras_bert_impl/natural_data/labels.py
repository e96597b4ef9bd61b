"""Labels and sample weights as arrays, checked before training, with the same errors on every backend.

Without this, a label beyond the last class adds no loss on JAX, gives NaN on a TensorFlow GPU and aborts torch.
"""

import numbers
import typing

import keras
import numpy as np

from keras_bert_impl.losses import NO_LABEL, WeightedCrossEntropy
from keras_bert_impl.natural_data.texts import is_texts
from keras_bert_impl.tokenizers.rows import rounded_length

MOST_NAMES = 20  # that a message writes out


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
    """

    shape: tuple
    limit: typing.Any
    meaning: str
    per_token: bool = False
    names: tuple = ()
    are_booleans_clear: bool = True


class Positions(np.ndarray):
    """Labels that are already the positions of their classes: a number among them is never the name of a class."""


class RowSizes(typing.NamedTuple):
    """The sizes of the rows that labels are checked against.

    Args:
        tokens: the number of tokens of each example, up to its last one, (examples,) or (examples, choices).
        width: positions of a row; for texts, which are padded batch by batch, those of the longest.
        choices, predictions: their number in an example, for models that have them.
        room: the number of tokens that texts are cut to; None for rows of ids.
    """

    tokens: np.ndarray
    width: int
    choices: int | None = None
    predictions: int | None = None
    room: int | None = None


def sizes_of_texts(rows, template, sequence_length):
    """The RowSizes of `batching.Rows`, laid out as a tokenizer's `template` says."""
    tokens = rows.lengths(template)
    longest = int(tokens.max(initial=1))
    return RowSizes(tokens, rounded_length(longest, sequence_length), rows.choices, room=sequence_length)


def sizes_of_arrays(inputs):
    """The RowSizes of a model's input arrays; None if the inputs are not a dict of arrays."""
    if not isinstance(inputs, dict) or "padding_mask" not in inputs:
        return None
    mask = to_array(inputs["padding_mask"], "padding_mask") != 0
    if not mask.size:
        return None  # a model refuses it
    width = mask.shape[-1]
    predictions = inputs["mask_positions"].shape[-1] if "mask_positions" in inputs else None
    return RowSizes(
        width - mask[..., ::-1].argmax(axis=-1), width, mask.shape[1] if mask.ndim == 3 else None, predictions
    )


def takes_class_numbers(loss):
    """Whether a loss given to `compile` takes class numbers as labels, as the models' default losses do."""
    kinds = WeightedCrossEntropy, keras.losses.SparseCategoricalCrossentropy
    named = "sparse_categorical_crossentropy", keras.losses.sparse_categorical_crossentropy
    return isinstance(loss, kinds) or any(loss is one or loss == one for one in named)


def is_of_keras(loss):
    """Whether a loss given to `compile` is one of Keras' own, by its name or as a function or object."""
    found = keras.losses.get(loss) if isinstance(loss, str) else loss
    return getattr(found, "__module__", "").startswith("keras.")


def takes_zeros_and_ones(loss):
    """Whether a loss given to `compile` takes 0 or 1 for each class, as the default loss with multi_label does."""
    kinds = keras.losses.BinaryCrossentropy, keras.losses.BinaryFocalCrossentropy
    named = "binary_crossentropy", "binary_focal_crossentropy"
    return isinstance(loss, kinds) or loss in (*named, *(getattr(keras.losses, name) for name in named))


def ignored_labels(loss):
    """The labels that a loss ignores, as a tuple."""
    ignored = getattr(loss, "ignore_class", None)
    return tuple(ignored) if isinstance(ignored, list | tuple) else () if ignored is None else (ignored,)


def checked_labels(labels, weights, rule, sizes, ignored=()):
    """Labels and sample weights as arrays of the rule's shape.

    Args:
        labels: an array, a list or tuple of numbers or of names of classes, or of lists of them.
        weights: the same, one for each label or one for each row; or None.
        rule: a LabelRule; None checks only the number of labels.
        sizes: RowSizes.
        ignored: labels that the loss ignores.

    Raises: ValueError naming the first label that is wrong, what was expected, and what to do.
    """
    if rule is not None and rule.names:
        labels = numbers_of_names(labels if rule.per_token else _of_one_column(labels), rule.names)
    if rule is not None and rule.per_token and sizes.room is not None:
        return _labels_of_text_tokens(labels, weights, rule, sizes, ignored)
    labels = to_array(labels, "labels", rule)
    _check_count(labels, "labels", len(sizes.tokens))
    if rule is not None:
        labels = _checked_numbers(labels, rule, ignored)
    return labels, _checked_weights(weights, labels)


def require_labels(labels, count, rule, unit="text"):
    """Raises ValueError if `count` texts have no labels, although there is a LabelRule; `unit` is what needs one."""
    if labels is None and rule is not None:
        raise ValueError(f"Got {count:,} texts but no labels: each {unit} needs {rule.meaning}.")


def checked_word_labels(labels, name, counts, rule=None):
    """Labels of words, or their weights, as an array (texts, words of the longest); shorter ones are filled up with -1.

    Args:
        labels: for each text a list of numbers, or names of classes.
        name: of the argument, for messages.
        counts: the number of words of each text.
        rule: a LabelRule for labels; -1 and -100 are allowed, too. None for weights.

    Raises: ValueError naming the text with another number of labels than words, or the label that is wrong.
    """
    if rule is not None:
        labels = numbers_of_names(labels, rule.names)
    rows = [
        to_array(row, f"{name}[{place}]", rule) if len(row) else np.zeros(0, int) for place, row in enumerate(labels)
    ]
    if len(rows) != len(counts):
        raise ValueError(f"{len(counts):,} texts but {len(rows):,} {name}: each text needs its own.")
    for place, (row, count) in enumerate(zip(rows, counts, strict=True)):
        if row.shape != (count,):
            raise ValueError(
                f"{name}[{place}] has {len(row)} values, but text {place} has {count} words: each word needs one."
            )
    array = np.full((len(rows), max(*counts, 1)), NO_LABEL[0], np.result_type(*rows))
    for place, row in enumerate(rows):
        array[place, : len(row)] = row
    return array if rule is None else _checked_numbers(array, rule._replace(shape=array.shape), NO_LABEL)


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


def _of_one_column(labels):
    """Labels (rows, 1), such as those of a table with one column, as (rows,), since names are looked for in one
    dimension; others as they are."""
    shape = getattr(labels, "shape", ())
    return labels if len(shape) != 2 or shape[1] != 1 else np.asarray(labels)[:, 0]


def _number_in(name):
    if name in ("False", "True"):
        return int(name == "True")
    try:
        number = float(name)
    except ValueError:
        return None
    return number if np.isfinite(number) else None


def names_to_give(labels, names):
    """What to do about labels that are no classes: the end of a message, "" for classes that were given names, and
    where no label can be a name.

    Args:
        labels: an array, list or tuple of all labels, or of lists of them.
        names: of the classes.
    """
    if list(names) != [str(number) for number in range(len(names))]:
        return ""
    rows = labels if isinstance(labels, list | tuple) else np.asarray(labels, object).tolist()
    flat = [label for row in rows for label in (row if isinstance(row, list | tuple | set | np.ndarray) else [row])]
    decoded = [label.decode("utf-8", errors="replace") if isinstance(label, bytes) else label for label in flat]
    values = {float(label) for label in flat if isinstance(label, numbers.Real) and np.isfinite(label)}
    found = [int(value) if value.is_integer() else value for value in sorted(values - set(NO_LABEL))]
    found += sorted({label for label in decoded if isinstance(label, str)})
    if not found:
        return ""
    shown = f"={found}" if len(found) <= MOST_NAMES else f" (your labels have {len(found):,} values)"
    return f" The model was built without names of classes: give it class_names{shown}."


def numbers_of_names(labels, names, place="", together=None):
    """Labels with the names of classes replaced by the positions of the classes.

    A number is a position, unless the classes are named by other numbers (`named_by_numbers`): then it is a name.

    Args:
        labels: an array, list or tuple of labels, or, for tokens, of lists of them.
        names: of the classes.
        place: where the labels stand, for messages.
        together: the lists of labels of which these are one; None for all of them.

    Raises: ValueError for a name that is not a class.
    """
    if isinstance(labels, Positions):
        return labels
    if is_texts(labels):
        positions = {name: number for number, name in enumerate(names)}
        together = labels if together is None else together
        labels = np.asarray(labels, dtype=object).tolist()
        decoded = [label.decode("utf-8", errors="replace") if isinstance(label, bytes) else label for label in labels]
        for index, label in enumerate(decoded):
            if isinstance(label, str) and label not in positions:
                raise ValueError(
                    f"labels{place}[{index}] is {label!r}, which is not one of the classes {', '.join(names)}."
                    f"{names_to_give(together, names)}"
                )
        others = iter(_positions_of([label for label in decoded if not isinstance(label, str)], names, place))
        return [positions[label] if isinstance(label, str) else next(others) for label in decoded]
    if isinstance(labels, np.ndarray) and labels.dtype.kind in "OSUT":  # of lists, or of rows of names
        labels = list(labels)
    is_list = not isinstance(labels, np.ndarray) and not keras.ops.is_tensor(labels)
    if is_list and any(map(is_texts, labels)):
        return [numbers_of_names(row, names, f"{place}[{index}]", labels) for index, row in enumerate(labels)]
    if is_list and named_by_numbers(names) and any(np.ndim(row) for row in labels):
        return [_positions_of(row, names, f"{place}[{index}]") for index, row in enumerate(labels)]
    return _positions_of(labels, names, place)


def _positions_of(labels, names, place):
    """Labels that are numbers, with those that are names replaced by positions; -1 and -100 stay where no class is
    called so."""
    by_number = named_by_numbers(names)
    if not by_number or (isinstance(labels, list) and not labels):
        return labels
    labels = to_array(labels, f"labels{place}")
    found = np.full(labels.shape, NO_LABEL[0], "int32")
    is_known = np.zeros(labels.shape, bool)
    for number in NO_LABEL:
        is_known |= labels == number
    found[labels == NO_LABEL[1]] = NO_LABEL[1]
    for number, position in by_number.items():
        found[labels == number] = position
        is_known |= labels == number
    if not is_known.all():
        first = tuple(np.argwhere(~is_known)[0])
        where = place + "".join(f"[{index}]" for index in first)
        raise ValueError(
            f"labels{where} is {labels[first]}, which is not one of the classes {', '.join(names)}. Since they are "
            "named by numbers, a number is the name of its class, not its position."
        )
    return found.view(Positions)


def to_array(values, name, rule=None):
    """`values`, an array of any library or lists of numbers, as a NumPy array. Raises ValueError naming the first value
    that is not a number, and what a label is by the LabelRule."""
    if keras.ops.is_tensor(values):
        return keras.ops.convert_to_numpy(values)
    try:
        array = np.asarray(values)
    except ValueError:  # lists of different lengths
        raise ValueError(f"{name} are lists of different lengths: all rows need the same number.") from None
    if array.dtype.kind not in "biuf":
        as_given = np.asarray(values, object)  # of numbers beside a text NumPy makes texts
        found = [
            (place, one) for place, one in np.ndenumerate(as_given) if not isinstance(one, int | float | np.number)
        ]
        place, value = (str(list(found[0][0])), found[0][1]) if found else ("", values)
        wanted = "" if rule is None else f" Each label is {rule.meaning}."
        raise ValueError(f"{name}{place} is {repr(value)[:60]}, not a number.{wanted}")
    return array


def _check_count(array, name, count):
    if array.ndim == 0 or len(array) != count:
        found = "one number" if array.ndim == 0 else f"{len(array):,} {name}"
        raise ValueError(f"{count:,} examples but {found}: each example needs its own.")


def _checked_numbers(labels, rule, ignored):
    """The labels in the rule's shape and range."""
    if labels.dtype.kind == "b" and not rule.are_booleans_clear:
        raise ValueError(f"labels are booleans, which can be read both ways: each label is {rule.meaning}.")
    if labels.shape == (*rule.shape, 1):
        labels = labels[..., 0]
    if labels.shape != rule.shape:
        remedy = ""
        if len(labels.shape) == len(rule.shape) + 1 and rule.limit is not None:
            remedy = " Convert one-hot labels with argmax(axis=-1), or compile with a loss that takes them."
        raise ValueError(
            f"labels have shape {labels.shape}, expected {rule.shape}. Each label is {rule.meaning}.{remedy}"
        )
    if rule.limit is None:
        _refuse(labels, ~np.isfinite(labels), "not a finite number", rule)
        return labels
    _refuse(labels, np.mod(labels, 1) != 0, "not a whole number", rule)
    classes = labels.astype("int32")
    is_wrong = ((classes < 0) | (classes >= rule.limit)) & ~np.isin(classes, ignored)
    _refuse_no_label(classes, is_wrong & np.isin(classes, NO_LABEL), rule)
    _refuse(classes, is_wrong, "out of range", rule)
    return classes


def _refuse(labels, is_wrong, what, rule):
    """Raises ValueError naming the first label that `is_wrong`."""
    if not is_wrong.any():
        return
    place = tuple(np.argwhere(is_wrong)[0])
    limits = "" if rule.limit is None else f", here 0 to {np.broadcast_to(rule.limit, labels.shape)[place] - 1}"
    where = "".join(f"[{index}]" for index in place)
    remedy = names_to_give(labels, rule.names) if rule.names else ""
    raise ValueError(f"labels{where} is {labels[place]}, {what}. Each label is {rule.meaning}{limits}.{remedy}")


def _refuse_no_label(labels, is_missing, rule):
    """Raises ValueError for labels that mean "no label" to a loss that would count them."""
    if not is_missing.any():
        return
    count, place = int(is_missing.sum()), tuple(np.argwhere(is_missing)[0])
    remedy = (
        f"Compile with keras_bert_impl.losses.WeightedCrossEntropy(ignore_class={NO_LABEL}), which ignores them."
        if rule.per_token
        else "Leave these rows out: a model can neither be trained nor be scored on them."
    )
    where = "".join(f"[{index}]" for index in place)
    raise ValueError(
        f"{count:,} of {labels.size:,} labels are -1 or -100, which mean that there is no label; the first is "
        f"labels{where}. Each label is {rule.meaning}. {remedy}"
    )


def _checked_weights(weights, labels):
    """Sample weights as an array, (examples,) or of the labels' shape; None stays None."""
    if weights is None:
        return None
    weights = to_array(weights, "sample_weight")
    _check_count(weights, "sample weights", len(labels))
    if weights.shape == (len(labels), 1):
        weights = weights[:, 0]
    if weights.shape not in ((len(labels),), labels.shape):
        raise ValueError(
            f"sample_weight has shape {weights.shape}, expected ({len(labels)},), one for each row"
            + (f", or {labels.shape}, one for each label." if labels.ndim > 1 else ".")
        )
    return _finite_weights(weights)


def _finite_weights(weights):
    """Sample weights as float32. Raises ValueError naming the first that is negative or not finite: it would turn the
    loss around, or make every weight of the model NaN."""
    is_wrong = ~(np.isfinite(weights) & (weights >= 0))
    if is_wrong.any():
        place = tuple(np.argwhere(is_wrong)[0])
        where = "".join(f"[{index}]" for index in place)
        raise ValueError(f"sample_weight{where} is {weights[place]}, expected a finite number of at least 0.")
    return weights.astype("float32")


def _labels_of_text_tokens(labels, weights, rule, sizes, ignored):
    """As `checked_labels`, for a label per token of a text: lists as long as the rows, or an array at least as wide."""
    is_per_label = weights is not None and np.ndim(weights[0]) > 0
    labels = _rows_of_numbers(labels, "labels", sizes, NO_LABEL[0])
    labels = _checked_numbers(labels, rule._replace(shape=labels.shape), ignored)
    counts = ~np.isin(labels, ignored)
    if is_per_label:
        weights = _finite_weights(_rows_of_numbers(weights, "sample_weight", sizes, 0))
        counts &= of_width(weights, labels.shape[1], 0) != 0
        weights = of_width(weights, sizes.width, 0)
    else:
        weights = _checked_weights(weights, labels)
    _refuse_behind_the_text(labels, counts, sizes)
    return of_width(labels, sizes.width, NO_LABEL[0]), weights


def _refuse_behind_the_text(labels, counts, sizes):
    """Raises ValueError for labels after the last token of a text: they were made for another tokenization."""
    # A text that was cut may have more labels.
    behind = (np.arange(labels.shape[1]) >= sizes.tokens[:, None]) & (sizes.tokens < sizes.room)[:, None] & counts
    if behind.any():
        row, token = np.argwhere(behind)[0]
        raise ValueError(
            f"labels[{row}][{token}] is {labels[row, token]}, but text {row} has {sizes.tokens[row]} tokens with "
            "control tokens: expected one label for each of them, and -1 after them."
        )


def _rows_of_numbers(values, name, sizes, padding):
    """Lists of numbers, one list for each text, as an array (texts, longest)."""
    if isinstance(values, np.ndarray) and values.ndim == 2 and len(values) == len(sizes.tokens):
        if values.shape[1] >= sizes.tokens.max(initial=0):
            return to_array(values, name)
    rows = [to_array(row, f"{name}[{place}]") for place, row in enumerate(values)]
    if len(rows) != len(sizes.tokens):
        raise ValueError(f"{len(sizes.tokens):,} examples but {len(rows):,} {name}: each example needs its own.")
    for place, (row, tokens) in enumerate(zip(rows, sizes.tokens, strict=True)):
        if row.ndim != 1 or len(row) < tokens:
            found = f"is one number, {row}" if row.ndim == 0 else f"has shape {row.shape}"
            raise ValueError(
                f"{name}[{place}] {found}, but text {place} has {tokens} tokens with control tokens: expected one "
                "number for each of them. If there is one for each word, pass the text as a list of words."
            )
    array = np.full((len(rows), max(map(len, rows))), padding, np.result_type(*rows))
    for place, row in enumerate(rows):
        array[place, : len(row)] = row
    return array


def of_width(array, width, padding):
    """The array with its rows cut or padded to `width`."""
    more = max(0, width - array.shape[1])
    return np.pad(array, ((0, 0), (0, more)), constant_values=padding)[:, :width]
