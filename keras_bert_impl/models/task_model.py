"""What all heads over an encoder have in common."""

import operator
import pathlib

import keras

from keras_bert_impl import checkpoints
from keras_bert_impl.configurations.initialization import kernel_initializer
from keras_bert_impl.distribution import in_scope_of_model
from keras_bert_impl.encoders.layer_records import layer_records, restore_layer_records, without_layer_records
from keras_bert_impl.layers import Dense, Dropout
from keras_bert_impl.models.compile_arguments import computed_from_logits
from keras_bert_impl.models.fit_on_texts import FitOnTexts
from keras_bert_impl.models.pretrained import (
    check_tokenizer_fits,
    is_for,
    load_model,
    order_of_classes,
    shows_arguments_of_constructor,
)
from keras_bert_impl.optimization import BertAdamW
from keras_bert_impl.text.tokenizers import tokenizer_from_config, tokenizer_to_config


class TaskModel(FitOnTexts):
    """An encoder with a head, and with a tokenizer to take and to answer texts.

    A head connects its outputs in its constructor, and passes them to this one together with the values of
    `head_arguments`, which become attributes. Its dtype policy is the encoder's, since Keras decides in `compile` by
    the model's policy whether to scale the loss, for mixed_float16.

    Attributes:
        encoder: not tracked by Keras, since the graph holds all of its layers that the head uses; a pooler that it does
            not use must not be among the model's weights.
        head_arguments: the constructor's arguments beside `encoder`, `tokenizer`, `sequence_length` and `name`.
        label_kind: what the labels are: "class", of a row; "token", a class for each token, or none; "masked", a word
            for each masked token; "number"; "relevance", a number from 0 to 1, of which the output is the logit.
        class_names, multi_label: of a head with classes, as TextClassifier's.
        own_losses: what to do about a loss, where Keras' are for other labels.
        scores_tokens: whether it classifies tokens, before which DistilBERT has another dropout than before texts.
        learning_rate: of the optimizer that the model is compiled with by default.
    """

    head_arguments = ()
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
        """`keras.Model.compile`, with losses and metrics that read logits, and that pass over tokens without a label;
        see `compile_arguments`."""
        loss, metrics, weighted_metrics = computed_from_logits(self, loss, metrics, weighted_metrics)
        super().compile(optimizer, loss, loss_weights, metrics, weighted_metrics, **arguments)

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
        """The model of a checkpoint.

        Args:
            path: a checkpoint directory, "hf://owner/name", or a published name.
            report: print which tensors were used, left over and newly initialised.
            arguments: of the constructor; tokenizer and sequence_length are the checkpoint's unless given. `dtype` and
                `rematerialize` are passed to the encoder: its dtype policy, "mixed_bfloat16" to train faster or
                "bfloat16" to predict; and whether training computes blocks twice to save memory.

        Raises: ValueError if the checkpoint is damaged or cannot be reached.
        """
        return load_model(cls, checkpoints.open_checkpoint(path), report, **arguments)


class ClassesModel(TaskModel):
    """TaskModel with `num_classes` and `class_names`: a checkpoint's classes are kept or replaced."""

    @classmethod
    def from_pretrained(cls, path, num_classes=None, report=False, **arguments):
        """The classifier of a checkpoint, or a new head over its encoder.

        Args:
            path: a checkpoint directory, "hf://owner/name", or a published name.
            num_classes: of a new head; None means those of the checkpoint, or as many as there are class_names.
            report: print which tensors were used, left over and newly initialised.
            arguments: of the constructor; tokenizer and sequence_length are the checkpoint's unless given. Of
                `class_names`, those of the checkpoint in another order move its classes; other names, as many, rename
                them, with a warning unless the classes were only numbered (0, LABEL_0). `dtype` and `rematerialize`
                are passed to the encoder, as in `TaskModel.from_pretrained`.

        Raises: ValueError if the checkpoint is damaged or cannot be reached, if it has no classifier and neither
            num_classes nor class_names are given, or if a name of the checkpoint would belong to another class.
        """
        checkpoint = checkpoints.open_checkpoint(path)
        if num_classes is None and arguments.get("class_names") is not None:
            num_classes = len(arguments["class_names"])
        names = checkpoint.class_names if is_for(cls, checkpoint) else None
        if names is None and num_classes is None:
            raise ValueError(
                f"{checkpoint.source.path} holds no classifier that a {cls.__name__} can use: give the names of "
                "the classes of a new one, class_names=[...], or their number, num_classes=2."
            )
        if names is not None and num_classes in (None, len(names)):
            given, place = arguments.pop("class_names", None), pathlib.Path(checkpoint.source.path).parent
            whose = "class_names" if given else f"{place / 'config.json'}: id2label"
            given = checked_class_names(given or names, len(names), whose)
            is_trained = "classifier" not in checkpoint.untrained
            order = order_of_classes(checkpoint, given) if is_trained else []
            model = load_model(cls, checkpoint, report, num_classes=len(names), class_names=given, **arguments)
            for weight in model.get_layer("classifier").weights if order != sorted(order) else ():
                weight.assign(keras.ops.take(weight, order, axis=-1))
            return model
        return load_model(cls, checkpoint, report, except_for=("classifier/",), num_classes=num_classes, **arguments)


def checked_sequence_length(sequence_length, config):
    """`sequence_length`, where None means the encoder's max_length. Raises ValueError if it is larger."""
    if sequence_length is None:
        return config.max_length
    if sequence_length > config.max_length:
        raise ValueError(f"sequence_length {sequence_length} is above the encoder's max_length {config.max_length}.")
    return operator.index(sequence_length)


def checked_class_names(class_names, num_classes, whose="class_names"):
    """`class_names` as a list of str, where None means "0", "1", ...

    Raises: ValueError unless they are num_classes different names in an order, which a set of strings has not: it
        differs from process to process.
    """
    names = [str(name) for name in (range(num_classes) if class_names is None else class_names)]
    if isinstance(class_names, str | set | frozenset) or len(names) != num_classes or len(set(names)) < len(names):
        raise ValueError(f"{whose} has to be a list of {num_classes} different names, not {class_names!r}.")
    return names


def check_has_four_layers(encoder):
    """Raises ValueError if the last four hidden states would be, in part, embeddings."""
    if (depth := len(encoder.hidden_states()) - 1) < 4:
        raise ValueError(f"The last four layers are asked for, but the encoder has {depth}.")


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
