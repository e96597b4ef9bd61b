"""Reads, checks and writes the vocabularies of byte-pair encoding, and learns them from text."""

import json
import re
import typing
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from keras_bert_impl.json_files import written_whole
from keras_bert_impl.tokenizers.tokenizer_json_reader import added_tokens, check_step, read_object, tokens_by_id

SPACE = "Ġ"  # as which the vocabularies of byte-level BPE show a space
# The settings of each step of a tokenizer.json that give the ids of byte-level BPE.
MODEL = {
    "type": "BPE",
    "dropout": None,
    "byte_fallback": False,
    "fuse_unk": False,
    "ignore_merges": False,
}
PRE_TOKENIZER = {"type": "ByteLevel", "use_regex": True}


class Dialect(typing.NamedTuple):
    """What byte-pair encoding leaves to a family.

    Fields:
        family: whose it is, for messages.
        control: the tokens for a text's beginning, padding, a text's end, unknown bytes and masks.
        normalizer: the step of a tokenizer.json before a text is divided; None for no step.
        takes_added_tokens: whether there can be tokens that are whole wherever they are in a text.
        model, pre_tokenizer: the settings of these steps of a tokenizer.json.
        space: as which the vocabulary shows a space.
        unread: tokens of the published vocabulary that files call special and no text is meant to hold. Others that
            files call special have been added for texts, such as marks of entities.
    """

    family: str
    control: tuple[str, ...]
    normalizer: dict | None
    takes_added_tokens: bool
    model: dict = MODEL
    pre_tokenizer: dict = PRE_TOKENIZER
    space: str = SPACE
    unread: tuple[str, ...] = ()


# In this order at the beginning of a learned vocabulary, but for the mask, which is the last of all tokens.
ROBERTA = Dialect("RoBERTa", ("<s>", "<pad>", "</s>", "<unk>", "<mask>"), None, takes_added_tokens=False)
NFC = {"type": "NFC"}
MODERNBERT = Dialect(
    "ModernBERT",
    ("[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]"),
    NFC,
    takes_added_tokens=True,
    unread=("<|padding|>", "<|endoftext|>"),
)
DEBERTA = Dialect("DeBERTa", MODERNBERT.control, None, takes_added_tokens=False)
MMBERT = Dialect(
    "mmBERT",
    ("<bos>", "<pad>", "<eos>", "<unk>", "<mask>"),
    {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
    takes_added_tokens=True,
    model={**MODEL, "byte_fallback": True, "fuse_unk": True},
    pre_tokenizer={"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
    space="▁",
    unread=("<start_of_turn>", "<end_of_turn>"),
)

Merges = list[tuple[str, str]]


def byte_tokens() -> list[str]:
    """The character that stands for each of the 256 bytes: itself if it can be seen, or else one from U+0100 on, in
    order (Radford et al. 2019, `bytes_to_unicode` of their code)."""
    seen = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = iter(range(256, 512))
    return [chr(byte if byte in seen else next(others)) for byte in range(256)]


def read_vocabulary(path: str | Path, dialect: Dialect = ROBERTA) -> list[str]:
    """The tokens of a vocab.json, a dict of token to id, in the order of their ids.

    Raises: FileNotFoundError; ValueError if ids have gaps or are given twice, or a control token is missing.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist. The vocabulary of byte-level BPE is a JSON file of token: id.")
    tokens = tokens_by_id(path, read_object(path), {})
    check_byte_pairs(tokens, str(path), dialect)
    return tokens


def read_merges(path: str | Path) -> Merges:
    """The pairs of a merges.txt, the most important first.

    Raises: FileNotFoundError; ValueError naming the line that is not two pieces.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist. Byte-level BPE needs its merges beside its vocab.json.")
    # Split at line ends only: str.splitlines() would split at U+0085, which stands for a byte.
    lines = path.read_text(encoding="utf-8").split("\n")
    merges = []
    for number, line in enumerate(lines, start=1):
        line = line.removesuffix("\r")
        if not line or (number == 1 and line.startswith("#version")):
            continue
        pair = tuple(line.split(" "))
        if len(pair) != 2 or not all(pair):
            raise ValueError(f"{path} line {number} is {line[:60]!r}, expected two pieces with a space between them.")
        merges.append(pair)
    return merges


def read_tokenizer_file(path: str | Path, dialect: Dialect) -> dict:
    """The arguments of a tokenizer from a tokenizer.json: vocabulary, merges, add_prefix_space, and, if the dialect has
    them, added_tokens, of which none are `dialect.unread`.

    Raises: ValueError if the file has steps that would give other ids.
    """
    content = read_object(path)
    model, steps, found = (content.get(key) or {} for key in ("model", "pre_tokenizer", "normalizer"))
    whose = f"{dialect.family}'s"
    check_step(path, "model", model, dialect.model, whose)
    check_step(path, "pre_tokenizer", steps, dialect.pre_tokenizer, whose)
    for name in ("continuing_subword_prefix", "end_of_word_suffix"):
        if model.get(name):
            raise ValueError(f"{path}: {name} of the model is {model[name]!r}; {whose} has none.")
    expected = dialect.normalizer or {}
    if found.get("type") != expected.get("type"):
        raise ValueError(
            f"{path}: the normalizer changes texts before they are cut into pieces, and is {found.get('type')}; "
            f"{whose} algorithm, which is used here, has {expected.get('type')}."
        )
    if expected:
        check_step(path, "normalizer", found, expected, whose)
    tokens = tokens_by_id(path, model.get("vocab"), content)
    check_byte_pairs(tokens, str(path), dialect)
    # Earlier versions of the library wrote a pair as one string.
    pairs = [pair.split(" ") if isinstance(pair, str) else pair for pair in model.get("merges") or []]
    return {
        "vocabulary": tokens,
        "merges": [tuple(pair) for pair in pairs],
        "add_prefix_space": bool(steps.get("add_prefix_space", False)),
        **_added_tokens(path, content, dialect),
    }


def _added_tokens(path, content, dialect):
    """The argument `added_tokens` from a tokenizer.json, or none; errors as `read_tokenizer_file`."""
    words = sorted(set(added_tokens(content)) - set(dialect.control))
    if not dialect.takes_added_tokens:
        if words:
            raise ValueError(
                f"{path}: {len(words)} of added_tokens, such as {', '.join(words[:4])}, are matched in the text as a "
                f"whole. {dialect.family}'s algorithm, which is used here, would cut them to pieces and give other ids."
            )
        return {}
    added = [t for t in content.get("added_tokens") or [] if t["content"] in set(words) - set(dialect.unread)]
    of_spaces = {token.get("normalized", True) for token in added if token["content"].startswith(" ")}
    for token in added:
        # A token that is matched before normalization differs only where the characters beside it change it, and where
        # a run of spaces before it is a token that is matched later.
        flags = [key for key in ("lstrip", "rstrip", "single_word") if token.get(key)]
        is_normalized, content = token.get("normalized", True), token["content"]
        if dialect.space == SPACE:
            differs = not content.isascii() or (content.startswith(" ") and len(of_spaces) > 1)
            flags += ["normalized=false"] * (not is_normalized and differs)
        else:
            flags += ["normalized=true"] * (is_normalized and dialect.space in content)
        if flags:
            raise ValueError(
                f"{path}: the added token {token['content']!r} has {', '.join(flags)}, which is not supported and "
                "would give other ids. Remove the token from the file if no text holds it."
            )
    return {"added_tokens": [token["content"] for token in added]}


def check_byte_pairs(tokens: Sequence[str], source: str, dialect: Dialect) -> None:
    """Raises: ValueError naming `source` and the token that is repeated, or the control token that is missing, or if
    pieces are not those of byte-level BPE."""
    seen = set()
    for token in tokens:
        if token in seen:
            raise ValueError(f"{source}: {token!r} is in the vocabulary twice. A token has one id.")
        seen.add(token)
    for token in dialect.control:
        if token not in seen:
            raise ValueError(
                f"{source} has no {token}. {dialect.family} needs {' '.join(dialect.control)}: is this a "
                f"{dialect.family} vocabulary?"
            )
    ends = [token for token in tokens if token.endswith("</w>")]
    if len(ends) > sum(token.startswith(dialect.space) for token in tokens):
        raise ValueError(
            f"{source}: pieces such as {ends[0]!r} mark the end of a word, as those of HerBERT; {dialect.family}'s "
            f"algorithm, which is used here, marks the space before a word, with {dialect.space}, and would give other "
            "ids."
        )


def check_merges(tokens: Sequence[str], merges: Merges, source: str) -> None:
    """Raises: ValueError naming `source` and the pair whose pieces, or what they become, are not in the vocabulary."""
    known = set(tokens)
    for number, (left, right) in enumerate(merges):
        missing = next((piece for piece in (left, right, left + right) if piece not in known), None)
        if missing is not None:
            raise ValueError(
                f"{source}: merge {number} is {left} {right}, but the vocabulary has no {missing}. Vocabulary and "
                "merges belong together: take both from the same checkpoint."
            )


def write_files(directory: str | Path, tokens: Sequence[str], merges: Merges) -> None:
    """Writes vocab.json and merges.txt; each is replaced at once, so that no reader ever sees a part of it."""
    ids = {token: index for index, token in enumerate(tokens)}
    pairs = "".join(f"{left} {right}\n" for left, right in merges)
    for name, text in (
        ("vocab.json", json.dumps(ids, ensure_ascii=False)),
        ("merges.txt", f"#version: 0.2\n{pairs}"),
    ):
        with written_whole(Path(directory, name)) as file:
            file.write(text)


def learn_byte_pairs(
    texts: Iterable[str],
    vocabulary_size: int,
    dialect: Dialect = ROBERTA,
    added_tokens: Sequence[str] = (),
) -> tuple[list[str], Merges]:
    """Learns byte-level BPE (Radford et al. 2019, section 2.2; Sennrich et al. 2016) by merging frequent pairs; the
    same texts give the same tokens.

    A space stands before each text, since in running text one stands before nearly every word.

    Args:
        texts: lines, paragraphs or documents; read once.
        vocabulary_size: number of tokens wanted, including five control tokens, the 256 bytes and added tokens. Little
            text gives fewer.
        dialect: whose control tokens there are.
        added_tokens: tokens that are whole wherever they are in a text, so that nothing is merged across them.

    Returns: (tokens in the order of their ids, merges): <s>, <pad>, </s>, <unk>, the bytes, the results of the merges
        in their order, the added tokens, and <mask>, as in RoBERTa's vocabulary.
    Raises: ValueError if `texts` is empty, or the size leaves no room for bytes.
    """
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    names = dialect.control
    last = [*added_tokens, names[-1]]
    least = len(names) + len(alphabet) + len(added_tokens)
    if vocabulary_size < least:
        others = f" and {len(added_tokens)} added tokens" * bool(added_tokens)
        raise ValueError(
            f"vocabulary_size {vocabulary_size} leaves no room for {len(alphabet)} bytes and {len(names)} control "
            f"tokens{others}: give at least {least}."
        )
    learner = Tokenizer(models.BPE())
    learner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary_size - len(last),  # which follow
        special_tokens=list(names[:-1]),
        initial_alphabet=alphabet,
        show_progress=False,
    )
    has_text = False
    parted = parting(added_tokens)

    def counted():
        nonlocal has_text
        for text in texts:
            has_text = has_text or bool(text)
            yield from parted(text)

    learner.train_from_iterator(counted(), trainer)
    if not has_text:
        raise ValueError("texts has no text to learn from: is the file empty, or the iterator already exhausted?")
    model = json.loads(learner.to_str())["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].get)
    return [*tokens, *last], [tuple(pair) for pair in model["merges"]]


def parting(added_tokens: Sequence[str]) -> Callable[[str], list[str]]:
    """The function that gives what is between the added tokens of a text."""
    if not added_tokens:
        return lambda text: [text]
    # Of several that begin at one place, the longest is the one that is there.
    pattern = re.compile("|".join(map(re.escape, sorted(added_tokens, key=len, reverse=True))))
    return pattern.split
