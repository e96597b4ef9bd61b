"""Vocabularies: read, checked, written, and learned from text."""

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from tokenizers import Tokenizer, models, trainers

from keras_bert_impl.tokenizers import google_pipeline

# [PAD] comes first because padding is zeros. Google's vocabularies have the others from 100 to 103.
SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")

# Characters kept as pieces, the most frequent first: words with others become [UNK]. Google's uncased vocabulary
# holds 997 single characters.
ALPHABET_SIZE = 1000


def read_vocabulary(path: str | Path) -> list[str]:
    """The tokens of a vocab.txt, one a line; a token's id is its line number, counted from 0.

    A path that ends in .json is a tokenizer.json of the `tokenizers` library.

    Raises: FileNotFoundError; ValueError as `check_vocabulary`.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not there. A vocabulary is a text file with one token a line.")
    if path.suffix == ".json":
        ids = json.loads(path.read_text(encoding="utf-8"))["model"]["vocab"]
        tokens = sorted(ids, key=ids.get)
    else:
        # Split at line ends only: str.splitlines() would split at U+2028, which may be a token.
        tokens = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    check_vocabulary(tokens, source=str(path))
    return tokens


def check_vocabulary(tokens: Sequence[str], source: str) -> None:
    """Raises: ValueError naming `source` and line if a token is empty, repeated, or a control token is missing."""
    lines: dict[str, int] = {}
    for line, token in enumerate(tokens, start=1):
        if not token:
            raise ValueError(f"{source} line {line} is empty. Each line is a token; remove the line.")
        if token in lines:
            raise ValueError(
                f"{source} line {line}: {token!r} stands on line {lines[token]} already. A token has one id; "
                "rename one of them, e.g. to [unused1]."
            )
        lines[token] = line
    for token in SPECIAL_TOKENS:
        if token not in lines:
            raise ValueError(
                f"{source} has no {token}. BERT needs {' '.join(SPECIAL_TOKENS)}: is this a BERT vocabulary? "
                f"Otherwise put {token} in place of an entry that is not used."
            )


def write_vocabulary(path: str | Path, tokens: Sequence[str]) -> None:
    """Writes one token a line; whoever reads `path` meanwhile sees the old file or the new, never a part."""
    check_vocabulary(tokens, source=str(path))
    partial = Path(f"{path}.partial")
    partial.write_text("".join(f"{token}\n" for token in tokens), encoding="utf-8", newline="\n")
    os.replace(partial, path)


def learn_vocabulary(texts: Iterable[str], vocabulary_size: int, lowercase: bool = True) -> list[str]:
    """Learns WordPiece tokens from text by merging frequent pairs; equal texts give equal tokens.

    Google never published how it learned its vocabulary. This is the `tokenizers` library's trainer: byte-pair
    merges by frequency, of pieces that carry "##" inside a word.

    Args:
        texts: lines, paragraphs or documents; read once.
        vocabulary_size: tokens wanted, the five of SPECIAL_TOKENS among them. Little text gives fewer.
        lowercase: as the tokenizer that shall use the vocabulary.

    Returns: the tokens in order of their ids, SPECIAL_TOKENS first.
    Raises: ValueError if there is no word in `texts`, or the size leaves no room for words.
    """
    if vocabulary_size <= len(SPECIAL_TOKENS):
        raise ValueError(f"vocabulary_size {vocabulary_size} leaves no room beside {' '.join(SPECIAL_TOKENS)}.")
    learner = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    learner.normalizer = google_pipeline.plain_normalizer(lowercase)
    learner.pre_tokenizer = google_pipeline.exact_pre_tokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocabulary_size,
        special_tokens=list(SPECIAL_TOKENS),
        limit_alphabet=min(ALPHABET_SIZE, vocabulary_size - len(SPECIAL_TOKENS)),
        show_progress=False,
    )
    learner.train_from_iterator(_normalized(texts, lowercase), trainer)
    ids = learner.get_vocab()
    if len(ids) == len(SPECIAL_TOKENS):
        raise ValueError("texts hold no words to learn from: is the file empty, or the iterator used up?")
    return sorted(ids, key=ids.get)


def _normalized(texts: Iterable[str], lowercase: bool) -> Iterable[str]:
    exact = google_pipeline.exact_normalizer(lowercase)
    for text in texts:
        yield text if google_pipeline.is_plain(text) else exact.normalize_str(text)
