"""What every export checks before it writes anything."""

import importlib.util

from keras_bert_impl import features
from keras_bert_impl.models.pretrained import check_tokenizer_fits
from keras_bert_impl.models.task_model import checked_sequence_length

ON_WINDOWS = (
    " (tensorflow-text does not exist for Windows: save the model with save_pretrained, and export the checkpoint "
    "under WSL or Linux)"
)


def check_model(model):
    """Raises ValueError if the model is of a kind that cannot be exported, or does what an export cannot do."""
    if not hasattr(model, "asked"):
        raise ValueError(
            "An export can be made of an encoder or a model with one head that answers about texts, not of a "
            f"{type(model).__name__}. A Pretrainer becomes a MaskedLM by save_pretrained and MaskedLM.from_pretrained."
        )
    encoder = getattr(model, "encoder", model)
    if more := [name for name in encoder.input if name not in features.ENCODER_INPUTS]:
        raise ValueError(
            f"The encoder takes {', '.join(more)}, which the rows of an export do not have: open the model without "
            "packed=True, and with global tokens by a rule."
        )


def checked_text_settings(model, tokenizer, sequence_length):
    """The tokenizer and the length of the longest row, where None means the model's own.

    Raises: ValueError if there is no tokenizer, it does not fit the model, or the model takes fewer tokens.
    """
    encoder = getattr(model, "encoder", model)
    tokenizer = tokenizer or getattr(model, "tokenizer", None)
    if tokenizer is None:
        raise ValueError(
            f"An export that takes text needs a tokenizer, and this {type(model).__name__} has none: "
            "pass tokenizer=WordPieceTokenizer('vocab.txt')."
        )
    check_tokenizer_fits(tokenizer, encoder)
    sequence_length = sequence_length or getattr(model, "sequence_length", encoder.config.max_length)
    return tokenizer, checked_sequence_length(sequence_length, encoder.config)


def require(format_name, extra, packages):
    """Raises ImportError that names the packages that are missing and the command that installs them."""
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        remark = ON_WINDOWS if "tensorflow_text" in missing else ""
        raise ImportError(
            f"{format_name} needs {' and '.join(missing)} to be installed: pip install 'keras_bert_impl[{extra}]'"
            f"{remark}."
        )
