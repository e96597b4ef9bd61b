"""What a misspelt name was meant to be, or one that another library has for the same."""

import difflib
import inspect

# Names of transformers, KerasHub and sentence-transformers, and ours for the same, of which a function has one.
MEANINGS = {
    "attention_probs_dropout_prob": ("attention_dropout_rate",),
    "backbone": ("encoder",),
    "do_lower_case": ("lowercase",),
    "gradient_checkpointing": ("rematerialize",),
    "hidden_act": ("activation",),
    "hidden_dim": ("hidden_size",),
    "hidden_dropout_prob": ("hidden_dropout_rate",),
    "id2label": ("class_names",),
    "intermediate_dim": ("intermediate_size",),
    "k": ("top_k",),
    "label2id": ("class_names",),
    "labels": ("class_names", "y"),
    "layer_norm_eps": ("layer_norm_epsilon",),
    "max_length": ("sequence_length",),
    "max_position_embeddings": ("max_length",),
    "max_seq_length": ("sequence_length",),
    "model_max_length": ("sequence_length",),
    "model_name_or_path": ("path", "model"),
    "num_attention_heads": ("num_heads",),
    "num_hidden_layers": ("num_layers",),
    "num_labels": ("num_classes",),
    "num_train_epochs": ("epochs",),
    "per_device_train_batch_size": ("batch_size",),
    "preset": ("path",),
    "torch_dtype": ("dtype",),
    "type_vocab_size": ("num_segments",),
    "vocab_file": ("vocabulary",),
    "vocab_size": ("vocabulary_size",),
}


def did_you_mean(name, known):
    """A question for the end of a message, with the known name that means the same, or is most like `name`; empty if
    none does or is."""
    same = [one for one in MEANINGS.get(str(name), ()) if one in known]
    close = same or difflib.get_close_matches(str(name), list(known), 1)
    return f" Did you mean {close[0]}?" if close else ""


def refuse_unknown(options, known, called):
    """Raises TypeError, as Python does, for the first argument that a function does not know, with the one that was
    meant.

    Args:
        options: the arguments that were given by name.
        known: the names that there are.
        called: the function's name.
    """
    for name in options:
        if name not in known:
            raise TypeError(f"{called}() got an unexpected keyword argument {name!r}.{did_you_mean(name, known)}")


class KnownArguments:
    """Base of classes whose constructors tell a misspelt argument from the one that was meant. It is told before the
    constructor runs, which stays as it is, with its signature."""

    def __new__(cls, *arguments, **options):
        refuse_unknown(options, cls.arguments_of_constructor(), cls.__name__)
        make = super().__new__
        return make(cls) if make is object.__new__ else make(cls, *arguments, **options)

    @classmethod
    def arguments_of_constructor(cls):
        """The constructor's parameters by their names, and those of the next one if it passes arguments on by `**`."""
        found = {}
        for parent in cls.__mro__:
            if "__init__" in vars(parent):
                parameters = inspect.signature(vars(parent)["__init__"]).parameters.values()
                named = (one for one in parameters if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD))
                found = {**{one.name: one for one in named if one.name != "self"}, **found}
                if not any(one.kind is one.VAR_KEYWORD for one in parameters):
                    break
        return found
