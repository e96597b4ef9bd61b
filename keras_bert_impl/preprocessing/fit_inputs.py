"""From what a user passes to `fit`, `evaluate` and `predict` to what Keras takes, once and in one direction.

Data of other libraries become lists, arrays and batches (`other_libraries`, `batch_sources`); the head's RowMaker makes
rows of them, and checks their labels; rows of about the same length become batches (`batching`).
"""

import functools
import itertools
import math
import typing

import keras

from keras_bert_impl.batching import LengthBatches, Rows, SortedBatches
from keras_bert_impl.distribution import needs_equal_shapes
from keras_bert_impl.preprocessing.batch_sources import BatchSource, arranged
from keras_bert_impl.preprocessing.labels import refuse_numbers_as_names
from keras_bert_impl.preprocessing.other_libraries import in_memory
from keras_bert_impl.preprocessing.row_maker import WITHOUT_LABELS
from keras_bert_impl.preprocessing.splits_and_weights import (
    in_order_of_classes,
    split_rows,
    weights_by_number,
    weights_of_rows,
)
from keras_bert_impl.preprocessing.text_batches import TextBatches
from keras_bert_impl.preprocessing.texts import is_texts
from keras_bert_impl.text.tokenizers.rows import ROW_MULTIPLE


class Training(typing.NamedTuple):
    """The arguments of `keras.Model.fit` of the same names."""

    x: typing.Any
    y: typing.Any
    sample_weight: typing.Any
    validation_data: typing.Any
    validation_split: float
    class_weight: typing.Any
    shuffle: bool


def training(maker, given, batch_size, validation_batch_size, steps, validation_steps):
    """What `fit` is given, as Keras takes it.

    Args:
        maker: the head's RowMaker.
        given: a Training.
        batch_size: of training; None for 32.
        validation_batch_size: None for that of training.
        steps: of an epoch; None for all batches.
        validation_steps: likewise.

    Returns: a Training.
    Raises: ValueError naming what is wrong with the data, before anything is trained.
    """
    x, y, weights = _received(maker, given.x, given.y, given.sample_weight)
    _refuse_beside_batches(x, y, weights, batch_size)
    split, validation, class_weight = given.validation_split, given.validation_data, given.class_weight
    validation, class_weight = _received_validation(maker, validation), weights_by_number(class_weight, maker.head)
    is_natural = maker.is_natural(x)
    if split and validation is None and is_natural:
        ((x, y, weights), validation), split = split_rows((x, y, weights), split), 0.0
    validation = _validation(maker, validation, validation_batch_size or batch_size, validation_steps)
    is_ours = is_natural or isinstance(x, (BatchSource, LengthBatches))
    if is_natural:
        x, y, weights = maker.to_train(x, y, weights, batch_size, given.shuffle), None, None
        if class_weight is not None:  # Keras takes them only of rows without weights of their own
            x.rows.weights, class_weight = maker.with_class_weights(class_weight, x.rows), None
    else:
        if isinstance(x, BatchSource):
            arrange = functools.partial(arranged, class_names=maker.class_names, with_labels=True)
            given_source, x = x, maker.rows_of_source(x, arrange, class_weight)
            class_weight = class_weight if x is given_source or class_weight == "balanced" else None
        x = inputs(maker, x, steps, with_labels=True)
        y, weights = maker.checked_beside(x, y, weights)
    if class_weight is not None and y is not None:
        weights, class_weight = weights_of_rows(class_weight, y, weights), None
    # Ours have their own order; Keras would permute the batches.
    return Training(x, y, weights, validation, split, class_weight, given.shuffle and not is_ours)


def evaluation(maker, x, y, weights, batch_size, steps):
    """What `evaluate` is given, as `keras.Model.evaluate` takes it: (x, y, sample_weight)."""
    x, y, weights = _received(maker, x, y, weights)
    _refuse_beside_batches(x, y, weights)
    return _judged(maker, x, y, weights, batch_size, steps)


def _judged(maker, x, y, weights, batch_size, steps):
    if maker.is_natural(x):
        _refuse_steps(steps)
        return maker.to_judge(x, y, weights, batch_size)
    if (found := _texts_in(maker, x, steps, with_labels=True)) is not None:
        return maker.to_judge(*found, batch_size)
    x = inputs(maker, x, steps, with_labels=True)
    if _is_judged_as_a_whole(x):
        return x, y, weights  # made by `to_judge`, for the validation of `fit`: its rows are not what has labels
    return x, *maker.checked_beside(x, y, weights)


def prediction(maker, x, batch_size, steps):
    """What `predict` is given: (what Keras takes, the Rows if it is natural data in memory).

    The second is None where an output for each token makes all rows as long as the longest.
    """
    x = [x] if isinstance(x, str) else maker.received(x)
    if maker.is_natural(x):
        _refuse_steps(steps)
    if (found := _texts_in(maker, x, steps, with_labels=False)) is not None:
        (x, *_), steps = found, None
    if not maker.is_natural(x) or _has_outputs_of_tokens(maker.head):
        return inputs(maker, x, steps), None
    rows = maker.rows_of(x)
    # Every new shape would be compiled: few different ones are faster.
    multiple = ROW_MULTIPLE if maker.head.jit_compile else 1
    return SortedBatches(maker.tokenizer, rows, batch_size or 32, maker.sequence_length, multiple=multiple), rows


def inputs(maker, x, steps=None, with_labels=False):
    """Inputs as Keras takes them: rows of natural data, batches of a dataset of it; anything else as it is."""
    if isinstance(x, BatchSource):
        return _batches_of(maker, x, steps, with_labels)
    if maker.is_natural(x):
        return maker.head.rows(x)
    if with_labels and not isinstance(x, dict | LengthBatches):
        refuse_numbers_as_names(maker.class_names)
    return x


def _batches_of(maker, source, steps, with_labels):
    """The TextBatches of a BatchSource, of which the first is converted at once."""
    # The outputs of tokens, which `predict` joins, are as long as the longest row.
    is_joined = not with_labels and _has_outputs_of_tokens(maker.head)
    whole = maker.sequence_length if is_joined or needs_equal_shapes() else None

    def convert(batch, random, pad_to):
        batch = batch if isinstance(batch, Rows) else arranged(batch, maker.class_names, with_labels)
        converted, cut = maker.converted(batch, random, whole or pad_to)
        if with_labels and isinstance(converted, dict):
            raise ValueError(WITHOUT_LABELS)
        return converted, cut

    batches = TextBatches(source, convert, maker.sequence_length, steps, maker.seed())
    batches.check_first()
    return batches


def _refuse_steps(steps):
    """Raises ValueError: lists are judged sorted by length, so that the first batches would be the shortest texts."""
    if steps is not None:
        raise ValueError(f"steps={steps} is for datasets: of a list of texts, pass only those that you want.")


def _texts_in(maker, source, steps, with_labels):
    """(texts, labels, weights) of a BatchSource that is evaluated or predicted, in memory, where it has to be; None
    otherwise, and of anything else."""
    if not isinstance(source, BatchSource):
        return None
    if source.num_batches == math.inf and steps is None:
        raise ValueError(
            "The dataset is endless, and so would be its evaluation or prediction: pass steps, or validation_steps."
        )
    batches = itertools.islice(source.open(), steps)
    return maker.texts_of_source(arranged(batch, maker.class_names, with_labels) for batch in batches)


def _has_outputs_of_tokens(head):
    return any(None in output.shape[1:] for output in head.outputs)


def _received(maker, x, labels=None, *weights):
    """Inputs, labels and sample weights in forms that are known."""
    labels = in_memory(in_order_of_classes(labels, maker.class_names))
    return maker.received(x, labels), labels, *map(in_memory, weights)


def _received_validation(maker, data):
    """`validation_data`, (x, y) or (x, y, sample_weight), as `_received`, or what yields batches; None stays."""
    if isinstance(data, (list, tuple)) and data and not is_texts(data):
        return _received(maker, *data)[: len(data)]
    return None if data is None else maker.received(data)


def _validation(maker, data, batch_size, steps):
    """`validation_data` with its texts converted to what Keras takes."""
    data = maker.validation(data)
    if data is None:
        return None
    if is_texts(data):
        raise ValueError(WITHOUT_LABELS)
    if isinstance(data, (list, tuple)):
        return _judged(maker, *(*data, None, None)[:3], batch_size, steps)
    if not isinstance(data, BatchSource) and not _is_for_keras(data):
        raise ValueError(f"validation_data is a {type(data).__name__}: pass (texts, labels), or a dataset of these.")
    return _judged(maker, data, None, None, batch_size, steps)


def _is_for_keras(data):
    """Whether Keras takes `data` in each epoch again: a dict of arrays, or a dataset."""
    if isinstance(data, dict):
        return all(hasattr(array, "shape") and not is_texts(array) for array in data.values())
    is_once_or_array = hasattr(data, "__next__") or hasattr(data, "shape") or isinstance(data, str)
    return isinstance(data, keras.utils.PyDataset) or (hasattr(data, "__iter__") and not is_once_or_array)


def _refuse_beside_batches(x, *others):
    """Raises ValueError for labels, weights or a size of batches beside a dataset, which would be passed over."""
    if isinstance(x, BatchSource) and any(one is not None for one in others):
        raise ValueError("A dataset yields batches of (texts, labels): leave y, sample_weight and batch_size out.")


def _is_judged_as_a_whole(x):
    """Whether rows are windows, of texts or of questions, which `RowMaker.judged` joins."""
    return isinstance(x, SortedBatches) and (x.rows.windows is not None or x.rows.source is not None)
