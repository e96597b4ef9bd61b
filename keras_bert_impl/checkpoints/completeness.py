"""The checks of every save: each weight and each setting of a model can be restored from what is written.

A format is a table of weights and a few files of settings; anything that has no place in them would be lost silently.
Weights are compared with the table before anything is written. Settings are compared with those that are read back
from the written files, so that a setting which is added later is compared, too.
"""

import inspect
import warnings

from keras_bert_impl.distribution import to_numpy
from keras_bert_impl.text.tokenizers import tokenizer_to_config

# Settings that no output of the written model depends on: how new heads are initialised, and how fit() masks texts. The
# id of [PAD] follows from the vocabulary, and the padding mask hides its vector. A table of words that is not tied is a
# weight.
WITHOUT_INFLUENCE = ("initializer_range", "pad_id", "seed", "tie_word_embeddings")
LARGEST_LIST = 4


def check_weights(model, rows, form):
    """Refuses a model with weights that a format has no place for.

    LoRA updates that are zero, as after `merge_lora`, have no influence and need no place.

    Args:
        model: an encoder or one of the models over it.
        rows: the format's table, as in `tensor_tables.Checkpoint`.
        form: the name of the format, for the message.

    Raises: ValueError naming the weights, such as the scales of a quantized model.
    """
    places = {path for path, _, _ in rows} | _idle_updates(model.weights)
    seen, lost = set(), []
    for weight in model.weights:
        # If two weights have the same name, one would overwrite the other.
        if weight.path not in places or weight.path in seen:
            lost.append(weight.path)
        seen.add(weight.path)
    if lost:
        raise ValueError(
            f"{form} cannot store {_listed(lost)} of this {type(model).__name__}: they would be lost. "
            f"{_remedy(model, lost)}"
        )


def check_settings(model, tokenizer, open_written, form):
    """Refuses a model whose settings differ from those that are read back from its written checkpoint.

    Args:
        model: an encoder or one of the models over it.
        tokenizer: the one that was written; None if there is none.
        open_written: function that returns the `tensor_tables.Checkpoint` of what was written.
        form: the name of the format, for the message.

    Raises: ValueError naming each setting, its value, and the value that would be read.
    """
    wanted = _settings_of(model, tokenizer)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about a small vocabulary, already shown when the model was built
        found = _settings_read(open_written(), type(model), tokenizer is not None)
    lost = [
        f"{name} is {_short(value)} and would be read as {_short(found.get(name))}"
        for name, value in wanted.items()
        if name not in WITHOUT_INFLUENCE and value != found.get(name)
    ]
    if lost:
        raise ValueError(
            f"{form} cannot keep every setting of this {type(model).__name__}: {'; '.join(lost)}. Build the model with "
            "the value that would be read, if that is acceptable, or save it with model.save('model.keras')."
        )


def check_is_bert(encoder, form):
    """Raises ValueError for an encoder of another family than BERT, for a format that has only BERT."""
    if encoder.config.model_type != "bert":
        raise ValueError(
            f"{form} does not support {encoder.config.family}: save it with save_pretrained, in Hugging Face's format."
        )


def _idle_updates(weights):
    """The paths of both factors of each LoRA update whose second factor is zero."""
    ends = (("lora_kernel_b", "lora_kernel_a"), ("lora_embeddings_b", "lora_embeddings_a"))
    idle = set()
    for weight in weights:
        for second, first in ends:
            if weight.path.endswith(f"/{second}") and not to_numpy(weight).any():
                idle |= {weight.path, f"{weight.path.removesuffix(second)}{first}"}
    return idle


def _remedy(model, lost):
    if any("/lora_" in path for path in lost):
        return "Add the LoRA updates to the kernels first: model.merge_lora()."
    whole = "Keep everything with model.save('model.keras')"
    of_encoder = {weight.path for weight in getattr(model, "encoder", model).weights}
    return f"{whole}." if of_encoder & set(lost) else f"{whole}, or save model.encoder, without the head."


def _settings_of(model, tokenizer):
    """Every setting of a model by its name, as plain values."""
    config = getattr(model, "encoder", model).config
    arguments = {name: getattr(model, name) for name in getattr(model, "head_arguments", ())}
    # A head without named classes must not be restored as one with them.
    settings = {**config.to_dict(), "class_names": None, **arguments}
    if settings["class_names"] is not None:
        settings["class_names"] = [str(name) for name in settings["class_names"]]
    if tokenizer is not None:
        settings |= tokenizer_to_config(tokenizer)
        if hasattr(model, "sequence_length"):
            settings["sequence_length"] = model.sequence_length
    return settings


def _settings_read(checkpoint, kind, with_tokenizer):
    """The settings of an open checkpoint for a class of models; those that it lacks have the defaults of the
    constructor."""
    names, config = checkpoint.class_names, checkpoint.config
    of_tokens = getattr(kind, "scores_tokens", False)
    settings = {
        **config.to_dict(),
        **{name: _default(kind, name) for name in getattr(kind, "head_arguments", ())},
        "class_names": names,
        "num_classes": names and len(names),
        "dropout_rate": config.token_classifier_dropout_rate if of_tokens else config.classifier_dropout_rate,
        "sequence_length": checkpoint.sequence_length or config.max_length,
        **(checkpoint.arguments_of(kind) if hasattr(kind, "head_arguments") else {}),
    }
    if with_tokenizer:
        tokenizer = checkpoint.tokenizer
        settings |= tokenizer_to_config(tokenizer) or {}
    return settings


def _default(kind, name):
    """The default of a constructor's argument, which a user's own class may pass on to its parent's."""
    signatures = (inspect.signature(parent.__init__).parameters for parent in kind.__mro__)
    return next((found[name].default for found in signatures if name in found), None)


def _listed(names):
    """The first few names, and how many more there are."""
    rest = len(names) - LARGEST_LIST
    return ", ".join(names[:LARGEST_LIST]) + (f" and {rest} more weights" if rest > 0 else "")


def _short(value):
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
