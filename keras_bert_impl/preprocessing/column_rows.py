"""Rows of several texts, each of which gets a vector of its own."""

import keras
import numpy as np
from keras import ops

from keras_bert_impl.batching import Rows
from keras_bert_impl.embedding_losses import MultipleNegativesRankingLoss
from keras_bert_impl.preprocessing.labels import LabelRule, RowSizes, checked_labels, refuse
from keras_bert_impl.preprocessing.long_texts import LongTextRows
from keras_bert_impl.preprocessing.texts import columns_of, has_columns, is_text_dataset, is_text_input, to_strings
from keras_bert_impl.user_warnings import warn_user


class ColumnRows(LongTextRows):
    """Rows of two or more texts, whose labels are similarities, or the numbers of the texts; and single texts."""

    def is_natural(self, x):
        return is_text_input(x) or has_columns(x)

    def unlabelled(self, texts):
        columns = columns_of(texts)
        if columns is None:
            return super().unlabelled(to_strings(texts))
        flat = [text for row in zip(*columns, strict=True) for text in row]
        return Rows.from_texts(self.tokenizer, flat, None, self.sequence_length, choices=len(columns))

    def to_train(self, texts, labels, weights, batch_size, shuffle):
        batches = super().to_train(texts, labels, weights, batch_size, shuffle)
        self._warn_of_equal_texts(batches.rows)
        return batches

    def labelled(self, texts, labels, weights):
        rows = self.fitting(self.unlabelled(texts))
        if rows.choices is None:  # single texts
            return super().labelled(texts, labels, weights)
        numbers = text_numbers(rows.first).reshape(-1, rows.choices)
        rows.labels, rows.weights = self._targets(numbers, labels, weights)
        return rows

    def _warn_of_equal_texts(self, rows):
        if not isinstance(self.head.loss, MultipleNegativesRankingLoss):
            return
        _, counts = np.unique(rows.labels, return_counts=True)
        repeated = int(counts[counts > 1].sum())
        if repeated:
            warn_user(
                f"{repeated:,} of {counts.sum():,} texts occur more than once. Where equal texts meet in a batch, they "
                "are not taken as negatives of each other."
            )

    def validation(self, data):
        return (data, None) if has_columns(data) else data

    def checked_beside(self, x, labels, weights):
        if not isinstance(x, dict) or "token_ids" not in x:
            return labels, weights
        shape = np.shape(x["token_ids"])
        numbers = text_numbers(np.reshape(ops.convert_to_numpy(x["token_ids"]), (-1, shape[2])).tolist())
        return self._targets(numbers.reshape(shape[:2]), labels, weights)

    def converted(self, batch, random, pad_to):
        is_trained = self.is_natural(batch) and columns_of(batch) is not None
        return super().converted((batch, None) if is_trained else batch, random, pad_to)

    def _targets(self, numbers, labels, weights):
        """Labels and sample weights for the loss. Labels are similarities, (examples,), or without these the numbers of
        the texts, (examples, columns).

        Raises: ValueError for labels that the loss does not take, naming the first one.
        """
        loss = getattr(self.head, "loss", None)
        kind, takes = type(loss).__name__, getattr(loss, "takes_similarities", None)
        if takes is not None and takes != (labels is not None):
            wanted = "the similarity of each pair" if takes else "no labels"
            raise ValueError(f"{kind} takes {wanted}: fit((first, second), similarity), or fit((anchors, positives)).")
        sizes = RowSizes(np.ones(len(numbers), "int32"), 1)
        if labels is None:
            # One label stands for each row, so that only the weights are checked.
            return numbers, checked_labels(numbers[:, 0], weights, None, sizes)[1]
        rule = LabelRule((len(numbers),), None, "the similarity of its pair")
        labels, weights = checked_labels(labels, weights, rule, sizes)
        low, high = getattr(loss, "label_range", None) or (-np.inf, np.inf)
        scale = f"but {kind} compares labels with cosines, from {low:g} to {high:g}: CoSENTLoss takes any scale"
        refuse(labels, (labels < low) | (labels > high), "labels", scale)
        return labels, weights


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
