"""Turns text into token ids and character offsets, without TensorFlow; which tokenizer a directory or a file has."""

from pathlib import Path

from keras_bert_impl.text.tokenizers.byte_pair_tokenizer import BytePairTokenizer, DebertaTokenizer
from keras_bert_impl.text.tokenizers.byte_pair_vocabulary import learn_byte_pairs
from keras_bert_impl.text.tokenizers.eurobert_tokenizer import EuroBertTokenizer
from keras_bert_impl.text.tokenizers.modernbert_tokenizer import MmBertTokenizer, ModernBertTokenizer
from keras_bert_impl.text.tokenizers.rows import RowTemplate
from keras_bert_impl.text.tokenizers.sentence_piece_model import learn_sentence_pieces
from keras_bert_impl.text.tokenizers.sentence_piece_tokenizer import (
    AlbertTokenizer,
    BigBirdTokenizer,
    CamembertTokenizer,
    DebertaV2Tokenizer,
    XLMRobertaTokenizer,
    XLNetTokenizer,
)
from keras_bert_impl.text.tokenizers.tokenizer import Tokenizer
from keras_bert_impl.text.tokenizers.tokenizer_json import VocabularyFiles
from keras_bert_impl.text.tokenizers.vocabulary import (
    OTHER_TOKENIZER,
    learn_vocabulary,
    read_vocabulary,
    write_vocabulary,
)
from keras_bert_impl.text.tokenizers.wordpiece_tokenizer import MPNetTokenizer, WordPieceTokenizer

__all__ = [
    "AlbertTokenizer",
    "BigBirdTokenizer",
    "BytePairTokenizer",
    "CamembertTokenizer",
    "DebertaTokenizer",
    "DebertaV2Tokenizer",
    "EuroBertTokenizer",
    "MPNetTokenizer",
    "MmBertTokenizer",
    "ModernBertTokenizer",
    "RowTemplate",
    "Tokenizer",
    "WordPieceTokenizer",
    "XLMRobertaTokenizer",
    "XLNetTokenizer",
    "kind_in",
    "learn_byte_pairs",
    "learn_sentence_pieces",
    "learn_vocabulary",
    "open_tokenizer",
    "read_vocabulary",
    "tokenizer_from_config",
    "tokenizer_to_config",
    "write_vocabulary",
]

ALL = (
    *(WordPieceTokenizer, MPNetTokenizer, BytePairTokenizer, ModernBertTokenizer, MmBertTokenizer),
    *(EuroBertTokenizer, CamembertTokenizer),
    *(DebertaTokenizer, AlbertTokenizer, XLMRobertaTokenizer, DebertaV2Tokenizer),
    *(XLNetTokenizer, BigBirdTokenizer),
)
KINDS: dict[str, type[Tokenizer]] = {kind.kind: kind for kind in ALL}
# Every file of any tokenizer's vocabulary that can lie in a directory.
VOCABULARY_FILES = tuple(dict.fromkeys(name for kind in ALL for name in kind.files if name != "tokenizer_config.json"))


def tokenizer_files(directory: str | Path) -> list[str]:
    """The names of the files of a tokenizer that are in a directory."""
    return [name for name in (*VOCABULARY_FILES, "tokenizer_config.json") if (Path(directory) / name).is_file()]


def kind_in(directory: str | Path) -> type[Tokenizer] | None:
    """Returns the class of the tokenizer whose vocabulary a directory holds; None if it holds none.

    Raises: ValueError for an unknown algorithm, or if there are several vocabularies.
    """
    directory = Path(directory)
    if (directory / "bpe.codes").is_file():  # beside a vocab.txt that is not WordPiece's
        raise ValueError(
            f"{directory}: bpe.codes, the tokenizer of BERTweet and PhoBERT, is unknown. {OTHER_TOKENIZER}"
        )
    files = VocabularyFiles(directory)
    found = [kind for kind in KINDS.values() if kind.is_in(files)]
    if len(found) > 1:
        names = [name for name in VOCABULARY_FILES if name in files]
        raise ValueError(
            f"{directory} holds the vocabularies of several tokenizers ({', '.join(names)}): remove those that do not "
            "belong to the model."
        )
    if not found and "tokenizer.json" in files:
        raise ValueError(
            f"{directory / 'tokenizer.json'} has an algorithm that is not known here: none of {', '.join(KINDS)}."
        )
    return found[0] if found else None


def open_tokenizer(directory: str | Path) -> Tokenizer:
    """Opens the tokenizer of a directory, whatever its algorithm.

    Args:
        directory (str or pathlib.Path): a directory with the files of a tokenizer, such as a checkpoint.

    Returns: a Tokenizer.
    Raises: FileNotFoundError if the directory holds none; ValueError if its files are damaged, or hold several.

    Example:
        >>> directory = kbi.checkpoints.local_directory("small_english")
        >>> kbi.tokenizers.open_tokenizer(directory).encode("Unbelievable!").tokens
        ['[CLS]', 'unb', '##el', '##ie', '##v', '##able', '!', '[SEP]']
    """
    kind = kind_in(directory)
    if kind is None:
        raise FileNotFoundError(f"{directory} holds no vocabulary: none of {', '.join(VOCABULARY_FILES)}.")
    return kind.from_pretrained(directory)


def tokenizer_to_config(tokenizer: Tokenizer | None) -> dict | None:
    """Returns a tokenizer as plain values, for a `.keras` file; None stays None."""
    return tokenizer and {"kind": tokenizer.kind, **tokenizer.get_config()}


def tokenizer_from_config(config: dict | None) -> Tokenizer | None:
    """Returns the tokenizer that `tokenizer_to_config` described. Descriptions without a kind, of earlier files, are
    WordPiece.
    """
    if config is None:
        return None
    arguments = dict(config)
    return KINDS[arguments.pop("kind", WordPieceTokenizer.kind)].from_config(arguments)
