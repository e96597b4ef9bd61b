"""Opens and writes checkpoints of every format, for `from_pretrained` and `save_pretrained`."""

from keras_bert_impl.checkpoints import huggingface, keras_hub
from keras_bert_impl.checkpoints.atomic_directory import open_unchanged
from keras_bert_impl.checkpoints.growing import grow, keep_words
from keras_bert_impl.checkpoints.hub import local_directory, published_table
from keras_bert_impl.checkpoints.tensor_tables import Checkpoint, check_encoder, load

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
    """Opens a checkpoint: a directory of any format, "hf://owner/name" or a published name.

    Returns: a `tensor_tables.Checkpoint`. One that is already open is returned as it is, so that `from_pretrained`
        accepts the result of `grow`.

    Raises: ValueError if the checkpoint is damaged or cannot be reached. Reading from it raises ValueError if another
        process has saved to the directory since it was opened: half of the weights would belong to another model.
    """
    if isinstance(path, Checkpoint):
        return path
    checkpoint, check_unchanged = open_unchanged(local_directory(path), _open)
    source, read_tokenizer = checkpoint.source, checkpoint.read_tokenizer

    def unchanged(read, *arguments):
        try:
            return read(*arguments)
        finally:
            check_unchanged()  # after an error, too, since a replaced file would explain it

    return checkpoint._replace(
        source=source._replace(read=lambda name: unchanged(source.read, name)),
        read_tokenizer=lambda: unchanged(read_tokenizer),
    )


def _open(directory):
    checkpoint = format_of(directory).open_checkpoint(directory)
    check_encoder(checkpoint)
    return checkpoint


def format_of(directory):
    """The module that reads and writes the format of the checkpoint in `directory`."""
    if (directory / "bert_config.json").is_file():
        # Imported here because it needs TensorFlow, which only users of this format have to install.
        from keras_bert_impl.checkpoints import google

        return google
    if keras_hub.is_here(directory):
        return keras_hub
    return huggingface
