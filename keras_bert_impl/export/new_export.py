"""What every export begins and ends with: checks before anything is written, and a directory that is replaced when
everything is."""

import contextlib
import pathlib
import tempfile

from keras_bert_impl import features
from keras_bert_impl.export.formats import FORMATS
from keras_bert_impl.export.handover import write_on
from keras_bert_impl.export.runtimes import require
from keras_bert_impl.models.pretrained import check_tokenizer_fits
from keras_bert_impl.models.task_model import checked_sequence_length


@contextlib.contextmanager
def new_export(name, model, directory, tokenizer, sequence_length, overwrite):
    """After all checks, the directory with a model that is written in a format, which replaces `directory` at the end,
    the tokenizer, and the length of the longest row, where None means the model's own."""
    form = FORMATS[name]
    check_model(model)
    tokenizer, sequence_length = checked_text_settings(model, tokenizer, sequence_length)
    check_destination(directory, form.main_file, overwrite)
    require(form.title, form.extra, form.packages)
    with replaced_when_whole(directory) as target:
        write_on(*form.writer, model, tokenizer, sequence_length, target)
        if form.convert is not None:
            form.convert(target)
            (target / FORMATS["onnx"].main_file).unlink()
        yield target, tokenizer, sequence_length


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


def check_destination(directory, main_file, overwrite):
    """Raises ValueError if there is something in the directory, unless it is an export with this main file that is to
    be replaced."""
    directory = pathlib.Path(directory)
    if not directory.exists() or (directory.is_dir() and not any(directory.iterdir())):
        return
    if not overwrite or not (directory / main_file).is_file():
        raise ValueError(
            f"{directory} exists: name another directory, remove it, or, if it holds {main_file}, pass overwrite=True."
        )


@contextlib.contextmanager
def replaced_when_whole(directory):
    """Yields a path next to `directory` to write to, which replaces `directory` unless an exception is raised."""
    directory = pathlib.Path(directory).absolute()
    directory.parent.mkdir(parents=True, exist_ok=True)
    # Next to it and hence on the same disk: only there a rename happens completely or not at all.
    with tempfile.TemporaryDirectory(prefix=f".{directory.name}.", dir=directory.parent) as beside:
        written, replaced = pathlib.Path(beside, "written"), pathlib.Path(beside, "replaced")
        yield written
        if directory.exists():
            directory.rename(replaced)
        try:
            written.rename(directory)
        except OSError:
            if replaced.exists():
                replaced.rename(directory)
            raise
