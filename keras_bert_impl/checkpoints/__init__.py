"""Opens and writes checkpoints of every format, for `from_pretrained` and `save_pretrained`."""

from keras_bert_impl.checkpoints import huggingface, keras_hub
from keras_bert_impl.checkpoints.atomic_directory import open_unchanged
from keras_bert_impl.checkpoints.growing import grow
from keras_bert_impl.checkpoints.hub import local_directory, published_table, push_to_hub, write_card
from keras_bert_impl.checkpoints.model_card import CardFacts, Figure, facts_of
from keras_bert_impl.checkpoints.tensor_tables import Checkpoint, build_filled, load
from keras_bert_impl.configurations.known_families import build_encoder, family_of
from keras_bert_impl.json_files import reading_once

__all__ = [
    "CardFacts",
    "Figure",
    "build_filled",
    "encoder_from_pretrained",
    "facts_of",
    "format_of",
    "grow",
    "huggingface",
    "load",
    "local_directory",
    "open_checkpoint",
    "published_table",
    "push_to_hub",
    "write_card",
]


def open_checkpoint(path):
    """Opens a checkpoint without building a model: to read its configuration, its tokenizer or its tensors.

    Args:
        path (str or pathlib.Path): a directory of any format (Hugging Face, sentence-transformers, KerasHub, Google's
            TensorFlow 1); "hf://owner/name"; a published name; or a Checkpoint, which is returned as it is.

    Returns: a `Checkpoint`, which every `from_pretrained` accepts as its path. Its weights are those of the files that
        were opened, whatever is saved there later; reading its tokenizer raises ValueError after such a save.
    Raises: ValueError if the checkpoint is damaged or cannot be reached.

    Example:
        >>> checkpoint = kbi.checkpoints.open_checkpoint("small_english")
        >>> checkpoint.config.hidden_size, checkpoint.tokenizer.vocabulary_size
        (256, 8000)
    """
    if isinstance(path, Checkpoint):
        return path
    contents = {}

    def open_files(directory):
        contents.clear()  # of files that a save has replaced meanwhile
        with reading_once(contents):
            return format_of(directory).open_checkpoint(directory)

    checkpoint, check_unchanged = open_unchanged(local_directory(path), open_files)

    def read_tokenizer():
        try:
            with reading_once(contents):
                return checkpoint.read_tokenizer()
        finally:
            contents.clear()  # a tokenizer.json can have a million entries
            check_unchanged()  # after an error, too, since a replaced file would explain it

    return checkpoint._replace(read_tokenizer=read_tokenizer)


def encoder_from_pretrained(path, report=False, encoder_class=None, **arguments):
    """Opens the encoder of a checkpoint of any family: BERT, RoBERTa, DeBERTa, ModernBERT and others.

    The family is read from the checkpoint's config.json. Heads of the checkpoint are left out; a pooler that it does
    not have starts from random weights, and a warning says so.

    Args:
        path (str or pathlib.Path): a checkpoint directory, "hf://owner/name", a published name, or an open Checkpoint.
        report (bool, optional): whether to print the tensors used, left over and newly initialised. Default: False.
        encoder_class (type, optional): class that the encoder has to have, such as BertEncoder. Default: None, any.
        arguments: arguments of the encoder's constructor, such as `dtype`, `return_hidden_states`, `return_attention`,
            `rematerialize` and `packed`; see `BertEncoder`.

    Returns: the encoder, a keras.Model with a dict of arrays as input and as output.
    Raises: ValueError if the checkpoint is damaged, cannot be reached, or is not an encoder_class.

    Example:
        >>> encoder = kbi.encoder_from_pretrained("small_english", return_hidden_states=True)
        >>> type(encoder).__name__, sorted(encoder.output)
        ('BertEncoder', ['hidden_states', 'pooled_output', 'sequence_output'])
    """
    checkpoint = open_checkpoint(path)
    config, needed = checkpoint.config, encoder_class
    if needed is not None and type(config) is not needed.config_class:
        raise ValueError(
            f"{checkpoint.source.path} is a {config.family}, not a {needed.config_class.family}: read it with a "
            f"{family_of(config).encoder_class.__name__}, or with keras_bert_impl.encoder_from_pretrained, which takes "
            "any family."
        )
    build = encoder_class or build_encoder
    return build_filled(lambda: build(config, **arguments), checkpoint, report=report)


def format_of(directory):
    """Returns the module that reads and writes the format of a checkpoint.

    Args:
        directory (pathlib.Path): the directory of the checkpoint.
    """
    if (directory / "bert_config.json").is_file():
        # Imported here because it needs TensorFlow, which only users of this format have to install.
        from keras_bert_impl.checkpoints import google

        return google
    if keras_hub.is_here(directory):
        return keras_hub
    return huggingface
