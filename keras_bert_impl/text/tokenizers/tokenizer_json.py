"""Reads tokenizer.json of the `tokenizers` library, checks that its steps are those of an algorithm, and writes it."""

import functools
from pathlib import Path

from keras_bert_impl.json_files import read_json, read_json_if_there, read_once

# [PAD] comes first because padding is zeros. Google's vocabularies have the others at ids 100 to 103.
SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
# The settings of each step that give the same pieces as Google's code. The limit on the length of a word is not among
# them: the library's default is 100 characters, Google's is 200, and this package always uses 200.
MODEL = {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##"}
NORMALIZER = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True}
PRE_TOKENIZER = {"type": "BertPreTokenizer"}


class VocabularyFiles:
    """The files of a tokenizer in a directory, each read at most once however many kinds of tokenizers ask for it.

    Properties raise ValueError if a file is not valid JSON.
    """

    def __init__(self, directory: str | Path):
        self.directory = Path(directory)

    def __contains__(self, name: str) -> bool:
        return (self.directory / name).is_file()

    @functools.cached_property
    def _steps(self):
        """The content of tokenizer.json, of which `model` is a dict."""
        content = read_json_if_there(self.directory / "tokenizer.json")
        return content if isinstance(content.get("model"), dict) else {**content, "model": {}}

    @property
    def algorithm(self) -> str | None:
        """That of tokenizer.json: "WordPiece", "BPE", "Unigram"; None if there is no such file or it does not say."""
        return self._steps["model"].get("type")

    @functools.cached_property
    def tokens(self) -> set[str]:
        """The tokens of tokenizer.json, whatever their ids; empty if its vocabulary is not by token."""
        words = self._steps["model"].get("vocab")
        return {*(words if isinstance(words, dict) else ()), *added_tokens(self._steps)}

    @property
    def first_pieces(self) -> list[str]:
        """The first two pieces of tokenizer.json if its algorithm is Unigram, as that of SentencePiece."""
        pieces = self._steps["model"].get("vocab") if self.algorithm == "Unigram" else None
        return [piece[0] for piece in pieces[:2] if piece] if isinstance(pieces, list) else []

    @functools.cached_property
    def lines(self) -> set[str]:
        """The lines of vocab.txt, which must exist."""
        return set(read_lines(self.directory / "vocab.txt"))

    @functools.cached_property
    def words(self) -> set[str]:
        """The tokens of vocab.json, which must exist."""
        return set(read_json(self.directory / "vocab.json"))


@read_once
def read_lines(path: Path) -> list[str]:
    """The tokens of a vocab.txt, each in a line of its own."""
    # Split at line ends only: str.splitlines() would split at U+2028, which may be a token.
    lines = path.read_text(encoding="utf-8-sig").removesuffix("\n").split("\n")
    # Spaces at their ends are none of the tokens; a line of spaces is a token, though.
    return [line.rstrip(" \t") or line for line in lines]


def read_tokens(path: Path) -> list[str]:
    """The tokens of a tokenizer.json in the order of their ids.

    Raises: ValueError if an id is missing or given twice, or the file does not hold a WordPiece vocabulary.
    """
    content = read_json(path)
    model = content.get("model") or {}
    check_step(path, "model", model, MODEL)
    return tokens_by_id(path, model.get("vocab"), content)


def tokens_by_id(path: Path, ids: object, content: dict) -> list[str]:
    """The tokens of `model.vocab` and of `added_tokens` of a tokenizer.json in the order of their ids; errors as
    `read_tokens`."""
    ids = dict(ids)  # what is read once must not be changed
    # Control tokens may be listed in added_tokens only; model.vocab then has gaps at their ids.
    for token, index in added_tokens(content).items():
        if ids.setdefault(token, index) != index:
            raise ValueError(f"{path}: {token} has the id {ids[token]} in model.vocab, {index} in added_tokens.")
    tokens = sorted(ids, key=ids.get)
    for place, token in enumerate(tokens):
        if ids[token] != place:
            what = f"id {place} is missing" if ids[token] > place else f"id {ids[token]} is given twice"
            raise ValueError(
                f"{path}: {what}, at the token {token!r}. Ids number the rows of the embedding, so they must be "
                "0, 1, 2, ... without gaps: fill a gap with a token such as [unused1]."
            )
    return tokens


def read_wordpiece(path: Path) -> tuple[list[str], bool]:
    """The tokens of a tokenizer.json, as `read_tokens`, and whether its normalizer lower-cases.

    Raises: ValueError if the steps before the model are not Google's and would give other pieces.
    """
    tokens, content = read_tokens(path), read_json(path)
    check_step(path, "pre_tokenizer", content.get("pre_tokenizer") or {}, PRE_TOKENIZER)
    normalizer = content.get("normalizer") or {}
    if normalizer.get("type") == "Sequence" and len(normalizer.get("normalizers") or []) == 1:
        normalizer = normalizer["normalizers"][0]
    lowercase = bool(normalizer.get("lowercase", True))
    # Google's tokenizer strips accents exactly when it lower-cases.
    strips = {} if normalizer.get("strip_accents") is None else {"strip_accents": lowercase}
    check_step(path, "normalizer", normalizer, {**NORMALIZER, **strips})
    return tokens, lowercase


def check_step(path, step, found, expected, whose="Google's"):
    """Raises ValueError if a setting of a step differs from the expected one; one that is missing is accepted, but for
    the type of a step before the model."""
    for name, value in expected.items():
        default = None if name == "type" and step != "model" else value
        if (found.get(name, default) or None) != (value or None):
            raise ValueError(
                f"{path}: {name} of the {step} is {found.get(name)!r}, expected {value!r}. This library uses {whose} "
                "algorithm, which would give other ids."
            )


def agreed(directory, what, name, of_steps, of_file):
    """What tokenizer.json and the file `name` say of the same thing, whichever says it.

    Raises: ValueError if they differ, since programs differ in which they follow.
    """
    if None not in (of_steps, of_file) and of_steps != of_file:
        raise ValueError(
            f"{directory}: {name} and tokenizer.json have different {what}, and programs differ in which file they "
            "read. Correct one of the files, or remove the one that does not belong to the model."
        )
    return of_file if of_steps is None else of_steps


def added_tokens(content):
    """The ids of the tokens in added_tokens, by token."""
    return {str(token["content"]): token["id"] for token in content.get("added_tokens") or []}


def write_portable_file(tokenizer, path: str | Path, sequence_length: int, masks=False, stride=None) -> None:
    """Writes a tokenizer.json with which the `tokenizers` library alone gives the ids of our tokenizer, in any language
    that it has; it adds control tokens, cuts rows, and pads them to the longest of a batch.

    A cut pair can have one token less of its first text and one more of its second than here, if both have to be cut:
    the library and Google's code divide an odd number of tokens differently.

    Args:
        tokenizer: a Tokenizer.
        path: the file.
        sequence_length: tokens of the longest row.
        masks: whether the name of the mask token, "[MASK]" or "<mask>", in a text is that token.
        stride: tokens that two windows over a long second text have in common; the library returns the further windows
            as `overflowing`. None cuts the longer text.
    """
    portable = tokenizer.pipeline(masks)
    portable.enable_padding(pad_id=tokenizer.pad_id, pad_token=tokenizer.id_to_token(tokenizer.pad_id))
    if stride is None:
        portable.enable_truncation(sequence_length, strategy="longest_first")
    else:
        portable.enable_truncation(sequence_length, stride=stride, strategy="only_second")
    portable.save(str(path), pretty=False)
