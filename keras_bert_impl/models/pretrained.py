"""Configuration, loading and saving, for the models that put a head on an encoder."""

import functools
import inspect
import operator
import pathlib

import keras

from keras_bert_impl import checkpoints
from keras_bert_impl.checkpoints import build_filled
from keras_bert_impl.configurations.initialization import kernel_initializer
from keras_bert_impl.distribution import in_scope_of_model
from keras_bert_impl.encoders import build_encoder
from keras_bert_impl.encoders.epoch_loss import EpochLossMixin
from keras_bert_impl.encoders.keras_methods import KerasMethodsMixin
from keras_bert_impl.encoders.layer_records import layer_records, restore_layer_records, without_layer_records
from keras_bert_impl.layers import Dense, Dropout
from keras_bert_impl.models.compile_arguments import (
    loss_on_logits,
    made,
    metric_on_logits,
    metrics_of_classes,
    of_each,
    refuse_loss_of_others,
    refuse_metrics,
)
from keras_bert_impl.preprocessing.labels import takes_class_numbers
from keras_bert_impl.text.tokenizers import tokenizer_from_config, tokenizer_to_config
from keras_bert_impl.user_warnings import warn_user

HEADS_NAMED_CLASSIFIER = ("ForSequenceClassification", "ForTokenClassification", "ForMultipleChoice")
OTHER_HEADS = (*HEADS_NAMED_CLASSIFIER, "ForQuestionAnswering")  # which is named so, too, in some families
NEW_HEAD = "For a new head, save the encoder alone and open that."
VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
OF_ENCODER = (("dtype", None), ("rematerialize", False))  # arguments of `load_model` that are passed to the encoder


class PretrainedMixin(EpochLossMixin, KerasMethodsMixin):
    """`get_config`, `from_config`, `from_pretrained` and `save_pretrained` of a model over an encoder.

    The model takes `encoder`, `tokenizer` and `sequence_length` in its constructor and has them as attributes;
    `head_arguments` names the constructor's other arguments, which are attributes, too; `scores_tokens` is whether it
    classifies tokens, before which DistilBERT has another dropout than before texts; `returns_numbers` is whether its
    outputs stand for themselves, not for classes; `own_losses` is what to do about a loss, where Keras' are for other
    labels. Its dtype policy is the encoder's, since Keras decides in `compile`
    by the model's policy whether to scale the loss, for mixed_float16.
    """

    head_arguments = ()
    scores_tokens = False
    returns_numbers = False
    own_losses = None

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        inherited = inspect.unwrap(cls.from_pretrained.__func__)
        if "__init__" in vars(cls) and "arguments" in inspect.signature(inherited).parameters:
            cls.from_pretrained = with_arguments_of_constructor(cls, inherited)

    def __init__(self, encoder, tokenizer, sequence_length, outputs, name, inputs=None, tracks_encoder=True):
        """The outputs of a head over an encoder. Where no output uses the encoder's pooler, it is not tracked as a
        layer: its graph holds all others, and the pooler must not be among the model's weights."""
        super().__init__(inputs=encoder.input if inputs is None else inputs, outputs=outputs, name=name)
        check_tokenizer_fits(tokenizer, encoder)
        self.dtype_policy = encoder.dtype_policy
        if tracks_encoder:
            self.encoder = encoder
        else:
            object.__setattr__(self, "encoder", encoder)
        self.tokenizer = tokenizer
        self.sequence_length = checked_sequence_length(sequence_length, encoder.config)

    @in_scope_of_model
    def compile(
        self, optimizer="rmsprop", loss=None, loss_weights=None, metrics=None, weighted_metrics=None, **arguments
    ):
        """`keras.Model.compile`, with losses and metrics that read logits; see `compile_arguments`."""
        loss, multi_label = loss_on_logits(loss), getattr(self, "multi_label", False)
        refuse_loss_of_others(self, loss)
        names = getattr(self, "class_names", ())
        if names and (multi_label or takes_class_numbers(loss or getattr(self, "loss", None))):
            metrics, weighted_metrics = (
                metrics_of_classes(given, len(names), multi_label) for given in (metrics, weighted_metrics)
            )
        metrics, weighted_metrics = (of_each(made, given) for given in (metrics, weighted_metrics))
        refuse_metrics(self, loss, metrics, weighted_metrics)
        metrics, weighted_metrics = (of_each(metric_on_logits, given) for given in (metrics, weighted_metrics))
        super().compile(optimizer, loss, loss_weights, metrics, weighted_metrics, **arguments)

    def get_config(self):
        return {
            "encoder": keras.saving.serialize_keras_object(self.encoder),
            "tokenizer": tokenizer_to_config(self.tokenizer),
            "sequence_length": self.sequence_length,
            "name": self.name,
            **{name: getattr(self, name) for name in self.head_arguments},
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
        checkpoint = checkpoints.open_checkpoint(path)
        return load_model(cls, checkpoint, report, **arguments)

    @staticmethod
    def list_pretrained():
        """Prints the published checkpoints that `from_pretrained` knows by name."""
        print(checkpoints.published_table())

    def save_pretrained(self, directory):
        """Writes `config.json`, `model.safetensors` and the tokenizer as Hugging Face names them."""
        checkpoints.huggingface.save(self, directory)


class ClassesMixin(PretrainedMixin):
    """PretrainedMixin for models with `num_classes` and `class_names`: a checkpoint's classes are kept or replaced."""

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
                are passed to the encoder, as in `PretrainedMixin.from_pretrained`.

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
            order = _order_of_classes(checkpoint, given) if is_trained else []
            model = load_model(cls, checkpoint, report, num_classes=len(names), class_names=given, **arguments)
            for weight in model.get_layer("classifier").weights if order != sorted(order) else ():
                weight.assign(keras.ops.take(weight, order, axis=-1))
            return model
        return load_model(cls, checkpoint, report, except_for=("classifier/",), num_classes=num_classes, **arguments)


def with_arguments_of_constructor(cls, inherited):
    """`inherited`, the function of `from_pretrained`, as a class method that shows, in `help` and notebooks, what the
    constructor takes."""

    @functools.wraps(inherited)
    def from_pretrained(cls, *arguments, **options):
        return inherited(cls, *arguments, **options)

    shown = dict(inspect.signature(inherited).parameters)
    del shown["arguments"]
    constructor = inspect.signature(cls.__init__).parameters.values()
    others = [one for one in constructor if one.name not in ("self", "encoder", *shown) and one.kind not in VARIABLE]
    others += [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default) for name, default in OF_ENCODER]
    from_pretrained.__signature__ = inspect.Signature(
        [*shown.values(), *(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in others)]
    )
    return classmethod(from_pretrained)


def _order_of_classes(checkpoint, given):
    """For each of the given names the place of its class among those of a checkpoint; a warning says which are renamed.

    Raises: ValueError if only some of them are the checkpoint's, and one of these at another place.
    """
    names = checkpoint.class_names
    if set(given) == set(names):
        return [names.index(name) for name in given]
    for place, name in enumerate(given):
        if name in names and names.index(name) != place:
            raise ValueError(
                f"class_names has {name!r} as class {place}, but the checkpoint was trained with it as class "
                f"{names.index(name)} of {', '.join(names)}: give all names in that order, or leave class_names out. "
                f"{NEW_HEAD}"
            )
    renamed = [
        f"{old!r} is now {new!r}"
        for place, (old, new) in enumerate(zip(names, given, strict=True))
        if old not in (new, str(place), f"LABEL_{place}")
    ]
    if renamed:
        warn_user(
            f"{checkpoint.source.path}: class_names gives trained classes other names: {', '.join(renamed)}. The head "
            f"answers as before. To keep its names, leave class_names out. {NEW_HEAD}"
        )
    return list(range(len(names)))


def load_model(cls, checkpoint, report=False, except_for=(), dtype=None, rematerialize=False, **arguments):
    """Builds a model of the class over the checkpoint's encoder and loads its weights, except those of `except_for`."""
    if "tokenizer" not in arguments:
        arguments["tokenizer"] = checkpoint.tokenizer
    except_for = except_for if is_for(cls, checkpoint) else (*except_for, "classifier/")
    if checkpoint.task in HEADS_NAMED_CLASSIFIER:
        except_for = (*except_for, "span_head/")
    stored = checkpoint.arguments_of(cls)
    if "classifier/" in except_for:
        stored.pop("multi_label", None)  # of the head that is replaced
    arguments = {"sequence_length": checkpoint.sequence_length, **stored, **arguments}

    def build():
        return cls(build_encoder(checkpoint.config, dtype=dtype, rematerialize=rematerialize), **arguments)

    return build_filled(build, checkpoint, except_for, report)


def is_for(cls, checkpoint):
    """Whether a checkpoint's classifier, if it has one, was trained as the head of such a model.

    Hugging Face calls the heads of four kinds of model `classifier`, in some families of five; transformers loads one
    in place of another.
    """
    task = checkpoints.huggingface.TASKS[checkpoints.huggingface.task_kind(cls)]
    is_other = checkpoint.task in OTHER_HEADS and checkpoint.task != task
    return not is_other and (checkpoint.class_names is not None) == issubclass(cls, ClassesMixin)


def check_has_four_layers(encoder):
    """Raises ValueError if the last four hidden states would be, in part, embeddings."""
    if (depth := len(encoder.hidden_states()) - 1) < 4:
        raise ValueError(f"The last four layers are asked for, but the encoder has {depth}.")


def checked_sequence_length(sequence_length, config):
    """`sequence_length`, where None means the encoder's max_length. Raises ValueError if it is larger."""
    if sequence_length is None:
        return config.max_length
    if sequence_length > config.max_length:
        raise ValueError(f"sequence_length {sequence_length} is above the encoder's max_length {config.max_length}.")
    return operator.index(sequence_length)


def check_tokenizer_fits(tokenizer, encoder):
    """Raises ValueError if the tokenizer can give ids that the encoder's embedding does not have, or has another
    padding token than the one from which the encoder counts positions, or another separator than it knows."""
    if tokenizer is None:
        return
    config = encoder.config
    if tokenizer.vocabulary_size > config.vocabulary_size:
        raise ValueError(
            f"The tokenizer has {tokenizer.vocabulary_size} words, but the encoder's embedding has "
            f"{config.vocabulary_size}: they do not belong together."
        )
    # Positions are counted from pad_id, and sep_id tells the texts of a row apart.
    needed = {"pad_id": config.num_positions != config.max_length, "sep_id": hasattr(config, "sep_id")}
    for name in (name for name, is_needed in needed.items() if is_needed):
        if getattr(tokenizer, name) != getattr(config, name):
            raise ValueError(
                f"The tokenizer's {name} is {getattr(tokenizer, name)}, but the configuration's is "
                f"{getattr(config, name)}: build the encoder with {name}={getattr(tokenizer, name)}."
            )


def checked_class_names(class_names, num_classes, whose="class_names"):
    """`class_names` as a list of str, where None means "0", "1", ...

    Raises: ValueError unless they are num_classes different names in an order, which a set of strings has not: it
        differs from process to process.
    """
    names = [str(name) for name in (range(num_classes) if class_names is None else class_names)]
    if isinstance(class_names, str | set | frozenset) or len(names) != num_classes or len(set(names)) < len(names):
        raise ValueError(f"{whose} has to be a list of {num_classes} different names, not {class_names!r}.")
    return names


def head_dense(encoder, units, name):
    """The dense layer of a head, float32, initialised like BERT's other kernels."""
    return Dense(
        units,
        kernel_initializer=kernel_initializer(encoder.config),
        dtype="float32",
        name=name,
    )


def head_dropout(encoder, rate, name):
    """Dropout before a head's dense layer; None means the rate that the family has before classes of texts."""
    rate = encoder.config.classifier_dropout_rate if rate is None else rate
    return Dropout(float(rate), dtype=encoder.dtype_policy, name=name)
