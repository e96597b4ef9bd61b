"""From labels of words to entities and back: IOB1, IOB2, IOBES and BILOU, and labels without prefixes."""

import itertools
import re
import typing

import keras
import numpy as np
from keras import ops

from keras_bert_impl.losses import LabelledAccuracy, has_label, weights_of_labels

# "B-PER": begin, inside, end, single (IOB1, IOB2, IOBES); last, unit (BILOU).
PREFIXED = re.compile(r"[BIESLU]-.+")
BARE_PREFIXES = {"B", "I", "E", "S", "L", "U"}  # for entities of a single type, which need no name
BILOU_AS_IOBES = {"L": "E", "U": "S"}
ONLY_TYPE = "entity"


class Entity(typing.NamedTuple):
    """An entity in a text, as `TokenClassifier.tag` returns it.

    Fields:
        text (str): the entity as written in the text, `text[start:end]`.
        label (str): its type, such as "PER".
        score (float): mean probability of the labels of its words.
        start (int): position of its first character.
        end (int): position after its last character.
    """

    text: str
    label: str
    score: float
    start: int
    end: int


def are_entities(labels):
    """Whether labels mark entities, like B-PER and I-PER beside O; False for labels of words, like DT and NN.

    Args:
        labels: the distinct labels, strings. "O" alone counts as entities, of which there are none.

    Raises: ValueError if some labels have a prefix and others have none, since no figure would be right then.
    """
    named = set(labels) - {"O"}
    if not named or mark_entities(named):
        return True
    without = sorted(label for label in named if not PREFIXED.fullmatch(label))
    if len(without) < len(named):
        example = min(named - set(without))
        raise ValueError(
            f"The label {without[0]!r} has no prefix (B-, I-, E-, S-, L- or U-), but {example!r} has one: give one to "
            "every label but O, or to none."
        )
    return False


def mark_entities(class_names):
    """Whether all classes but O have a prefix: what `are_entities` tells, without an error and without O alone."""
    named = set(class_names) - {"O"}
    is_bare = named <= BARE_PREFIXES and bool(named & {"B", "I"})
    return is_bare or (bool(named) and all(map(PREFIXED.fullmatch, named)))


def as_iobes(label):
    """A label with BILOU's prefixes in the letters of IOBES; others stay."""
    prefix, dash, name = label.partition("-")
    return BILOU_AS_IOBES.get(prefix, prefix) + dash + name


def begins_between(before, here):
    """Whether an entity begins at the second of two neighbouring labels of IOBES, as seqeval and conlleval have it."""
    (one, _, kind_before), (other, _, kind) = before.partition("-"), here.partition("-")
    return other in "BS" or (one in "ESO" and other in "EI") or (other != "O" and kind != kind_before)


def ends_between(before, here):
    """Whether an entity ends at the first of two neighbouring labels of IOBES, as seqeval and conlleval have it."""
    (one, _, kind_before), (other, _, kind) = before.partition("-"), here.partition("-")
    return one in "ES" or (one in "BI" and other in "BSO") or (one != "O" and kind != kind_before)


def runs_of(labels, class_names):
    """The entities among the labels of consecutive words.

    With prefixes they are found as seqeval and conlleval do. Without, neighbours of the same label are one entity if
    "O" is among the classes; otherwise every word has a label, as for parts of speech, and stands for itself.

    Args:
        labels: of the words, strings.
        class_names: all labels that there are.

    Returns: list of (type, number of the first word, number of the last).
    Raises: ValueError as `are_entities` does.
    """
    if not are_entities(class_names):
        if "O" not in class_names:
            return [(label, place, place) for place, label in enumerate(labels)]
        labels = [label if label == "O" else f"I-{label}" for label in labels]
    found, first, before = [], 0, "O"
    for place, here in enumerate([*map(as_iobes, labels), "O"]):
        if ends_between(before, here):
            found.append((before.partition("-")[2] or ONLY_TYPE, first, place - 1))
        if begins_between(before, here):
            first = place
        before = here
    return found


def entities_of(text, spans, labels, scores, class_names):
    """The list of Entity of a text, in its order, from the spans of its words, as in `labelled_words.SplitText`, their
    labels, strings, and the scores of the labels; see `runs_of`."""
    found = []
    for kind, first, last in runs_of(labels, class_names):
        start, end = int(spans[first, 0]), int(spans[last, 1])
        found.append(Entity(text[start:end], kind, float(np.mean(scores[first : last + 1])), start, end))
    return found


def labels_of_spans(row, text, word_spans, spans, class_names):
    """A label for each word of a text in which entities are marked by their characters.

    The labels begin with B- and I-, or also with E- and S- (or L- and U-), if the classes do; else they are the types.

    Args:
        row: the number of the text, for messages.
        text: the text.
        word_spans: int (words, 2), as in `labelled_words.SplitText`.
        spans: (start, end, type) of each entity, in characters, as tuples or as dicts of `start`, `end`, `label`.
        class_names: the labels that there are.

    Returns: list of labels; a word of which only a part is marked is labelled as a whole.
    Raises: ValueError naming the row and the span that is not in the text, holds no word, or shares one with another.
    """
    labels, begin, inside, end, single = ["O"] * len(word_spans), *_prefixes(class_names)
    for span in sorted(map(_as_tuple, spans), key=lambda span: span[:2]):
        start, stop, kind = span
        words = np.flatnonzero((word_spans[:, 0] < stop) & (word_spans[:, 1] > start))
        if not 0 <= start < stop <= len(text) or not len(words) or any(labels[word] != "O" for word in words):
            raise ValueError(
                f"labels[{row}]: the span {span} is not within the {len(text)} characters of text {row}, contains no "
                "word, or overlaps another span."
            )
        marks = [begin, *[inside] * (len(words) - 2), end] if len(words) > 1 else [single]
        for word, prefix in zip(words, marks, strict=True):
            labels[word] = prefix + kind if prefix.endswith("-") or not prefix else prefix
    return labels


def _as_tuple(span):
    if isinstance(span, dict):
        span = span["start"], span["end"], span["label"]
    start, end, kind = span
    return int(start), int(end), str(kind)


def _prefixes(class_names):
    """What the labels of an entity's first, inner, last and only words begin with."""
    if not are_entities(class_names):
        return "", "", "", ""
    letters = {name[0] for name in class_names if name != "O"}
    begin = "B" if "B" in letters else "I"
    end, single = ("E", "S") if letters & {"E", "S"} else ("L", "U") if letters & {"L", "U"} else ("I", begin)
    dash = "-" if any("-" in name for name in class_names) else ""
    return tuple(letter + dash for letter in (begin, "I", end, single))


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class EntityF1(keras.metrics.Metric):
    """F1 over entities of which type, first and last word are right, as seqeval and conlleval count them (Tjong Kim
    Sang & De Meulder 2003); most words are no entity, so that the accuracy is high where nothing is found.

    Args:
        class_names: of the classes: O, and others with the prefixes of IOB1, IOB2, IOBES or BILOU.

    Labels are (batch, length), int, any of `losses.NO_LABEL` for a token without a label, which is passed over; logits
    (batch, length, classes). Sample weights are as for the labels; an entity has that of its first word. It is 0 where
    there is no entity, labelled or predicted.
    """

    def __init__(self, class_names, name="entity_f1", dtype="float32"):
        super().__init__(name=name, dtype=dtype)
        self.class_names = list(class_names)
        self.num_right, self.num_labelled, self.num_predicted = (
            self.add_variable((), initializer="zeros", name=name) for name in ("right", "labelled", "predicted")
        )
        self.tables = None
        self._direction = "up"

    def update_state(self, y_true, y_pred, sample_weight=None):
        labels = ops.cast(y_true, "int32")
        is_labelled, places = has_label(labels), ops.arange(ops.shape(labels)[1], dtype="int32")[None]
        # The labelled tokens of each row come first, in their order.
        order = ops.argsort(ops.where(is_labelled, places, places + ops.shape(labels)[1]), axis=1)
        outside = len(self.class_names)
        wanted, found = (
            ops.where(
                ops.take_along_axis(is_labelled, order, axis=1), ops.take_along_axis(numbers, order, axis=1), outside
            )
            for numbers in (labels, ops.cast(ops.argmax(y_pred, axis=-1), "int32"))
        )
        weights = weights_of_labels(1.0 if sample_weight is None else sample_weight, labels)
        # (batch, length + 1): an entity that ends with the row ends before a place that has none.
        weights = ops.pad(ops.take_along_axis(weights, order, axis=1), ((0, 0), (0, 1)))
        (labelled, last, wanted), (predicted, found_last, found) = map(self._entities, (wanted, found))
        kinds = ops.convert_to_tensor(self._tables()[2])
        same = ops.logical_and(ops.take(kinds, wanted) == ops.take(kinds, found), last == found_last)
        right = ops.logical_and(ops.logical_and(labelled, predicted), same)
        for variable, begins in (
            (self.num_right, right), (self.num_labelled, labelled), (self.num_predicted, predicted)
        ):  # fmt: skip
            variable.assign_add(ops.sum(weights * ops.cast(begins, "float32")))

    def _entities(self, numbers):
        """Where entities begin, bool; the place after the last word of each, where it begins; the class of each place.

        Args:
            numbers: of the classes, (batch, length); the number after the last stands for no word.

        Returns: three (batch, length + 1).
        """
        starts, ends, _ = (ops.convert_to_tensor(table) for table in self._tables())
        outside = len(self.class_names)
        before = ops.pad(numbers, ((0, 0), (1, 0)), constant_values=outside)
        here = ops.pad(numbers, ((0, 0), (0, 1)), constant_values=outside)
        pairs = before * (outside + 1) + here
        begins, is_after = ops.take(starts, pairs), ops.take(ends, pairs)
        length = ops.shape(here)[1]
        # The n-th entity of a row ends at the n-th end.
        after = ops.sort(ops.where(is_after, ops.arange(length, dtype="int32")[None], length), axis=1)
        number = ops.maximum(ops.cumsum(ops.cast(begins, "int32"), axis=1) - 1, 0)
        return begins, ops.take_along_axis(after, number, axis=1), here

    def _tables(self):
        """Whether an entity begins, and whether one ended, between each two classes, flat bool ((classes + 1)^2,); the
        number of each class' type, (classes + 1,)."""
        if self.tables is None:
            names = [as_iobes(name) for name in (*self.class_names, "O")]
            pairs = list(itertools.product(names, names))
            starts, ends = ([rule(*pair) for pair in pairs] for rule in (begins_between, ends_between))
            kinds = [name.partition("-")[2] for name in names]
            kinds = [sorted({*kinds}).index(kind) for kind in kinds]
            self.tables = np.array(starts), np.array(ends), np.array(kinds, "int32")
        return self.tables

    def result(self):
        return ops.divide_no_nan(2 * self.num_right.value, self.num_labelled.value + self.num_predicted.value)

    def get_config(self):
        return {**super().get_config(), "class_names": self.class_names}


def metrics_of_words(class_names):
    """The metrics of a model of words by default: accuracy, and if the classes mark entities their F1."""
    return [LabelledAccuracy(), *([EntityF1(class_names)] if mark_entities(class_names) else [])]
