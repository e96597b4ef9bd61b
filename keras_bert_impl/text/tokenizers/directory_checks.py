"""Refuses a directory whose files say that its tokenizer gives other ids than the tokenizer here that read it."""

import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from tokenizers import Tokenizer as Pipeline

from keras_bert_impl.json_files import read_json_if_there
from keras_bert_impl.text.tokenizers.tokenizer import Tokenizer
from keras_bert_impl.text.tokenizers.vocabulary import OTHER_TOKENIZER

# Classes of transformers for any tokenizer.json, whose steps are checked.
ANY_CLASS = ("PreTrainedTokenizer", "TokenizersBackend")
SETTINGS = ("single_word", "lstrip", "rstrip", "normalized", "special")  # of an added token
LISTS = ("additional_special_tokens", "extra_special_tokens")


def added_tokens_in(directory: Path, control: Sequence[str]) -> dict[str, dict[str, bool]]:
    """The settings of the added tokens of a directory but the control tokens, in the order of their ids."""
    files = _files(directory)
    listed = [token for content, _ in files.values() for key in LISTS for token in _listed(content, key)]
    special = set(map(text_of, listed))
    # A list names no ids: a token of it that no file has an id for follows behind all others.
    with_ids = [(math.inf, token) for token in listed]
    with_ids += [(int(index), token) for _, added in files.values() for index, token in added.items()]
    found = {}
    for index, token in with_ids:
        settings = token if isinstance(token, dict) else {"special": text_of(token) in special}
        found[text_of(token)] = index, {name: bool(settings[name]) for name in SETTINGS if name in settings}
    in_order = sorted(found, key=lambda token: found[token][0])
    return {token: found[token][1] for token in in_order if token not in control}


def check_directory(tokenizer: Tokenizer, directory: str | Path) -> None:
    """Checks what a directory says beside the vocabulary and the steps before the model, from which `tokenizer` was
    read: the class, control tokens, added tokens, what stands between the texts of a row, and where rows are cut.

    Raises: ValueError naming the file, and what would be read otherwise.
    """
    for problem in _problems(tokenizer, Path(directory)):
        raise ValueError(f"{problem} Correct the file if that does not hold for the model.")


def _problems(tokenizer: Tokenizer, directory: Path) -> Iterator[str]:
    path = directory / "tokenizer_config.json"
    config, steps = read_json_if_there(path), read_json_if_there(directory / "tokenizer.json")
    yield from _problems_of_class(tokenizer, path, config.get("tokenizer_class"))
    if config.get("tokenizer_class") is None:
        path = directory / "config.json"
        yield from _problems_of_class(tokenizer, path, read_json_if_there(path).get("tokenizer_class"))
    for name, (content, added) in _files(directory).items():
        yield from _problems_of_tokens(tokenizer, directory / name, content, added)
    if steps and not _has_rows(tokenizer, steps.get("post_processor")):
        yield (
            f"{directory / 'tokenizer.json'} has no post_processor that lays out texts and pairs as "
            f"{type(tokenizer).__name__} does, and other programs would leave rows so."
        )
    side = config.get("truncation_side") or (steps.get("truncation") or {}).get("direction")
    if str(side).lower() == "left":  # transformers asks tokenizer.json last
        yield f"{directory}: the side of truncation is {side!r}, but here too long texts lose their ends."


def _files(directory):
    """What each file says of control tokens, and its added tokens by id; the last is what transformers follows."""
    config = read_json_if_there(directory / "tokenizer_config.json")
    files = {"tokenizer_config.json": (config, config.get("added_tokens_decoder") or {})}
    if "added_tokens_decoder" not in config:  # which stands for both of these files
        files["special_tokens_map.json"] = read_json_if_there(directory / "special_tokens_map.json"), {}
        added = read_json_if_there(directory / "added_tokens.json")
        files["added_tokens.json"] = {}, {index: token for token, index in added.items()}
    steps = read_json_if_there(directory / "tokenizer.json")
    files["tokenizer.json"] = {}, {token["id"]: token for token in steps.get("added_tokens") or []}
    return files


def _problems_of_class(tokenizer, path, name):
    known = {tokenizer.published_class, *tokenizer.similar_classes, *ANY_CLASS}
    if name is not None and str(name).removesuffix("Fast") not in known:
        yield (
            f"{path}: tokenizer_class is {name}, which is not known to give the ids of the {type(tokenizer).__name__} "
            f"here. {OTHER_TOKENIZER}"
        )


def _problems_of_tokens(tokenizer, path, config, added):
    """What differs in the control tokens and added tokens of a file; `added` are tokens by id."""
    names = tokenizer.control_tokens
    words = [token for key in LISTS for token in _listed(config, key)]
    for key, token in config.items():
        if not key.endswith("_token") or not isinstance(token, str | dict):  # such as add_bos_token: false
            continue
        if text_of(token) != names.get(key, text_of(token)):
            yield f"{path}: {key} is {text_of(token)!r}, but {type(tokenizer).__name__} has {names[key]!r}."
        words.append(token)
    for index, token in added.items():
        words.append(token)
        is_whole = text_of(token) in (*names.values(), *(tokenizer.added_tokens or ()))
        if is_whole and int(index) != tokenizer.token_to_id(text_of(token)):
            own = tokenizer.token_to_id(text_of(token))
            yield f"{path}: {text_of(token)} has the id {index}, but {own} in the vocabulary."
    known = {*names.values(), *(tokenizer.added_tokens or ()), *tokenizer.listed_tokens}
    words = sorted(set(map(text_of, words)) - known)
    if words:
        yield (
            f"{path}: {len(words)} added tokens, such as {', '.join(words[:4])}, are matched in the text as a whole. "
            f"{type(tokenizer).__name__} would cut them to pieces and give other ids. Remove them from the file if no "
            "text holds them."
        )


def _listed(config, key):
    """The tokens of a list, or of a dict of names to tokens."""
    tokens = config.get(key) or []
    return list(tokens.values()) if isinstance(tokens, dict) else tokens


def text_of(token: str | dict) -> str:
    """The text of a token as files of tokenizers have it, alone or with its settings."""
    return str(token["content"]) if isinstance(token, dict) else str(token)


def _has_rows(tokenizer, post_processor):
    """Whether a post_processor lays out rows as the tokenizer's template does."""
    # The library itself carries both out, over a model of one word with the id 0.
    model = {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}
    theirs = Pipeline.from_str(json.dumps({"version": "1.0", "post_processor": post_processor, "model": model}))
    ours = Pipeline.from_str(json.dumps({"version": "1.0", "model": model}))
    ours.post_processor = tokenizer.row_processor
    rows = [(theirs.encode(*texts), ours.encode(*texts)) for texts in (("a",), ("a", "a"))]
    # Without a second segment the model has no segments, or one that all tokens have.
    has_segments = bool(tokenizer.template.second_segment)
    return all(one.ids == other.ids and (not has_segments or one.type_ids == other.type_ids) for one, other in rows)
