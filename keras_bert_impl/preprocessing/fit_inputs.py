"""From what a user passes to `fit`, `evaluate` and `predict` to what Keras takes, once and in one direction.

Data of other libraries become lists, arrays and batches (`texts`); the model's preprocessor makes rows of them, with
labels that the model checks; rows of about the same length become batches (`batching`).
"""

import itertools
import math
import typing

import keras

from keras_bert_impl.batching import LengthBatches, Rows, SortedBatches, padded_length
from keras_bert_impl.distribution import compiles_each_shape, needs_equal_shapes
from keras_bert_impl.preprocessing.labels import refuse_numbers_as_names
from keras_bert_impl.preprocessing.long_texts import stream_of_windows, texts_of_batches
from keras_bert_impl.preprocessing.splits_and_weights import (
    split_rows,
    weights_by_number,
    weights_of_rows,
    with_class_weights,
)
from keras_bert_impl.preprocessing.text_batches import TextBatches
from keras_bert_impl.preprocessing.texts import BatchSource, in_memory, in_order_of_classes, is_texts, received
from keras_bert_impl.text.tokenizers.rows import ROW_MULTIPLE

WITHOUT_LABELS = "The texts have no labels: pass (texts, labels), also for validation_data."


class Training(typing.NamedTuple):
    """The arguments of `keras.Model.fit` of the same names."""

    x: typing.Any
    y: typing.Any
    sample_weight: typing.Any
    validation_data: typing.Any
    validation_split: float
    class_weight: typing.Any
    shuffle: bool


def training(model, given, batch_size, validation_batch_size, steps, validation_steps):
    """What `fit` is given, as Keras takes it.

    Args:
        model: a `TaskModel`.
        given: a Training.
        batch_size: of training; None for 32.
        validation_batch_size: None for that of training.
        steps: of an epoch; None for all batches.
        validation_steps: likewise.

    Returns: a Training.
    Raises: ValueError naming what is wrong with the data, before anything is trained.
    """
    preprocessor = model.make_preprocessor()
    x, y, weights = _received(model, preprocessor, given.x, given.y, given.sample_weight)
    _refuse_beside_batches(x, y, weights, batch_size)
    validation, split = _received_validation(model, preprocessor, given.validation_data), given.validation_split
    class_weight = None if given.class_weight is None else weights_by_number(given.class_weight, model)
    is_natural = preprocessor.takes(x)
    if split and validation is None and is_natural:
        ((x, y, weights), validation), split = split_rows((x, y, weights), split), 0.0
    is_ours = is_natural or isinstance(x, (BatchSource, LengthBatches))
    if is_natural:
        rows = rows_of(model, preprocessor, x, y, weights)
        preprocessor.report_cut(rows)
        model.note_rows(rows)
        if class_weight is not None:  # Keras takes them only of rows without weights of their own
            rows.weights, class_weight = with_class_weights(class_weight, rows), None
        seed, multiple = model.data_seed(), length_multiple(model)
        x, y, weights = preprocessor.to_train(rows, batch_size or 32, given.shuffle, seed, multiple), None, None
    else:
        if isinstance(x, BatchSource) and preprocessor.truncate == "windows":
            x, class_weight = _windows_of_source(model, preprocessor, x, class_weight)
        x = inputs(model, preprocessor, x, steps, with_labels=True, is_training=True)
        y, weights = model.checked_beside(x, y, weights)
    validation = _validation(model, preprocessor, validation, validation_batch_size or batch_size, validation_steps)
    if class_weight is not None and y is not None:
        weights, class_weight = weights_of_rows(class_weight, y, weights), None
    if class_weight == "balanced":
        raise ValueError("class_weight='balanced' needs all labels at once, not in batches: give {class: weight}.")
    # Ours have their own order; Keras would permute the batches.
    return Training(x, y, weights, validation, split, class_weight, given.shuffle and not is_ours)


def evaluation(model, x, y, weights, batch_size, steps):
    """What `evaluate` is given, as `keras.Model.evaluate` takes it: (x, y, sample_weight)."""
    preprocessor = model.make_preprocessor()
    x, y, weights = _received(model, preprocessor, x, y, weights)
    _refuse_beside_batches(x, y, weights)
    return _to_evaluate(model, preprocessor, x, y, weights, batch_size, steps)


def _to_evaluate(model, preprocessor, x, y, weights, batch_size, steps):
    found = (x, y, weights) if preprocessor.takes(x) else _texts_in(model, preprocessor, x, steps, with_labels=True)
    if found is not None:
        if x is found[0]:
            _refuse_steps(steps)
        rows = rows_of(model, preprocessor, *found)
        preprocessor.report_cut(rows)
        return preprocessor.to_evaluate(rows, batch_size or 32, model.data_seed(is_drawn=False), length_multiple(model))
    x = inputs(model, preprocessor, x, steps, with_labels=True)
    if has_windows(x):
        return x, y, weights  # made by `to_evaluate`, for the validation of `fit`: its rows are not what has labels
    return x, *model.checked_beside(x, y, weights)


def prediction(model, x, batch_size, steps):
    """What `predict` is given: (what Keras takes, the Rows if it is natural data in memory).

    The second is None where an output for each token makes all rows as long as the longest.
    """
    preprocessor = model.make_preprocessor()
    x = [x] if isinstance(x, str) else _received(model, preprocessor, x)[0]
    if preprocessor.takes(x):
        _refuse_steps(steps)
    if (found := _texts_in(model, preprocessor, x, steps, with_labels=False)) is not None:
        (x, *_), steps = found, None
    if not preprocessor.takes(x) or _has_outputs_of_tokens(model):
        return inputs(model, preprocessor, x, steps), None
    rows = rows_of(model, preprocessor, x)
    preprocessor.report_cut(rows)
    # Every new shape would be compiled: few different ones are faster.
    return sorted_batches(model, rows, batch_size, ROW_MULTIPLE if compiles_each_shape(model) else 1), rows


def rows_of(model, preprocessor, x, *labelled):
    """The Rows of natural data in memory, alone or with labels and weights, `(y, sample_weight)`, that are checked.

    Raises: ValueError naming the first text, label or weight that the model does not take.
    """
    if model.pair_columns and is_texts(x):
        names = ", ".join(model.pair_columns)
        raise ValueError(f"{type(model).__name__} got single texts: pass a tuple of two columns, ({names}).")
    rows = preprocessor.rows(x, *labelled, check=model.checked_labels if labelled else None)
    model.encoder.check_texts(rows.first, rows.second, preprocessor.tokenizer.template)
    return rows


def sorted_batches(model, rows, batch_size, multiple=None):
    """The SortedBatches of Rows, whose outputs `batching.predict_rows` or `restore` gives in order."""
    model.encoder.check_texts(rows.first, rows.second, model.tokenizer.template)
    multiple = multiple or length_multiple(model)
    return SortedBatches(model.tokenizer, rows, batch_size or 32, model.sequence_length, multiple=multiple)


def length_multiple(model):
    """What lengths are rounded up to: where every new shape is compiled, few different ones are faster."""
    return ROW_MULTIPLE if compiles_each_shape(model) else 8


def inputs(model, preprocessor, x, steps=None, with_labels=False, is_training=False):
    """Inputs as Keras takes them: rows of natural data, batches of a dataset of it; anything else as it is."""
    if isinstance(x, BatchSource):
        return _batches_of(model, preprocessor, x, steps, with_labels, is_training)
    if preprocessor.takes(x):
        return model.rows(x)
    if with_labels and not isinstance(x, dict | LengthBatches):
        refuse_numbers_as_names(preprocessor.class_names or ())
    return x


def _batches_of(model, preprocessor, source, steps, with_labels, is_training):
    """The TextBatches of a BatchSource, of which the first is converted at once."""
    # The outputs of tokens, which `predict` joins, are as long as the longest row.
    is_joined = not with_labels and _has_outputs_of_tokens(model)
    whole = preprocessor.sequence_length if is_joined or needs_equal_shapes() else None

    def convert(batch, random, pad_to):
        rows = _rows_of_batch(model, preprocessor, batch, with_labels)
        if is_training:
            model.note_rows(rows)
        longest = rows.lengths(preprocessor.tokenizer.template).max(initial=1)
        width = whole or pad_to or padded_length(longest, preprocessor.sequence_length)
        converted = preprocessor.packed(rows, width, seed=int(random.integers(2**31)))
        if with_labels and converted[1] is None:
            raise ValueError(WITHOUT_LABELS)
        num_cut = rows.num_cut
        if hasattr(rows.source, "questions"):  # of which TextBatches does not tell
            preprocessor.report_cut(rows)
            num_cut = 0
        return keras.utils.pack_x_y_sample_weight(*converted), (num_cut, len(rows.first))

    batches = TextBatches(source, convert, preprocessor.sequence_length, steps, model.data_seed())
    batches.check_first()
    return batches


def _rows_of_batch(model, preprocessor, batch, with_labels):
    """The Rows of an element of a dataset: texts, (texts, labels) or (texts, labels, weights)."""
    if isinstance(batch, Rows):
        return batch
    batch = preprocessor.arranged(batch, with_labels)
    if not preprocessor.takes(batch):
        return rows_of(model, preprocessor, *(*batch, None)[:3])
    is_labelled = with_labels and preprocessor.makes_labels(batch)
    return rows_of(model, preprocessor, batch, *((None, None) if is_labelled else ()))


def _windows_of_source(model, preprocessor, source, class_weight):
    """A dataset of single texts as one of windows, with the weights of classes in them; of other data as it is."""

    def batches():
        return (preprocessor.arranged(batch, with_labels=True) for batch in source.open())

    first = next(batches(), None)
    if first is None or preprocessor.takes(first) or not is_texts(first[0]):
        return source, class_weight

    def stream():
        return stream_of_windows(batches(), lambda *batch: rows_of(model, preprocessor, *batch), class_weight)

    num_batches = math.inf if source.num_batches == math.inf else None
    return BatchSource(stream, num_batches), class_weight if class_weight == "balanced" else None


def _refuse_steps(steps):
    """Raises ValueError: lists are evaluated by length, so that the first batches would be the shortest texts."""
    if steps is not None:
        raise ValueError(f"steps={steps} applies to datasets only: pass a shorter list of texts instead.")


def _texts_in(model, preprocessor, source, steps, with_labels):
    """(texts, labels, weights) of a BatchSource that is evaluated or predicted, in memory, where it has to be; None
    otherwise, and of anything else."""
    if not isinstance(source, BatchSource):
        return None
    if source.num_batches == math.inf and steps is None:
        raise ValueError(
            "The dataset is endless, so its evaluation or prediction would never end: pass steps, or validation_steps."
        )
    if preprocessor.truncate != "windows":
        return None
    batches = itertools.islice(source.open(), steps)
    return texts_of_batches((preprocessor.arranged(batch, with_labels) for batch in batches), preprocessor.takes)


def _has_outputs_of_tokens(model):
    return any(None in output.shape[1:] for output in model.outputs)


def _received(model, preprocessor, x, labels=None, *weights):
    """Inputs, labels and sample weights in forms that are known."""
    labels = in_memory(in_order_of_classes(labels, preprocessor.class_names))
    x = preprocessor.sentences(received(x, is_pair=labels is not None or bool(model.pair_columns)), labels)
    return x, labels, *map(in_memory, weights)


def _received_validation(model, preprocessor, data):
    """`validation_data` as `_received`: a tuple (x,), (x, y) or (x, y, sample_weight), or what yields batches; None
    stays."""
    if data is None:
        return None

    def is_alone(x):
        return preprocessor.takes(x) and preprocessor.makes_labels(x)

    is_list_of_lists = isinstance(data, list) and data and isinstance(data[0], list)  # [x, y]
    are_parts = isinstance(data, (list, tuple)) and data and not is_texts(data)
    if are_parts and (is_list_of_lists or not is_alone(data)):
        return _received(model, preprocessor, *data)[: len(data)]
    x = _received(model, preprocessor, data)[0]
    return (x,) if is_alone(x) else x


def _validation(model, preprocessor, data, batch_size, steps):
    """`validation_data` with its texts converted to what Keras takes."""
    if data is None:
        return None
    if is_texts(data):
        raise ValueError(WITHOUT_LABELS)
    if isinstance(data, (list, tuple)):
        return _to_evaluate(model, preprocessor, *(*data, None, None)[:3], batch_size, steps)
    if not isinstance(data, BatchSource) and not _is_for_keras(data):
        raise ValueError(f"validation_data is a {type(data).__name__}: pass (texts, labels), or a dataset of these.")
    return _to_evaluate(model, preprocessor, data, None, None, batch_size, steps)


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


def has_windows(x):
    """Whether rows are windows, of texts or of questions, which the model's `joined_windows` joins."""
    return isinstance(x, SortedBatches) and (x.rows.windows is not None or x.rows.source is not None)
