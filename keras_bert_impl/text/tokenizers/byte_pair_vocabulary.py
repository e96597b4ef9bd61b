"""Reads, checks and writes the vocabularies of byte-pair encoding, and learns them from text."""

import json
import re
import typing
from collections.abc import Iterable, Sequence
from pathlib import Path

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from keras_bert_impl.json_files import read_json, written_whole
from keras_bert_impl.text.tokenizers.tokenizer_json import check_step, tokens_by_id
from keras_bert_impl.text.tokenizers.vocabulary import OTHER_TOKENIZER

SPACE = "Ġ"  # as which the vocabularies of byte-level BPE show a space
# The settings of each step of a tokenizer.json that give the ids of byte-level BPE.
MODEL = {
    "type": "BPE",
    "dropout": None,
    "byte_fallback": False,
    "fuse_unk": False,
    "ignore_merges": False,
    "continuing_subword_prefix": None,
    "end_of_word_suffix": None,
}
PRE_TOKENIZER = {"type": "ByteLevel", "use_regex": True}


class Dialect(typing.NamedTuple):
    """What byte-pair encoding leaves to a family.

    Fields:
        family: whose it is, for messages.
        control: the tokens for a text's beginning, padding, a text's end, unknown bytes and masks.
        normalizer: the step of a tokenizer.json before a text is divided.
        takes_added_tokens: whether there can be tokens that are whole wherever they are in a text.
        model, pre_tokenizer: the settings of these steps of a tokenizer.json.
        space: as which the vocabulary shows a space.
        unread: tokens of the published vocabulary that files call special and no text is meant to hold. Others that
            files call special have been added for texts, such as marks of entities.
    """

    family: str
    control: tuple[str, ...]
    normalizer: dict
    takes_added_tokens: bool
    model: dict = MODEL
    pre_tokenizer: dict = PRE_TOKENIZER
    space: str = SPACE
    unread: tuple[str, ...] = ()


NOTHING = {"type": None}
# In this order at the beginning of a learned vocabulary, but for the mask, which is the last of all tokens.
ROBERTA = Dialect("RoBERTa", ("<s>", "<pad>", "</s>", "<unk>", "<mask>"), NOTHING, takes_added_tokens=False)
NFC = {"type": "NFC"}
MODERNBERT = Dialect(
    "ModernBERT",
    ("[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]"),
    NFC,
    takes_added_tokens=True,
    unread=("<|padding|>", "<|endoftext|>"),
)
DEBERTA = Dialect("DeBERTa", MODERNBERT.control, NOTHING, takes_added_tokens=False)
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
# Of Llama 3, whose words take one character before them along.
LLAMA_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
EUROBERT = Dialect(
    "EuroBERT",
    ("<|begin_of_text|>", "<|end_of_text|>", "<|end_of_text|>", "<|mask|>"),
    NOTHING,
    takes_added_tokens=True,
    model={**MODEL, "ignore_merges": True},
    pre_tokenizer={
        "type": "Sequence",
        "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": LLAMA_WORDS}, "behavior": "Isolated", "invert": False},
            {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False},
        ],
    },
)

Merges = list[tuple[str, str]]


def byte_tokens() -> list[str]:
    """The character that stands for each of the 256 bytes: itself if it can be seen, or else one from U+0100 on, in
    order (Radford et al. 2019, `bytes_to_unicode` of their code)."""
    seen = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = iter(range(256, 512))
    return [chr(byte if byte in seen else next(others)) for byte in range(256)]


def read_merges(path: str | Path) -> Merges:
    """The pairs of a merges.txt, the most important first."""
    # Split at line ends only: str.splitlines() would split at U+0085, which stands for a byte.
    lines = [line.removesuffix("\r") for line in Path(path).read_text(encoding="utf-8").split("\n")]
    lines = lines[1:] if lines[0].startswith("#version") else lines
    return [tuple(line.split(" ")) for line in lines if line]


def read_tokenizer_file(path: str | Path, dialect: Dialect) -> dict:
    """The arguments of a tokenizer from a tokenizer.json: vocabulary, merges, add_prefix_space, and, if the dialect has
    them, added_tokens, of which none are `dialect.unread`.

    Raises: ValueError if the file has steps that would give other ids.
    """
    content = read_json(path)
    model, steps, found = (content.get(key) or {} for key in ("model", "pre_tokenizer", "normalizer"))
    whose = f"{dialect.family}'s"
    check_step(path, "model", model, dialect.model, whose)
    check_step(path, "pre_tokenizer", steps, dialect.pre_tokenizer, whose)
    check_step(path, "normalizer", found, dialect.normalizer, whose)
    # Earlier versions of the library wrote a pair as one string.
    pairs = [pair.split(" ") if isinstance(pair, str) else pair for pair in model.get("merges") or []]
    return {
        "vocabulary": tokens_by_id(path, model.get("vocab"), content),
        "merges": [tuple(pair) for pair in pairs],
        "add_prefix_space": bool(steps.get("add_prefix_space", False)),
        **_added_tokens(path, content, dialect),
    }


def _added_tokens(path, content, dialect):
    """The argument `added_tokens` from a tokenizer.json, or none; errors as `read_tokenizer_file`."""
    if not dialect.takes_added_tokens:
        return {}
    others = {*dialect.control, *dialect.unread}
    added = [token for token in content.get("added_tokens") or [] if token["content"] not in others]
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
                "would give other ids. Remove the token from the file if no text contains it."
            )
    return {"added_tokens": [token["content"] for token in added]}


def check_byte_pairs(tokens: Sequence[str], source: str, dialect: Dialect) -> None:
    """Raises: ValueError naming `source` if pieces are not those of byte-level BPE."""
    ends = [token for token in tokens if token.endswith("</w>")]
    if len(ends) > sum(token.startswith(dialect.space) for token in tokens):
        raise ValueError(
            f"{source}: tokens such as {ends[0]!r} mark the end of a word, as in HerBERT. {dialect.family}'s tokenizer "
            f"marks the space before a word and would give other ids. {OTHER_TOKENIZER}"
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
    """Learns a byte-level BPE vocabulary, as RoBERTa's, from texts (Radford et al. 2019, section 2.2; Sennrich et al.
    2016).

    The same texts give the same tokens. A space is put before each text, as before nearly every word of running text.

    Args:
        texts (iterable of str): lines, paragraphs or documents; read once.
        vocabulary_size (int): number of tokens, including five control tokens, the 256 bytes and added tokens. Few
            texts give fewer.
        dialect (Dialect, optional): the family whose control tokens are used: ROBERTA, DEBERTA or MODERNBERT of
            `tokenizers.byte_pair_vocabulary`. Default: ROBERTA.
        added_tokens (list of str, optional): tokens that are never split, nor merged across. Default: none.

    Returns: (tokens in the order of their IDs, merges): <s>, <pad>, </s>, <unk>, the bytes, the merges in their order,
        the added tokens, and <mask>, as in RoBERTa's vocabulary.
    """
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    names = dialect.control
    last = [*added_tokens, names[-1]]
    learner = Tokenizer(models.BPE())
    learner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary_size - len(last),  # which follow
        special_tokens=list(names[:-1]),
        initial_alphabet=alphabet,
        show_progress=False,
    )
    # Of several that begin at one place, the longest is the one that is there.
    parting = re.compile("|".join(map(re.escape, sorted(added_tokens, key=len, reverse=True))))
    parts = (part for text in texts for part in (parting.split(text) if added_tokens else [text]))
    learner.train_from_iterator(parts, trainer)
    model = json.loads(learner.to_str())["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].get)
    return [*tokens, *last], [tuple(pair) for pair in model["merges"]]
