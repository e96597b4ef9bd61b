"""The tokenizers of `keras-bert prepare-data`: a vocabulary that is given, or one learned from the corpus."""

import pathlib

from keras_bert_impl.text.tokenizers import (
    KINDS,
    AlbertTokenizer,
    BigBirdTokenizer,
    BytePairTokenizer,
    DebertaV2Tokenizer,
    ModernBertTokenizer,
    MPNetTokenizer,
    WordPieceTokenizer,
    XLMRobertaTokenizer,
    XLNetTokenizer,
    learn_byte_pairs,
    learn_sentence_pieces,
    learn_vocabulary,
    open_tokenizer,
)
from keras_bert_impl.text.tokenizers.byte_pair_vocabulary import MODERNBERT
from keras_bert_impl.text.tokenizers.modernbert_tokenizer import RUNS_OF_SPACES
from keras_bert_impl.text.tokenizers.sentence_piece_model import BIGBIRD, XLNET
from keras_bert_impl.text.tokenizers.sentence_piece_tokenizer import prepare
from keras_bert_impl.text.tokenizers.vocabulary import is_cased

LOWERCASED = ("wordpiece", "mpnet_wordpiece", "sentence_piece")  # unless --lowercase says so, as the published models


def open_vocabulary(kind, path, lowercase):
    """The tokenizer of a given vocabulary.

    Args:
        kind: a key of KINDS.
        path: a directory that holds a tokenizer's files; or a vocab.txt; or a vocab.json, beside which the merges.txt
            lies; or a tokenizer.json; or a spiece.model; or what `checkpoints.local_directory` takes.
        lowercase: whether text has to be lower-cased.

    Raises: ValueError if the vocabulary is of another kind or case; errors of the tokenizers.
    """
    path = pathlib.Path(path)
    if not path.is_file():
        from keras_bert_impl.checkpoints import local_directory  # only now, because it imports Keras

        path = local_directory(path)
    if path.is_dir():
        tokenizer = open_tokenizer(path)
    else:
        tokenizer = OPENERS[kind](path, lowercase) if kind in OPENERS else KINDS[kind].from_pretrained(path.parent)
    if (tokenizer.kind, tokenizer.lowercase) != (kind, lowercase):
        raise ValueError(
            f"{path} holds another tokenizer: give --tokenizer {tokenizer.kind} --lowercase "
            f"{str(tokenizer.lowercase).lower()}."
        )
    return tokenizer


def _wordpieces_of(path, lowercase):
    tokenizer = WordPieceTokenizer(path, lowercase)
    if lowercase and is_cased(tokenizer.vocabulary):
        raise ValueError(
            f"{path} holds words with upper-case letters, which would not be found in lower-cased text: give "
            "--lowercase false."
        )
    return tokenizer


def _byte_pairs_of(path, lowercase):
    if path.name == "tokenizer.json":
        return BytePairTokenizer.from_pretrained(path.parent)
    return BytePairTokenizer(path, path.with_name(path.name.removesuffix("vocab.json") + "merges.txt"))


OPENERS = {
    "wordpiece": _wordpieces_of,
    "byte_pair": _byte_pairs_of,
    "sentence_piece": lambda path, lowercase: AlbertTokenizer(path, lowercase=lowercase, keep_accents=not lowercase),
    "xlm_sentence_piece": lambda path, lowercase: XLMRobertaTokenizer(path),
    "deberta_sentence_piece": lambda path, lowercase: DebertaV2Tokenizer(path),
    "xlnet_sentence_piece": XLNetTokenizer,
    "bigbird_sentence_piece": lambda path, lowercase: BigBirdTokenizer(path),
    "mpnet_wordpiece": MPNetTokenizer,
}


def vocabulary_in(kind, directory):
    """The tokenizer that an interrupted run has written to its directory; None if a file of it is missing."""
    found = KINDS[kind]
    if not all((pathlib.Path(directory) / name).is_file() for name in found.files):
        return None
    return found.from_pretrained(directory)


def _learn_byte_pairs(texts, vocabulary_size, lowercase):
    # The first word of a text gets the same ids as anywhere else: a small corpus would not teach others.
    return BytePairTokenizer(*learn_byte_pairs(texts, vocabulary_size), add_prefix_space=True)


def _learn_modernbert_byte_pairs(texts, vocabulary_size, lowercase):
    vocabulary, merges = learn_byte_pairs(texts, vocabulary_size, MODERNBERT, RUNS_OF_SPACES)
    return ModernBertTokenizer(vocabulary, merges, add_prefix_space=True, added_tokens=RUNS_OF_SPACES)


def _learn_sentence_pieces(texts, vocabulary_size, lowercase):
    # Accents are dropped where text is lower-cased, as for WordPiece.
    arguments = {"lowercase": lowercase, "keep_accents": not lowercase}
    model = learn_sentence_pieces(texts, vocabulary_size, lambda text: prepare(text, **arguments)[0])
    return AlbertTokenizer(model, **arguments)


def _learn_xlnet_sentence_pieces(texts, vocabulary_size, lowercase):
    model = learn_sentence_pieces(texts, vocabulary_size, lambda text: prepare(text, lowercase, False)[0], XLNET)
    return XLNetTokenizer(model, lowercase)


LEARNERS = {
    "wordpiece": lambda texts, size, lowercase: WordPieceTokenizer(
        learn_vocabulary(texts, size, lowercase=lowercase), lowercase=lowercase
    ),
    "byte_pair": _learn_byte_pairs,
    "modernbert_byte_pair": _learn_modernbert_byte_pairs,
    "sentence_piece": _learn_sentence_pieces,
    "xlnet_sentence_piece": _learn_xlnet_sentence_pieces,
    "bigbird_sentence_piece": lambda texts, size, lowercase: BigBirdTokenizer(
        learn_sentence_pieces(texts, size, not_learned=BIGBIRD)
    ),
}
