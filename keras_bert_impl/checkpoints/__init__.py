"""Checkpoints of every format, told apart by their files: what `from_pretrained` and `save_pretrained` call."""

from keras_bert_impl.checkpoints import huggingface, keras_hub
from keras_bert_impl.checkpoints.growing import grow, keep_words
from keras_bert_impl.checkpoints.hub import local_directory, published_table
from keras_bert_impl.checkpoints.tables import Checkpoint, check_encoder, load
from keras_bert_impl.checkpoints.whole_directory import finish

__all__ = [
    "format_of",
    "grow",
    "huggingface",
    "keep_words",
    "load",
    "local_directory",
    "open_checkpoint",
    "published_table",
]


def open_checkpoint(path):
    """The checkpoint of a directory of any format, of "hf://owner/name" or of a published name: `tables.Checkpoint`.

    One that is open already is given back, so that `from_pretrained` takes what `grow` made.

    Raises: ValueError saying what is wrong with it, or what was tried to reach it.
    """
    if isinstance(path, Checkpoint):
        return path
    directory = local_directory(path)
    finish(directory)  # a save that ended between its last two steps
    checkpoint = format_of(directory).open_checkpoint(directory)
    check_encoder(checkpoint)
    return checkpoint


def format_of(directory):
    """The module that reads and writes the format of the checkpoint in `directory`."""
    if (directory / "bert_config.json").is_file():
        # Here, since it needs TensorFlow, which only whoever has such a checkpoint must install.
        from keras_bert_impl.checkpoints import google

        return google
    if keras_hub.is_here(directory):
        return keras_hub
    return huggingface
