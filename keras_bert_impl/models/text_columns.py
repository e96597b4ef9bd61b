"""`fit` and `evaluate` on rows of several texts, each of which gets a vector of its own."""

import keras
import numpy as np
from keras import ops

from keras_bert_impl.distribution import can_compile
from keras_bert_impl.embedding_losses import CosineSimilarityLoss, MultipleNegativesRankingLoss, TripletLoss
from keras_bert_impl.embedding_metrics import RankingAccuracy, SpearmanCorrelation, TripletAccuracy
from keras_bert_impl.models.task_model import TaskModel
from keras_bert_impl.optimization import BertAdamW
from keras_bert_impl.preprocessing.column_rows import ColumnsPreprocessor, sizes_of_columns, text_numbers
from keras_bert_impl.preprocessing.labels import LabelRule, checked_labels
from keras_bert_impl.user_warnings import warn_user


class TextColumnsModel(TaskModel):
    """TaskModel for a model that computes each text by itself, but is trained on rows of two or more texts.

    Rows are a tuple of columns, `(anchors, positives)`, a list with a tuple for each row, a table of texts (a
    two-dimensional array, a pandas DataFrame), or a `tf.data.Dataset` of batches of such columns. As ids, they are a
    dict of arrays (batch, columns, length); the outputs are (batch, columns, width). Single texts are (batch, length).

    The labels of rows are similarities, or none: then the losses are given the numbers of the texts; see
    `embedding_losses`. Before the first call of `compile`, `fit` and `evaluate` compile for the data they are given:
    with AdamW at 2e-5, and for pairs with a similarity `CosineSimilarityLoss` and Spearman's correlation, for triplets
    `TripletLoss`, for other rows without a similarity `MultipleNegativesRankingLoss`.
    """

    preprocessor_class = ColumnsPreprocessor
    preprocessor = None  # rows of several texts are made by `fit` alone

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

    def checked_labels(self, sizes, labels, weights):
        """Labels and weights for the loss: similarities, (examples,), or without these the numbers of the texts,
        (examples, columns)."""
        if not self.compiled:
            columns = 1 if sizes.texts is None else sizes.texts.shape[1]
            self.compile(
                optimizer=BertAdamW(2e-5),  # Reimers & Gurevych 2019, section 3.1
                jit_compile="auto" if can_compile() else False,
                **usual_objective(columns, labels is not None),
            )
        if sizes.texts is None:
            return super().checked_labels(sizes, labels, weights)
        loss = getattr(self, "loss", None)
        kind, takes = type(loss).__name__, getattr(loss, "takes_similarities", None)
        if takes is not None and takes != (labels is not None):
            wanted = "the similarity of each pair" if takes else "no labels"
            raise ValueError(f"{kind} takes {wanted}: fit((first, second), similarity), or fit((anchors, positives)).")
        if labels is None:
            # One label stands for each row, so that only the weights are checked.
            return sizes.texts, checked_labels(sizes.texts[:, 0], weights, None, sizes)[1]
        scale = getattr(loss, "label_range", None)
        if scale is not None:
            low, high = scale
            why = f"but {kind} compares labels with cosines, from {low:g} to {high:g}: CoSENTLoss takes any scale"
            scale = low, high, why
        rule = LabelRule((len(sizes.texts),), None, "the similarity of its pair", scale=scale)
        return checked_labels(labels, weights, rule, sizes)

    def checked_beside(self, x, labels, weights):
        if not isinstance(x, dict) or "token_ids" not in x:
            return labels, weights
        ids = ops.convert_to_numpy(x["token_ids"])
        numbers = text_numbers(ids.reshape(-1, ids.shape[2]).tolist())
        return self.checked_labels(sizes_of_columns(numbers.reshape(ids.shape[:2])), labels, weights)

    def note_rows(self, rows, is_batch=False):
        if is_batch or not isinstance(self.loss, MultipleNegativesRankingLoss):
            return
        _, counts = np.unique(rows.labels, return_counts=True)
        if repeated := int(counts[counts > 1].sum()):
            warn_user(
                f"{repeated:,} of {counts.sum():,} texts occur more than once. Where equal texts meet in a batch, they "
                "are not taken as negatives of each other."
            )


def usual_objective(columns, is_labelled):
    """The arguments `loss` and `metrics` of `compile` for rows of so many texts, with or without a similarity."""
    if is_labelled:
        return {"loss": CosineSimilarityLoss(), "metrics": [SpearmanCorrelation()]}
    if columns == 3:
        return {"loss": TripletLoss(), "metrics": [TripletAccuracy()]}
    return {"loss": MultipleNegativesRankingLoss(), "metrics": [RankingAccuracy()]}
