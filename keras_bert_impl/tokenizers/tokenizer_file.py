"""tokenizer.json of the `tokenizers` library: its vocabulary, and whether its steps are those of Google's algorithm."""

import json
from pathlib import Path

# [PAD] comes first because padding is zeros. Google's vocabularies have the others from 100 to 103.
SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
# What a file may say of each step and still give Google's pieces. Words of more than 100 characters, which the
# library gives up by default, are cut to pieces by Google's code up to 200: that is kept.
MODEL = {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##"}
NORMALIZER = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True}
PRE_TOKENIZER = {"type": "BertPreTokenizer"}


def read_tokens(path: Path) -> list[str]:
    """The tokens of a tokenizer.json in the order of their ids.

    Raises: ValueError if an id is missing or given twice, or the file is not that of a WordPiece vocabulary.
    """
    content = _read(path)
    model = content.get("model") or {}
    _check(path, "model", model, MODEL)
    ids = model.get("vocab")
    if not isinstance(ids, dict) or not all(type(index) is int for index in ids.values()):
        raise ValueError(f"{path} has no model.vocab from tokens to ids.")
    # Control tokens may stand beside the vocabulary, in the gaps that they leave there.
    for token, index in _added(content).items():
        if ids.setdefault(token, index) != index:
            raise ValueError(f"{path}: {token} has the id {ids[token]} in model.vocab, {index} in added_tokens.")
    tokens = sorted(ids, key=ids.get)
    for place, token in enumerate(tokens):
        if ids[token] != place:
            what = f"id {place} is missing" if ids[token] > place else f"id {ids[token]} is given twice"
            raise ValueError(
                f"{path}: {what}, at the token {token!r}. Ids are rows of the embedding and must be 0, 1, 2, ... "
                "without gaps: fill a gap with a token such as [unused1]."
            )
    return tokens


def read_lowercase(path: Path) -> bool:
    """Whether the normalizer of a tokenizer.json lower-cases.

    Raises: ValueError if the steps before the model are not Google's: they would give other pieces.
    """
    content = _read(path)
    words = sorted(set(_added(content)) - set(SPECIAL_TOKENS))
    if words:
        raise ValueError(
            f"{path}: added_tokens are looked up in the text as they are, {', '.join(words[:4])} for one of "
            f"{len(words)}. Google's algorithm cuts them to pieces; the ids would be others."
        )
    _check(path, "pre_tokenizer", content.get("pre_tokenizer") or {}, PRE_TOKENIZER)
    normalizer = content.get("normalizer") or {}
    if normalizer.get("type") == "Sequence" and len(normalizer.get("normalizers") or []) == 1:
        normalizer = normalizer["normalizers"][0]
    _check(path, "normalizer", normalizer, NORMALIZER)
    lowercase = bool(normalizer.get("lowercase", True))
    if normalizer.get("strip_accents") not in (None, lowercase):
        raise ValueError(
            f"{path}: the normalizer has strip_accents {normalizer['strip_accents']} with lowercase {lowercase}. "
            "Google's tokenizer strips accents exactly when it lower-cases; the ids would not be those the checkpoint "
            "was trained with."
        )
    return lowercase


def _read(path):
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: not valid JSON ({error}).") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path}: expected a JSON object, found {type(content).__name__}.")
    return content


def _check(path, step, found, expected):
    """Raises ValueError unless a step has the settings expected, or does not say them."""
    if not isinstance(found, dict) or (found.get("type") is None and step != "model"):
        raise ValueError(f"{path} has no {step}; expected {expected['type']}, as BERT's tokenizers have.")
    for name, value in expected.items():
        if found.get(name, value) != value:
            raise ValueError(
                f"{path}: {name} of the {step} is {found[name]!r}, expected {value!r}: Google's algorithm, which gives "
                "the ids here, would give others."
            )


def _added(content):
    """The ids of the tokens that stand beside the vocabulary, by token."""
    return {str(token["content"]): token["id"] for token in content.get("added_tokens") or []}
