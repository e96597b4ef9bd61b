"""Checkpoints of every format, told apart by their files: what `from_pretrained` and `save_pretrained` call."""

from keras_bert_impl.checkpoints import huggingface, keras_hub
from keras_bert_impl.checkpoints.growing import grow
from keras_bert_impl.checkpoints.hub import local_directory, published_table
from keras_bert_impl.checkpoints.tables import Checkpoint, load

__all__ = ["format_of", "grow", "huggingface", "load", "local_directory", "open_checkpoint", "published_table"]


def open_checkpoint(path):
    """The checkpoint of a directory of any format, of "hf://owner/name" or of a published name: `tables.Checkpoint`.

    One that is open already is given back, so that `from_pretrained` takes what `grow` made.

    Raises: ValueError saying what is wrong with it, or what was tried to reach it.
    """
    if isinstance(path, Checkpoint):
        return path
    directory = local_directory(path)
    return format_of(directory).open_checkpoint(directory)


def format_of(directory):
    """The module that reads and writes the format of the checkpoint in `directory`."""
    if (directory / "bert_config.json").is_file():
        # Here, since it needs TensorFlow, which only whoever has such a checkpoint must install.
        from keras_bert_impl.checkpoints import google

        return google
    if keras_hub.is_here(directory):
        return keras_hub
    return huggingface
