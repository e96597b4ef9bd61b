"""`fit`, `evaluate` and `predict` on natural data, for heads that hold a tokenizer."""

import keras
import numpy as np

from keras_bert_impl.batching import drawn_seed, means_of_texts, predict_rows
from keras_bert_impl.distribution import in_scope_of_model, is_shared
from keras_bert_impl.encoders.epoch_loss import EpochLossModel, evaluate_outputs
from keras_bert_impl.preprocessing import TextPreprocessor, fit_inputs
from keras_bert_impl.preprocessing.class_sets import rows_of_zeros_and_ones
from keras_bert_impl.preprocessing.labels import checked_labels, ignored_labels, is_of_keras, takes_class_numbers
from keras_bert_impl.preprocessing.long_texts import arguments_of
from keras_bert_impl.preprocessing.other_libraries import in_memory
from keras_bert_impl.preprocessing.text_batches import TextBatches
from keras_bert_impl.preprocessing.texts import is_texts


class FitOnTexts(EpochLossModel):
    """Lets a head's `fit`, `evaluate` and `predict` take texts wherever they take ids.

    Texts are a list or array of strings, or a column of pandas, polars, PyArrow or Hugging Face `datasets`; sentence
    pairs are a tuple of two such columns, `(questions, contexts)`, or a list with a 2-tuple for each pair. A
    `tf.data.Dataset` or PyTorch `DataLoader` yields batches of them: texts, (texts, labels) or (texts, labels,
    weights), or dicts with the columns "text", "text_pair" and "label", or those of `preprocessor`; such a batch is
    padded to the next of a few lengths, `batching.padded_length`, or to `sequence_length` where all batches must have
    the same shape. Anything else is passed to Keras. The model has the attributes `tokenizer` and `sequence_length`:
    longer texts are cut, and a warning gives their number.

    Labels and sample weights are arrays, lists, tuples or columns. On every backend, their number, shape and range are
    checked: for those in memory before training, for a dataset of texts batch by batch; those of a dataset of ids are
    left to Keras. -1 and -100 mean that there is no label: a token without a label is ignored, a row without one is
    refused.

    Attributes:
        preprocessor_class: of `preprocessor`.
        pair_columns: names of both columns, for a head that takes only pairs; else None.
    """

    preprocessor_class = TextPreprocessor
    pair_columns = None

    @property
    def preprocessor(self):
        """A new one of `keras_bert_impl.preprocessing` that makes this model's inputs and labels, also in the graph of
        a dataset: `dataset.map(model.preprocessor)`. None if the model takes rows alone, or rows of several texts."""
        return None if self.tokenizer is None else self.make_preprocessor()

    def make_preprocessor(self):
        """That by which `fit` makes rows."""
        return self.preprocessor_class(self.tokenizer, self.sequence_length, **self.preprocessor_arguments())

    def preprocessor_arguments(self):
        return arguments_of(getattr(self, "long_texts", "cut"))

    @in_scope_of_model
    def fit(
        self,
        x=None,
        y=None,
        batch_size=None,
        epochs=1,
        verbose="auto",
        callbacks=None,
        validation_split=0.0,
        validation_data=None,
        shuffle=True,
        class_weight=None,
        sample_weight=None,
        **arguments,
    ):
        """`keras.Model.fit`, with texts or ids for `x` and in `validation_data`; by default in batches of 32.

        Lists of texts are tokenized once and batched by length (`batching.LengthBatches`), in a new order each epoch;
        with shuffle=False in the order given. `validation_split` takes the last part of the texts, before shuffling;
        `class_weight` has the names or numbers of classes as keys, or is "balanced". With `callbacks.ExactResume` among
        the callbacks, an interrupted `fit` resumes where it was.
        """
        given = fit_inputs.Training(x, y, sample_weight, validation_data, validation_split, class_weight, shuffle)
        sizes = batch_size, arguments.get("validation_batch_size")
        steps = arguments.get("steps_per_epoch"), arguments.get("validation_steps")
        data = fit_inputs.training(self, given, *sizes, *steps)
        self._build_variables(data.x)
        return super().fit(
            batch_size=batch_size, epochs=epochs, verbose=verbose, callbacks=callbacks, **data._asdict(), **arguments
        )

    @in_scope_of_model
    def evaluate(self, x=None, y=None, batch_size=None, verbose="auto", sample_weight=None, steps=None, **arguments):
        """`keras.Model.evaluate`, with texts or ids for `x`."""
        x, y, sample_weight = fit_inputs.evaluation(self, x, y, sample_weight, batch_size, steps)
        if fit_inputs.is_judged_as_a_whole(x) and (judged := self.judged(x)) is not None:
            outputs, labels, weights, figures = judged
            verbose = 0 if arguments.get("_use_cached_eval_dataset") else verbose  # `fit` prints for its validation
            if unknown := arguments.keys() - {"return_dict", "callbacks", "_use_cached_eval_dataset"}:
                raise TypeError(f"evaluate() got an unexpected keyword argument {min(unknown)!r}")
            told = {name: arguments.get(name) for name in ("return_dict", "callbacks")}
            return evaluate_outputs(self, outputs, labels, weights, x.batch_size, verbose, **told, **figures)
        return super().evaluate(
            x, y, batch_size=batch_size, verbose=verbose, sample_weight=sample_weight, steps=steps, **arguments
        )

    @in_scope_of_model
    def predict(self, x, batch_size=None, verbose="auto", steps=None, **arguments):
        """`keras.Model.predict`, with texts or ids for `x`; one string is one text.

        Lists of texts are computed in batches of about the same length; the outputs are in the order of the texts.
        If there is an output for each token, all rows are as long as the longest.
        """
        arguments = {"verbose": verbose, **arguments}
        x, rows = fit_inputs.prediction(self, x, batch_size, steps)
        if rows is None:
            return super().predict(x, batch_size=batch_size, steps=steps, **arguments)
        return self.of_texts(rows, x.restore(super().predict(x, **arguments)))

    def rows(self, texts, pad_to=None):
        """The input arrays of `texts`, shape (batch, length).

        The length is `pad_to`, or that of the longest text rounded up to a multiple of 32.
        """
        preprocessor = self.make_preprocessor()
        rows = preprocessor.told(fit_inputs.rows_of(self, preprocessor, in_memory(texts)))
        return preprocessor.packed(rows, pad_to)[0]

    def label_rule(self, sizes):
        """The `labels.LabelRule` for rows of these `labels.RowSizes`; None allows any labels."""
        return None

    def takes_class_numbers(self, loss):
        """Whether a loss given to `compile` takes labels as `label_rule` describes them, if these are classes."""
        return takes_class_numbers(loss)

    def checked_labels(self, sizes, labels, weights):
        """Labels and weights of rows of these `labels.RowSizes`, as arrays. Raises ValueError naming the first that is
        wrong."""
        if isinstance(labels, dict):
            return labels, weights
        loss, rule = getattr(self, "loss", None), self.label_rule(sizes)
        if labels is None:
            if rule is not None:
                raise ValueError(fit_inputs.WITHOUT_LABELS)
            return labels, weights
        labels = rows_of_zeros_and_ones(labels, self.class_names) if self.multi_label else labels
        if rule is not None and rule.limit is not None and not self.takes_class_numbers(loss):
            if rule.names and len(labels) and (is_texts(labels) or (is_of_keras(loss) and np.ndim(labels) == 1)):
                raise ValueError(
                    "The labels are classes, but the loss takes a number for each class of a row: compile with "
                    "'sparse_categorical_crossentropy'."
                )
            rule = None
        labels, weights = checked_labels(labels, weights, rule, sizes, ignored_labels(loss))
        if self.multi_label and weights is not None and weights.ndim > 1:
            # Keras takes the mean over the classes before it multiplies by the weights.
            raise ValueError(f"sample_weight has shape {weights.shape}, expected one for each text, ({len(labels)},).")
        return labels, weights

    def checked_beside(self, x, labels, weights):
        """Labels and weights of arrays of ids, or of batches, as `checked_labels`."""
        return fit_inputs.checked_beside(self, x, labels, weights)

    def note_rows(self, rows, is_batch=False):
        """What `fit` does about rows that it trains, all or those of a batch."""

    def data_seed(self, is_drawn=True):
        """Of the order of data and of what is drawn for them; for an evaluation one that is not drawn."""
        return drawn_seed() if is_drawn else 0

    def of_texts(self, rows, outputs):
        """The outputs of texts, from those of their rows."""
        return outputs if rows.windows is None else means_of_texts(outputs, rows.windows)

    def judged(self, batches):
        """Of SortedBatches whose rows are not what is judged, but what it is made of: (outputs, labels, sample weights
        or None, further figures by name). Here texts, by the mean outputs of their windows. None if rows are judged."""
        rows = batches.rows
        if rows.windows is None:
            return None
        # `share_labels` has divided the weights among the windows, whose number it has made their mean.
        whole = rows.windows / rows.windows.mean()
        weights = None if rows.weights is None else rows.of_texts(rows.weights) * whole
        return predict_rows(self, batches), rows.of_texts(rows.labels), weights, {}

    def _build_variables(self, x):
        """Creates the variables of the optimizer and the metrics before `fit`, from the first batch.

        Where they are created while TensorFlow traces the training step, it has to trace the step a second time, which
        takes a third of the time that the first `fit` of a small model takes to begin.
        """
        is_in_memory = isinstance(x, keras.utils.PyDataset) and not isinstance(x, TextBatches)
        if is_in_memory and self.compiled and not self.optimizer.built and not is_shared():
            self._symbolic_build(data_batch=keras.utils.unpack_x_y_sample_weight(x[0]))
