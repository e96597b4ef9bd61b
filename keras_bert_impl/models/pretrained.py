"""Opening a checkpoint as a model over an encoder."""

import functools
import inspect
import pathlib
import re

import keras

from keras_bert_impl.checkpoints import build_filled
from keras_bert_impl.encoders import build_encoder
from keras_bert_impl.user_warnings import warn_user

HEADS_NAMED_CLASSIFIER = ("ForSequenceClassification", "ForTokenClassification", "ForMultipleChoice")
OTHER_HEADS = (*HEADS_NAMED_CLASSIFIER, "ForQuestionAnswering")  # which is named so, too, in some families
NEW_HEAD = "For a new head, save the encoder alone and open that."
VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
OF_ENCODER = (("dtype", None), ("rematerialize", False))  # arguments of `load_model` that are passed to the encoder


def shows_arguments_of_constructor(cls):
    """Gives a class a `from_pretrained` that shows, in `help` and notebooks, the constructor's arguments."""
    inherited = inspect.unwrap(cls.from_pretrained.__func__)
    shown = dict(inspect.signature(inherited).parameters)
    if "__init__" not in vars(cls) or shown.pop("arguments", None) is None:
        return

    @functools.wraps(inherited)
    def from_pretrained(cls, *arguments, **options):
        return inherited(cls, *arguments, **options)

    constructor = inspect.signature(cls.__init__).parameters.values()
    others = [one for one in constructor if one.name not in ("self", "encoder", *shown) and one.kind not in VARIABLE]
    others += [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default) for name, default in OF_ENCODER]
    from_pretrained.__signature__ = inspect.Signature(
        [*shown.values(), *(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in others)]
    )
    parents = [kind.from_pretrained.__doc__ or "" for kind in cls.__mro__ if "from_pretrained" in vars(kind)]
    docstring = with_entries(
        inherited.__doc__ or "", [cls.__doc__ or "", *parents], from_pretrained.__signature__.parameters
    )
    from_pretrained.__doc__ = re.sub(r"kbi\.\w+(?=\.from_pretrained)", f"kbi.{cls.__name__}", docstring)
    cls.from_pretrained = classmethod(from_pretrained)


def with_entries(docstring, others, names):
    """A docstring whose `Args` are the entries of these names: its own, or that of the first of the others with one."""
    entries, pattern = {}, re.compile(r"(?<=Args:\n).*?(?=\n\n|\Z)", re.S)
    for text in (*reversed(others), docstring):
        found = pattern.search(inspect.cleandoc(text))
        entries |= {re.match(r" *(\w*)", one)[1]: one for one in re.split(r"\n(?= {4}\S)", found[0] if found else "")}
    section = "\n".join(entries[name] for name in names if name in entries)
    return pattern.sub(lambda _: section, inspect.cleandoc(docstring), count=1)


def order_of_classes(checkpoint, given):
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
            f"{checkpoint.source.path}: class_names renames trained classes: {', '.join(renamed)}. The outputs stay "
            f"the same. To keep the checkpoint's names, leave class_names out. {NEW_HEAD}"
        )
    return list(range(len(names)))


def load_model(cls, checkpoint, report=False, except_for=(), dtype=None, rematerialize=False, **arguments):
    """Builds a model of the class over the checkpoint's encoder and loads its weights, except those of `except_for`."""
    if "tokenizer" not in arguments:
        arguments["tokenizer"] = checkpoint.tokenizer
    except_for = except_for if is_for(cls, checkpoint) else (*except_for, "classifier/")
    if checkpoint.task in HEADS_NAMED_CLASSIFIER:
        except_for = (*except_for, "span_head/")
    stored = checkpoint.arguments_of(cls, arguments)
    if "classifier/" in except_for:
        stored.pop("multi_label", None)  # of the head that is replaced
    arguments = {"sequence_length": checkpoint.sequence_length, **stored, **arguments}

    def build():
        return cls(build_encoder(checkpoint.config, dtype=dtype, rematerialize=rematerialize), **arguments)

    return build_filled(build, checkpoint, except_for, report)


def load_classifier(cls, checkpoint, num_classes, report, **arguments):
    """The classifier of a checkpoint, or a new head over its encoder; see `task_model.ClassesModel.from_pretrained`."""
    if num_classes is None and arguments.get("class_names") is not None:
        num_classes = len(arguments["class_names"])
    names = checkpoint.class_names if is_for(cls, checkpoint) else None
    if names is None and num_classes is None:
        raise ValueError(
            f"{checkpoint.source.path} has no classifier for a {cls.__name__}. To create a new one, pass the names "
            "of its classes, class_names=[...], or their number, num_classes=2."
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


def checked_class_names(class_names, num_classes, whose="class_names"):
    """`class_names` as a list of str, where None means "0", "1", ...

    Raises: ValueError unless they are num_classes different names in an order, which a set of strings has not: it
        differs from process to process.
    """
    names = [str(name) for name in (range(num_classes) if class_names is None else class_names)]
    if isinstance(class_names, str | set | frozenset) or len(names) != num_classes or len(set(names)) < len(names):
        raise ValueError(f"{whose} has to be a list of {num_classes} different names, not {class_names!r}.")
    return names


def is_for(cls, checkpoint):
    """Whether a checkpoint's classifier, if it has one, was trained as the head of such a model.

    Hugging Face calls the heads of four kinds of model `classifier`, in some families of five; transformers loads one
    in place of another.
    """
    is_other = checkpoint.task in OTHER_HEADS and checkpoint.task != cls.counterpart
    return not is_other and (checkpoint.class_names is not None) == ("num_classes" in cls.head_arguments)


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
