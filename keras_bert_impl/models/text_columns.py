"""`fit` and `evaluate` on rows of several texts, each of which gets a vector of its own."""

import keras
import numpy as np
from keras import ops

from keras_bert_impl.batching import LengthBatches, Rows
from keras_bert_impl.distribution import can_compile, in_scope_of_model
from keras_bert_impl.embedding_losses import (
    CosineSimilarityLoss,
    MultipleNegativesRankingLoss,
    TripletLoss,
    check_columns,
)
from keras_bert_impl.embedding_metrics import RankingAccuracy, SpearmanCorrelation, TripletAccuracy
from keras_bert_impl.models.labels import LabelRule, RowSizes, checked_labels
from keras_bert_impl.models.raw_text import RawTextMixin
from keras_bert_impl.models.text_inputs import columns_of, has_columns, is_text_dataset, is_text_input, to_strings
from keras_bert_impl.optimization import BertAdamW
from keras_bert_impl.user_warnings import warn_user

HOW_TO_FIT = (
    "fit((first, second), similarity), fit((anchors, positives)) or fit((anchors, positives, negatives)), where each "
    "column is a list of texts"
)


class TextColumnsMixin(RawTextMixin):
    """RawTextMixin for a model that computes each text by itself, but is trained on rows of two or more texts.

    Rows are a tuple of columns, `(anchors, positives)`, a list with a tuple for each row, a table of texts (a
    two-dimensional array, a pandas DataFrame), or a `tf.data.Dataset` of batches of such columns. As ids, they are a
    dict of arrays (batch, columns, length); the outputs are (batch, columns, width). Single texts are (batch, length).

    The labels of rows are similarities, or none: then the losses are given the numbers of the texts; see
    `embedding_losses`.
    """

    @in_scope_of_model
    def fit(self, x=None, y=None, *arguments, **more):
        """`keras.Model.fit` on pairs with a similarity, on anchors and positives, or on triplets.

        Before the first call of `compile`, `fit` and `evaluate` compile for the data they are given: with AdamW at
        2e-5, and for pairs with a similarity `CosineSimilarityLoss` and Spearman's correlation, for triplets
        `TripletLoss`, for other rows without a similarity `MultipleNegativesRankingLoss`. Rows are batched by length.
        """
        if more.get("class_weight") is not None:
            raise ValueError("class_weight is for classes, of which there are none here: give sample_weight.")
        validation_data = more.get("validation_data")
        if isinstance(validation_data, tuple) and not has_columns(validation_data):
            more["validation_data"] = (as_columns(validation_data[0]), *validation_data[1:])
        self._prepare(x, y)
        return super().fit(as_columns(x), y, *arguments, **more)

    @in_scope_of_model
    def evaluate(self, x=None, y=None, *arguments, **more):
        """`keras.Model.evaluate` on rows as `fit` takes them, always in the same batches."""
        self._prepare(x, y)
        return super().evaluate(as_columns(x), y, *arguments, **more)

    def predict(self, x, *arguments, **more):
        """`keras.Model.predict` on single texts, or their ids (batch, length).

        Raises: ValueError for rows of several texts.
        """
        columns = columns_in(x)
        if columns is not None and columns > 1:
            raise ValueError(
                f"{type(self).__name__} computes single texts, but these are rows of {columns}: pass one column at a "
                "time."
            )
        return super().predict(x, *arguments, **more)

    def call(self, inputs, training=None, mask=None):
        shape = ops.shape(keras.tree.flatten(inputs)[0])
        if len(shape) == 2:
            return super().call(inputs, training=training, mask=mask)
        flat = keras.tree.map_structure(lambda array: ops.reshape(array, (-1, shape[2])), inputs)
        vectors = super().call(flat, training=training, mask=mask)  # (batch * columns, width)
        return ops.reshape(vectors, (-1, shape[1], vectors.shape[-1]))

    def compute_output_spec(self, inputs, training=None, mask=None):
        shape = keras.tree.flatten(inputs)[0].shape
        if len(shape) == 2:
            return super().compute_output_spec(inputs, training=training, mask=mask)
        return keras.KerasTensor((*shape[:2], self.outputs[0].shape[-1]), dtype=self.outputs[0].dtype)

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        if y is None:
            raise ValueError(
                "A dataset of ids has to yield labels: similarities, or the numbers of the texts as "
                "keras_bert_impl.models.text_columns.text_numbers(token_ids) gives them."
            )
        return super().compute_loss(x, y, y_pred, sample_weight, training)

    def _prepare(self, x, y):
        """Compiles the model for its data, if it is not compiled. Raises ValueError for single texts."""
        if x is None:
            return
        columns = columns_in(x)
        if columns == 1:
            raise ValueError(
                f"{type(self).__name__} is trained by {HOW_TO_FIT}, or on ids of shape (batch, columns, length); it "
                "was given single texts."
            )
        if self.compiled:
            return
        if columns is None:
            raise ValueError(f"The loss depends on what the rows are: call compile first, or {HOW_TO_FIT}.")
        is_labelled = isinstance(x.element_spec[0], tuple) if is_text_dataset(x) else y is not None
        self.compile(
            optimizer=BertAdamW(2e-5),  # Reimers & Gurevych 2019, section 3.1
            jit_compile="auto" if can_compile() else False,
            **usual_objective(columns, is_labelled),
        )

    def _is_text_input(self, x):
        return is_text_input(x) or has_columns(x)

    def _rows_of(self, texts):
        columns = columns_of(texts)
        if columns is None:
            return Rows.from_texts(self._require_tokenizer(), to_strings(texts), None, self.sequence_length)
        flat = [text for row in zip(*columns, strict=True) for text in row]
        return Rows.from_texts(self._require_tokenizer(), flat, None, self.sequence_length, choices=len(columns))

    def _packed(self, rows, pad_to=None):
        arrays = super()._packed(rows, pad_to)
        if rows.choices is None:
            return arrays
        return {name: array.reshape(-1, rows.choices, array.shape[-1]) for name, array in arrays.items()}

    def _training_data(self, texts, labels, weights, batch_size, shuffle, kind=LengthBatches):
        batches = super()._training_data(texts, labels, weights, batch_size, shuffle, kind)
        if kind is LengthBatches:
            self._warn_of_equal_texts(batches.rows)
        return batches

    def _labelled_rows(self, texts, labels, weights):
        rows = self._text_rows(texts)
        if rows.choices is None:
            raise ValueError(
                f"validation_data holds single texts, but {type(self).__name__} is trained by {HOW_TO_FIT}."
            )
        numbers = text_numbers(rows.first).reshape(-1, rows.choices)
        rows.labels, rows.weights = self._targets(numbers, labels, weights)
        return rows

    def _warn_of_equal_texts(self, rows):
        if not isinstance(self.loss, MultipleNegativesRankingLoss):
            return
        _, counts = np.unique(rows.labels, return_counts=True)
        repeated = int(counts[counts > 1].sum())
        if repeated:
            warn_user(
                f"{repeated:,} of {counts.sum():,} texts occur more than once. Where equal texts meet in a batch, they "
                "are not taken as negatives of each other."
            )

    def _validation(self, data, batch_size, steps):
        return super()._validation((data, None) if has_columns(data) else data, batch_size, steps)

    def _checked(self, x, y, weights):
        if not isinstance(x, dict) or "token_ids" not in x:
            return y, weights
        shape = np.shape(x["token_ids"])
        if len(shape) != 3:
            raise ValueError(f"validation_data holds ids of shape {shape}, expected (batch, columns, length).")
        numbers = text_numbers(np.reshape(ops.convert_to_numpy(x["token_ids"]), (-1, shape[2])).tolist())
        return self._targets(numbers.reshape(shape[:2]), y, weights)

    def _convert_batch(self, batch, random, pad_to):
        is_alone = self._is_text_input(batch)
        texts, labels, weights = (batch, None, None) if is_alone else (*batch, None)[:3]
        rows = self._rows_of(texts)
        if rows.choices is None:  # to predict
            return super()._convert_batch(batch, random, pad_to)
        inputs, cut = self._packed(rows, pad_to or self._length_of_batch(rows)), (rows.num_cut, len(rows.first))
        numbers = text_numbers(rows.first).reshape(-1, rows.choices)
        labels, weights = self._targets(numbers, labels, weights)
        return (inputs, labels) if weights is None else (inputs, labels, weights), cut

    def _targets(self, numbers, labels, weights):
        """Labels and sample weights for the loss. Labels are similarities, or without these the numbers of the texts.

        Args:
            numbers: (examples, columns), equal for equal texts.
            labels: (examples,), or None.
            weights: (examples,), or None.

        Raises: ValueError for labels that the loss does not take, naming the first one.
        """
        loss = getattr(self, "loss", None)
        kind, takes = type(loss).__name__, getattr(loss, "takes_similarities", None)
        if hasattr(loss, "columns"):
            check_columns(loss, numbers.shape[1])
        if labels is None and takes:
            raise ValueError(f"{kind} needs the similarity of each pair: fit((first, second), similarity).")
        if labels is not None and takes is False:
            raise ValueError(
                f"{kind} takes no labels: leave y out, or, if y holds similarities, compile with "
                "loss=keras_bert_impl.embedding_losses.CosineSimilarityLoss()."
            )
        sizes = RowSizes(np.ones(len(numbers), "int32"), 1)
        if labels is None:
            # One label stands for each row, so that only the weights are checked.
            return numbers, checked_labels(numbers[:, 0], weights, None, sizes)[1]
        rule = LabelRule((len(numbers),), None, "the similarity of its pair")
        labels, weights = checked_labels(labels, weights, rule, sizes)
        check_range(labels, getattr(loss, "label_range", None), kind)
        return labels, weights


def check_range(labels, label_range, kind):
    """Raises ValueError naming the first label outside the range, (lowest, highest) or None for any."""
    if label_range is None:
        return
    low, high = label_range
    (wrong,) = np.nonzero((labels < low) | (labels > high))
    if len(wrong):
        raise ValueError(
            f"labels[{wrong[0]}] is {labels[wrong[0]]}, but {kind} compares labels with cosines, from {low:g} to "
            f"{high:g}: divide scores from 0 to 5 by 5, or compile with CoSENTLoss, which takes any scale."
        )


def usual_objective(columns, is_labelled):
    """The arguments `loss` and `metrics` of `compile` for rows of so many texts, with or without a similarity."""
    if is_labelled and columns != 2:
        raise ValueError(f"A similarity belongs to a pair of texts, but these rows have {columns}.")
    if is_labelled:
        return {"loss": CosineSimilarityLoss(), "metrics": [SpearmanCorrelation()]}
    if columns == 3:
        return {"loss": TripletLoss(), "metrics": [TripletAccuracy()]}
    return {"loss": MultipleNegativesRankingLoss(), "metrics": [RankingAccuracy()]}


def as_columns(x):
    """A table of texts as a tuple of its columns; anything else stays."""
    return tuple(columns_of(x)) if has_columns(x) else x


def columns_in(x):
    """The number of texts in each row of what Keras' methods are given; None if it is not known."""
    if is_text_dataset(x):
        spec = x.element_spec[0] if isinstance(x.element_spec, tuple) else x.element_spec
        spec = spec if isinstance(spec, tuple) else x.element_spec
        return sum(part.dtype.name == "string" for part in keras.tree.flatten(spec))
    if isinstance(x, dict) and "token_ids" in x:
        shape = np.shape(x["token_ids"])
        return shape[1] if len(shape) == 3 else 1
    if is_text_input(x) or has_columns(x):
        return len(columns_of(x) or [x])
    return None


def text_numbers(rows):
    """A number for each list of ids, int32, the same for equal lists."""
    numbers = {}
    return np.array([numbers.setdefault(tuple(ids), len(numbers)) for ids in rows], "int32")
