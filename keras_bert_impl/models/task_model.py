"""What all heads over an encoder have in common, such as `fit`, `evaluate` and `predict` on texts."""

import operator

import keras
import numpy as np

from keras_bert_impl import checkpoints
from keras_bert_impl.batching import LengthBatches, drawn_seed, means_of_texts, predict_rows
from keras_bert_impl.configurations.initialization import kernel_initializer
from keras_bert_impl.distribution import in_scope_of_model, is_shared
from keras_bert_impl.encoders.epoch_loss import EpochLossModel, evaluate_outputs
from keras_bert_impl.encoders.layer_records import layer_records, restore_layer_records, without_layer_records
from keras_bert_impl.layers import Dense, Dropout
from keras_bert_impl.models.compile_arguments import (
    computed_from_logits,
    ignored_labels,
    is_of_keras,
    takes_class_numbers,
)
from keras_bert_impl.models.pretrained import (
    check_tokenizer_fits,
    load_classifier,
    load_model,
    shows_arguments_of_constructor,
)
from keras_bert_impl.optimization import BertAdamW
from keras_bert_impl.preprocessing import TextPreprocessor, fit_inputs
from keras_bert_impl.preprocessing.labels import (
    Positions,
    checked_labels,
    rows_of_zeros_and_ones,
    sizes_of_arrays,
    sizes_of_texts,
)
from keras_bert_impl.preprocessing.long_texts import arguments_of
from keras_bert_impl.preprocessing.text_batches import TextBatches
from keras_bert_impl.preprocessing.texts import in_memory, is_empty, is_texts
from keras_bert_impl.text.tokenizers import tokenizer_from_config, tokenizer_to_config


class TaskModel(EpochLossModel):
    """An encoder with a head; with a tokenizer, `fit`, `evaluate` and `predict` take texts wherever they take ids.

    Texts are a list or array of strings, or a column of pandas, polars, PyArrow or Hugging Face `datasets`; sentence
    pairs are a tuple of two such columns, `(questions, contexts)`, or a list with a 2-tuple for each pair. A
    `tf.data.Dataset` or PyTorch `DataLoader` yields batches of them: texts, (texts, labels) or (texts, labels,
    weights), or dicts with the columns "text", "text_pair" and "label", or those of `preprocessor`; such a batch is
    padded to the next of a few lengths, `batching.padded_length`, or to `sequence_length` where all batches must have
    the same shape. Anything else is passed to Keras. Longer texts are cut, and a warning gives their number.

    Labels and sample weights are arrays, lists, tuples or columns. On every backend, their number, shape and range are
    checked: for those in memory before training, for a dataset of texts batch by batch; those of a dataset of ids are
    left to Keras. -1 and -100 mean that there is no label: a token without a label is ignored, a row without one is
    refused.

    A head connects its outputs in its constructor, and passes them to this one together with the values of
    `head_arguments`, which become attributes. Its dtype policy is the encoder's, since Keras decides in `compile` by
    the model's policy whether to scale the loss, for mixed_float16.

    Attributes:
        encoder: not tracked by Keras, since the graph holds all of its layers that the head uses; a pooler that it does
            not use must not be among the model's weights.
        head_arguments: the constructor's arguments beside `encoder`, `tokenizer`, `sequence_length` and `name`.
        counterpart: the end of its class's name in transformers, as in BertForMaskedLM; None if it has none there.
        label_kind: what the labels are: "class", of a row; "token", a class for each token, or none; "masked", a word
            for each masked token; "number"; "relevance", a number from 0 to 1, of which the output is the logit.
        class_names, multi_label: of a head with classes, as TextClassifier's.
        own_losses: what to do about a loss, where Keras' are for other labels.
        preprocessor_class: of `preprocessor`.
        pair_columns: names of both columns, for a head that takes only pairs; else None.
        scores_tokens: whether it classifies tokens, before which DistilBERT has another dropout than before texts.
        learning_rate: of the optimizer that the model is compiled with by default.
    """

    head_arguments = ()
    preprocessor_class, pair_columns = TextPreprocessor, None
    counterpart = None
    label_kind = "class"
    class_names, multi_label = None, False
    own_losses = None
    scores_tokens = False
    learning_rate = 5e-5

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        shows_arguments_of_constructor(cls)

    def __init__(self, encoder, tokenizer, sequence_length, outputs, name, inputs=None, **head_arguments):
        super().__init__(inputs=encoder.input if inputs is None else inputs, outputs=outputs, name=name)
        check_tokenizer_fits(tokenizer, encoder)
        self.dtype_policy = encoder.dtype_policy
        object.__setattr__(self, "encoder", encoder)
        self.tokenizer = tokenizer
        self.sequence_length = checked_sequence_length(sequence_length, encoder.config)
        for argument, value in head_arguments.items():
            setattr(self, argument, value)
        if objective := self.usual_objective():
            self.compile(BertAdamW(self.learning_rate), **objective)

    def usual_objective(self):
        """The arguments `loss` and `metrics` of the default `compile`; None if it is not compiled."""

    @in_scope_of_model
    def compile(
        self, optimizer="rmsprop", loss=None, loss_weights=None, metrics=None, weighted_metrics=None, **arguments
    ):
        """Sets optimizer, loss and metrics, as `keras.Model.compile` does.

        Models with a usual loss are already compiled for it, and a TextEmbedder is compiled by its first `fit`; a
        FeatureTagger is not. Losses and metrics given by name read logits, and ignore tokens without a label.

        Args:
            optimizer (str or keras.optimizers.Optimizer, optional): optimizer, usually an `optimization.BertAdamW`.
                Default: "rmsprop", Keras' default.
            loss (str or keras.losses.Loss, optional): loss. Default: None, which keeps the previous one.
            loss_weights (optional): as in Keras. Default: None.
            metrics (list, optional): metrics, by name or as objects; [] for none. Default: None, which keeps the
                previous ones.
            weighted_metrics (list, optional): metrics that use sample weights. Default: None.
            arguments: further arguments of `keras.Model.compile`.

        Raises: ValueError for a loss or metric that does not fit the model's labels or logits.
        """
        loss, metrics, weighted_metrics = computed_from_logits(self, loss, metrics, weighted_metrics)
        super().compile(optimizer, loss, loss_weights, metrics, weighted_metrics, **arguments)

    @property
    def preprocessor(self):
        """A new preprocessor for `tf.data` pipelines and data loaders, as in `dataset.map(model.preprocessor)`.

        It is one of `keras_bert_impl.preprocessing`, and makes this model's inputs and labels. None if the model has no
        tokenizer, or takes examples of several texts.
        """
        return None if self.tokenizer is None else self.make_preprocessor()

    def make_preprocessor(self):
        """That by which `fit` makes rows."""
        return self.preprocessor_class(self.tokenizer, self.sequence_length, **self.preprocessor_arguments())

    def preprocessor_arguments(self):
        """Those of `preprocessor_class` beside tokenizer and sequence_length."""
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
        """Trains the model on texts, or on token IDs.

        Texts in memory are tokenized once and batched by length, in a new order each epoch. Every form of `x` that is
        listed here works in `validation_data`, `evaluate` and `predict`.

        Args:
            x: texts: a list or array of str, or a column of pandas, polars, PyArrow or Hugging Face `datasets`. Pairs
                of texts, for a model that takes them: a tuple of two columns, `(questions, contexts)`, or a list of
                2-tuples. Datasets: a `tf.data.Dataset` or a PyTorch `DataLoader` of texts, (texts, labels), (texts,
                labels, weights), or of dicts with the keys "text", "text_pair" and "label". Token IDs: a dict of
                arrays. Other values go to `keras.Model.fit`.
            y (list, array or column, optional): labels. Default: None, for data that hold their labels, or need none.
            batch_size (int, optional): number of examples in a batch. Default: 32.
            epochs (int, optional): number of passes over the data. Default: 1.
            verbose (int or str, optional): 0 is silent, 1 shows progress bars, 2 prints a line for each epoch.
                Default: "auto".
            callbacks (list, optional): callbacks of Keras and of `keras_bert_impl.callbacks`. With
                `callbacks.ExactResume`, an interrupted `fit` continues where it stopped. Default: None.
            validation_split (float, optional): fraction of the data, taken from the end before shuffling, to validate
                on. Default: 0.0.
            validation_data (optional): (x, y), (x, y, weights), or a dataset to validate on. Default: None.
            shuffle (bool, optional): False trains in the order given. Default: True.
            class_weight (dict or str, optional): weights by class name or number, or "balanced". Default: None.
            sample_weight (list or array, optional): weight of each example, or of each token. Default: None.
            arguments: further arguments of `keras.Model.fit`.

        Returns: a `keras.callbacks.History`, whose `history` holds the loss and the metrics of each epoch.
        Raises: ValueError for labels or weights of the wrong number, shape or range. Labels -1 and -100 mean "no
            label": they are allowed for tokens, not for whole texts.

        Example:
            >>> classes = ["negative", "positive"]
            >>> model = kbi.TextClassifier.from_pretrained("small_english", class_names=classes)
            >>> texts, labels = ["I loved it.", "Far too long."], ["positive", "negative"]
            >>> history = model.fit(texts, labels, validation_data=(texts, labels), verbose=0)
            >>> sorted(history.history)
            ['accuracy', 'loss', 'val_accuracy', 'val_loss']
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
        """Computes the loss and the metrics on texts, or on token IDs.

        Args:
            x: texts in any form that `fit` takes.
            y (list, array or column, optional): labels. Default: None, for data that hold their labels.
            sample_weight (list or array, optional): weight of each example, or of each token. Default: None.
            batch_size (int, optional): number of examples in a batch. Default: 32.
            verbose (int or str, optional): 0 is silent. Default: "auto".
            steps (int, optional): number of batches to read of a dataset. Default: all.
            arguments: further arguments of `keras.Model.evaluate`.

        Returns: a list of numbers, loss first; the loss alone without metrics; a dict with `return_dict=True`.
        """
        x, y, sample_weight = fit_inputs.evaluation(self, x, y, sample_weight, batch_size, steps)
        if fit_inputs.has_windows(x) and (joined := self.joined_windows(x)) is not None:
            outputs, labels, weights, figures = joined
            verbose = 0 if arguments.pop("_use_cached_eval_dataset", False) else verbose  # `fit` prints of validation
            return evaluate_outputs(self, outputs, labels, weights, x.batch_size, verbose, figures, **arguments)
        return super().evaluate(
            x, y, batch_size=batch_size, verbose=verbose, sample_weight=sample_weight, steps=steps, **arguments
        )

    @in_scope_of_model
    def predict(self, x, batch_size=None, verbose="auto", steps=None, **arguments):
        """Computes the outputs for texts, or for token IDs.

        Texts in memory are batched by length, and the outputs have the order of the texts. If there is an output for
        each token, all are padded to the longest text.

        Args:
            x: texts in any form that `fit` takes; one str is one text.
            batch_size (int, optional): number of texts in a batch. Default: 32.
            verbose (int or str, optional): 0 is silent. Default: "auto".
            steps (int, optional): number of batches of a dataset. Default: all.
            arguments: further arguments of `keras.Model.predict`.

        Returns: an array whose first axis is the texts.
        """
        if is_empty(x):
            empty = [(0, *(size or 0 for size in one.shape[1:])) for one in keras.tree.flatten(self.output)]
            return keras.tree.pack_sequence_as(self.output, [np.zeros(shape, "float32") for shape in empty])
        arguments = {"verbose": verbose, **arguments}
        x, rows = fit_inputs.prediction(self, x, batch_size, steps)
        if rows is None:
            return super().predict(x, batch_size=batch_size, steps=steps, **arguments)
        return self.of_texts(rows, x.restore(super().predict(x, **arguments)))

    def rows(self, texts, pad_to=None):
        """Returns the model's input arrays for texts.

        Args:
            texts (list): texts in any form that `fit` takes in memory.
            pad_to (int, optional): length to pad to. Default: that of the longest text, rounded up to a multiple of 32.

        Returns: dict of int32 arrays (batch, length), by the names of the inputs; (batch, texts, length) for a
            MultipleChoice, and for several texts to embed in an example.
        """
        preprocessor = self.make_preprocessor()
        rows = fit_inputs.rows_of(self, preprocessor, in_memory(texts))
        preprocessor.report_cut(rows)
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
                    "The labels are class numbers, but the loss takes a value for each class: compile with "
                    "'sparse_categorical_crossentropy'."
                )
            rule = None
        labels, weights = checked_labels(labels, weights, rule, sizes, ignored_labels(loss))
        if self.multi_label and weights is not None and weights.ndim > 1:
            # Keras takes the mean over the classes before it multiplies by the weights.
            raise ValueError(f"sample_weight has shape {weights.shape}, expected one for each text, ({len(labels)},).")
        return labels, weights

    def checked_beside(self, x, labels, weights):
        """Labels and weights of arrays of ids; those of batches that were made before are checked in place."""
        if isinstance(x, LengthBatches) and not isinstance(x.rows.labels, dict | None):
            sizes = sizes_of_texts(x.rows, x.tokenizer.template, x.sequence_length)
            self.checked_labels(sizes, np.asarray(x.rows.labels).view(Positions), x.rows.weights)
        sizes = None if labels is None else sizes_of_arrays(x)
        return (labels, weights) if sizes is None else self.checked_labels(sizes, labels, weights)

    def note_rows(self, rows):
        """What `fit` does about rows that it trains, all or those of a batch."""

    def data_seed(self, is_drawn=True):
        """Of the order of data and of what is drawn for them; for an evaluation one that is not drawn."""
        return drawn_seed() if is_drawn else 0

    def of_texts(self, rows, outputs):
        """The outputs of texts, from those of their rows."""
        return outputs if rows.windows is None else means_of_texts(outputs, rows.windows)

    def joined_windows(self, batches):
        """(outputs, labels, sample weights or None, further figures by name) of the texts or questions whose windows
        are the rows of SortedBatches; None if the rows are no windows. The outputs of a text are the mean over its
        windows."""
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

    def get_config(self):
        return {
            "encoder": keras.saving.serialize_keras_object(self.encoder),
            "tokenizer": tokenizer_to_config(self.tokenizer),
            **{name: getattr(self, name) for name in ("sequence_length", "name", *self.head_arguments)},
            **layer_records(self),
        }

    @classmethod
    def from_config(cls, config):
        encoder = keras.saving.deserialize_keras_object(config["encoder"])
        tokenizer = tokenizer_from_config(config["tokenizer"])
        arguments = {**without_layer_records(config), "encoder": encoder, "tokenizer": tokenizer}
        return restore_layer_records(cls(**arguments), config)

    @classmethod
    def from_pretrained(cls, path, report=False, **arguments):
        """Opens a checkpoint as a model of this class.

        Heads that the checkpoint does not have start from random weights, and a warning names them. An argument of the
        constructor that is left out has the checkpoint's value, if there is one.

        Args:
            path (str or pathlib.Path): a checkpoint directory, "hf://owner/name", or a name that `list_pretrained`
                prints.
            report (bool, optional): whether to print the tensors used, left over and newly initialised. Default: False.
            arguments: arguments of the constructor.
            dtype (str, optional): dtype policy of the encoder, such as "mixed_bfloat16" to train faster, or "bfloat16"
                to predict. Default: Keras' global policy.
            rematerialize (bool, optional): whether training computes blocks twice to save memory. Default: False.

        Returns: the model, compiled for its usual loss if it has one.
        Raises: ValueError if the checkpoint is damaged or cannot be reached.

        Example:
            >>> model = kbi.MaskedLM.from_pretrained("small_english")
            >>> model.sequence_length
            128
        """
        return load_model(cls, checkpoints.open_checkpoint(path), report, **arguments)


class ClassesModel(TaskModel):
    """TaskModel with `num_classes` and `class_names`: a checkpoint's classes are kept or replaced."""

    @classmethod
    def from_pretrained(cls, path, num_classes=None, report=False, **arguments):  # noqa: D417, `with_entries` adds them
        """Opens a checkpoint as a classifier: with the checkpoint's own head, or with a new one.

        The names decide which classes a trained head has. In another order, `class_names` reorders its outputs. The
        same number of different names renames the classes, with a warning unless they were only numbered. Another
        number of classes makes a new head, with random weights. Any other argument of the constructor that is left out
        has the checkpoint's value, if there is one.

        Args:
            num_classes (int, optional): number of classes. Default: the number of class_names, or the checkpoint's
                classes.
            arguments: those of every model's `from_pretrained`.

        Returns: the model, compiled for its usual loss.
        Raises: ValueError if the checkpoint is damaged or cannot be reached, if it has no classifier and neither
            num_classes nor class_names are given, or if only some of the checkpoint's names are given, at other
            positions.

        Example:
            >>> classes = ["negative", "positive"]
            >>> model = kbi.TextClassifier.from_pretrained("small_english", class_names=classes)
            >>> model.num_classes, model.sequence_length
            (2, 128)
        """
        return load_classifier(cls, checkpoints.open_checkpoint(path), num_classes, report, **arguments)


def checked_sequence_length(sequence_length, config):
    """`sequence_length`, where None means the encoder's max_length. Raises ValueError if it is larger."""
    if sequence_length is None:
        return config.max_length
    if sequence_length > config.max_length:
        raise ValueError(f"sequence_length {sequence_length} is above the encoder's max_length {config.max_length}.")
    return operator.index(sequence_length)


def check_has_four_layers(encoder):
    """Raises ValueError if the last four hidden states would be, in part, embeddings."""
    if (depth := len(encoder.hidden_states()) - 1) < 4:
        raise ValueError(f"This pooling needs the last four layers, but the encoder has {depth}.")


def head_dense(encoder, units, name):
    """The dense layer of a head, float32, initialised like BERT's other kernels."""
    return Dense(units, kernel_initializer=kernel_initializer(encoder.config), dtype="float32", name=name)


def head_dropout(encoder, rate, name):
    """Dropout before a head's dense layer; None means the rate that the family has before classes of texts."""
    rate = encoder.config.classifier_dropout_rate if rate is None else rate
    return Dropout(float(rate), dtype=encoder.dtype_policy, name=name)


def text_scores(encoder, units, dropout_rate, outputs=None, rows=None):
    """Scores of whole rows, (batch, units), and the rate of the dropout before them: by a dense layer over the pooled
    first token of an encoder's outputs for rows."""
    outputs, rows = (encoder.output, encoder.input) if rows is None else (outputs, rows)
    dropout = head_dropout(encoder, dropout_rate, "pooled_dropout")
    return head_dense(encoder, units, "classifier")(dropout(encoder.pooled(outputs, rows))), dropout.rate
