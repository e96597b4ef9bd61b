"""Models of the `sentencepiece` library, which is installed only by those who use them: opened, learned, and as files.

transformers 5 writes tokenizer.json alone. It holds pieces, scores and the table of characters, which is all that a
model file holds; so the model is built again from it, and the `sentencepiece` library gives the original's ids.
"""

import base64
import importlib.util
import io
import itertools
import json
import re
import struct
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from tokenizers import AddedToken, models
from tokenizers import Tokenizer as Pipeline

from keras_bert_impl.json_files import read_json
from keras_bert_impl.text.tokenizers.tokenizer_json import check_step, tokens_by_id

SPACE = "▁"
# In the order of ALBERT's vocabulary.
CONTROL_TOKENS = ("[CLS]", "[SEP]", "[MASK]")
# Characters that are tokens of their own, as in ALBERT's vocabulary.
ALONE = ("(", ")", '"', "-", ".", "–", "£", "€")  # noqa: RUF001
# The tokens that are not learned, as options of the library.
ALBERT = {
    **{"pad_id": 0, "unk_id": 1, "bos_id": -1, "eos_id": -1},
    "control_symbols": list(CONTROL_TOKENS),
    "user_defined_symbols": list(ALONE),
}
# As zihangdai/xlnet's README has them, in this order.
XLNET = {
    **{"unk_id": 0, "bos_id": 1, "eos_id": 2, "pad_id": -1},
    "control_symbols": ["<cls>", "<sep>", "<pad>", "<mask>", "<eod>"],
    "user_defined_symbols": ["<eop>", ".", "(", ")", '"', "-", "–", "£", "€"],  # noqa: RUF001
}
# The published vocabulary has [CLS], [SEP], [MASK] and <unk> after reserved names, at 65, 66, 67 and 100.
BIGBIRD = {
    **{"pad_id": 0, "eos_id": 1, "bos_id": 2, "unk_id": 3, "normalization_rule_name": "identity"},
    "control_symbols": list(CONTROL_TOKENS),
}
COVERAGE = 0.99995  # share of the text whose characters get tokens, as for ALBERT; the usual 0.9995 loses digits
THREADS = 4  # a fixed number: the sums of the learner, and so its tokens, depend on it
LONGEST_PIECE = 1 << 10  # bytes of a model file that hold its first pieces
LONGEST_TEXT = 1 << 20  # bytes; the library leaves out longer ones, and by default those of 4 kB
MODEL = {"type": "Unigram"}
METASPACE = {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": "always", "add_prefix_space": True}
# What the library does in the place of the model's own handling of several spaces; each has been written at some time.
SEVERAL_SPACES = [{"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": space} for space in (" ", SPACE)]
LAST_SPACES = {"type": "Strip", "strip_left": False, "strip_right": True}
# How a text is divided into words: at all white space, which models make spaces of, or at spaces alone.
AT_WHITE_SPACE = {"type": "WhitespaceSplit"}
AT_SPACES = {"type": "Split", "pattern": {"String": " "}, "behavior": "Removed", "invert": False}
NOTHING = {**LAST_SPACES, "strip_right": False}  # as transformers 5 writes for a BigBird
# Hugging Face's converters take this from the score of a piece that the tokenizer cuts once more. Pieces that models
# learn have scores above -50.
PENALTY = 100
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, BYTE = 1, 2, 3, 4, 6  # types of pieces in a model file
HIDING = "\ue000"  # a private character, before the names of tokens that no text is meant to hold
IS_BYTE = re.compile("<0x[0-9A-F]{2}>")


def library():
    """The module `sentencepiece`. Raises: ImportError that says how to install it."""
    if importlib.util.find_spec("sentencepiece") is None:
        raise ImportError(
            "A SentencePiece tokenizer needs sentencepiece to be installed: pip install "
            "'keras_bert_impl[sentencepiece]'."
        )
    import sentencepiece

    return sentencepiece


def first_pieces(path: Path) -> list[str]:
    """The tokens of the ids 0 and 1 in a model file; [] if the file is damaged."""
    content, found = path.open("rb").read(LONGEST_PIECE), []
    # A message of Protocol Buffers. Its first fields are the pieces, each a key and a length and then a message, of
    # which the first field, again a key and a length, is the text: control tokens, whose lengths are below 128.
    try:
        for _ in range(2):
            found.append(content[4 : 4 + content[3]].decode())
            content = content[2 + content[1] :]
    except (IndexError, UnicodeDecodeError):
        return []
    return found


def character_map(content: bytes) -> bytes:
    """The table of characters that a model normalizes, as the `tokenizers` library reads it; b"" without one."""
    normalizer = library().SentencePieceNormalizer(model_proto=content)
    specification, place = normalizer.serialized_normalizer_spec, 0
    specification = specification() if callable(specification) else specification
    # A message of Protocol Buffers: fields of a key (number and type) and a value. The table is field 2, of bytes.
    while place < len(specification):
        key, place = _number(specification, place)
        value, place = _number(specification, place)
        if key & 7 == 2:  # bytes, of which the value is the length
            if key >> 3 == 2:
                return specification[place : place + value]
            place += value
    return b""


def _number(message, place):
    """The number at a place of a message, in groups of seven bits, and the place after it."""
    number = shift = 0
    while True:
        byte = message[place]
        number, shift, place = number | (byte & 127) << shift, shift + 7, place + 1
        if byte < 128:
            return number, place


def learn_sentence_pieces(
    texts: Iterable[str],
    vocabulary_size: int,
    prepare: Callable[[str], str] = lambda text: text,
    not_learned: Mapping = types.MappingProxyType(ALBERT),
) -> bytes:
    """Learns a SentencePiece unigram model (Kudo 2018), as ALBERT's, from texts. The same texts give the same model.

    Args:
        texts (iterable of str): lines, paragraphs or documents of at most a megabyte; read once.
        vocabulary_size (int): number of tokens, including <pad>, <unk>, [CLS], [SEP] and [MASK]. Few texts give fewer.
        prepare (function, optional): what the tokenizer does to a text before the model, such as lower-casing.
            Default: nothing.
        not_learned (dict, optional): control tokens of a family: ALBERT, XLNET or BIGBIRD of
            `tokenizers.sentence_piece_model`. Default: ALBERT.

    Returns: the content of a model file, bytes.
    """
    model = io.BytesIO()
    library().SentencePieceTrainer.train(
        sentence_iterator=map(prepare, texts),
        model_writer=model,
        model_type="unigram",
        vocab_size=vocabulary_size,
        hard_vocab_limit=False,
        **not_learned,
        character_coverage=COVERAGE,
        max_sentence_length=LONGEST_TEXT,
        num_threads=THREADS,
        minloglevel=2,
    )
    return model.getvalue()


def read_file(path: Path, kind) -> tuple[dict, list[tuple[str, float]], bytes, bool]:
    """The settings, the pieces with their scores in the order of their ids, the table of characters of a
    tokenizer.json, and whether it has byte fallback.

    Args:
        path: the file.
        kind: the class of the tokenizer, whose `options` are the settings that the steps of the file can mean.

    Raises: ValueError if the file has steps that give other ids than the original tokenizer of the family.
    """
    content, whose = read_json(path), kind.__name__.removesuffix("Tokenizer")
    model, whose = content.get("model") or {}, f"{whose}'s"
    check_step(path, "model", model, MODEL if kind.knows_bytes else {**MODEL, "byte_fallback": False}, whose)
    scores = {token: float(score) for token, score in model.get("vocab") or []}
    tokens = tokens_by_id(path, {token: index for index, (token, _) in enumerate(model.get("vocab") or [])}, content)
    check_step(path, "model", model, {"unk_id": tokens.index(kind.names[1])}, whose)
    settings, table = _settings_and_table(path, content, kind, whose)
    has_bytes = bool(model.get("byte_fallback", False))
    return settings, [(token, scores.get(token, 0.0)) for token in tokens], table, has_bytes


def _settings_and_table(path, content, kind, whose):
    """The settings that the steps before the model mean, and the table of characters."""
    steps, before = ([step for step in _steps(content, n) if step != NOTHING] for n in ("normalizer", "pre_tokenizer"))
    table = b"".join(base64.b64decode(step["precompiled_charsmap"]) for step in steps if _is_table(step))
    ends = [step for step in steps if step in SEVERAL_SPACES or step == LAST_SPACES]
    own = [step for step in steps if step not in ends and not _is_table(step)]
    all_values = itertools.product((True, False), repeat=len(kind.options))
    variants = (dict(zip(kind.options, values, strict=True)) for values in all_values)
    settings = next((settings for settings in variants if kind.steps(**settings) == own), None)
    in_order = own + [step for step in steps if _is_table(step)] + ends
    # Several spaces are one: either they are replaced by one, or the text is split at them.
    joins_spaces = any(step in SEVERAL_SPACES for step in ends) or before[:1] == [kind.split]
    if settings is None or in_order != steps or not joins_spaces:
        raise ValueError(
            f"{path}: normalizer or pre_tokenizer has other steps than {whose} algorithm, which is used here and "
            "would give other ids."
        )
    spaces = before[1:] if before[:1] == [kind.split] else before
    check_step(path, "pre_tokenizer", spaces[0] if len(spaces) == 1 else {}, METASPACE, whose)
    return settings, table


def _steps(content, name):
    """The steps of normalizer or pre_tokenizer, one after another."""
    step = content.get(name)
    if isinstance(step, dict) and step.get("type") == "Sequence":
        return step.get("normalizers") or step.get("pretokenizers") or []
    return [] if step is None else [step]


def _is_table(step):
    return step.get("type") == "Precompiled"


def model_of(family, pieces: list[tuple[str, float]], table: bytes, has_bytes: bool = False) -> bytes:
    """The content of a model file.

    Args:
        family: the class of the tokenizer.
        pieces: with their scores, in the order of the model's ids.
        table: of characters, as `character_map` returns it.
        has_bytes: whether a character without a piece becomes its bytes, instead of the unknown token.
    """
    names, typed = (*family.names, *family.further_controls), []
    for piece, score in pieces:
        score += PENALTY * (family.is_cut_again(piece) and score <= -PENALTY)
        is_given = not score if family.reserved is None else piece in family.reserved
        kind = UNKNOWN if piece == names[1] else CONTROL if piece in names else USER_DEFINED if is_given else NORMAL
        if has_bytes and IS_BYTE.fullmatch(piece):
            kind = BYTE
        typed.append((piece, score, kind))
    special = (names[1], "<s>", "</s>", names[0])
    return _encoded_model(typed, special, has_bytes) + (_field(3, _field(2, table)) if table else b"")


def as_controls(content: bytes, names: tuple[str, ...]) -> bytes:
    """The content of a model file in which those of these pieces that a text could hold are control tokens."""
    for name in names:
        found, control = (_piece(name, 0.0, kind) for kind in (USER_DEFINED, CONTROL))
        content = content.replace(found, control, 1)
    return content


def byte_pair_model(pieces: list[tuple[str, float, int]], special: tuple[str, ...]) -> bytes:
    """The content of a model file of byte-pair encoding that changes nothing of a text but spaces to "▁".

    Args:
        pieces: in the order of their ids, each with its score and its type: of two pieces that could be merged next,
            that of the greater score is.
        special: names of the tokens for what is unknown, beginning, end and padding.
    """
    # Of the normalizer's options: a space before the text, one of several, spaces as "▁".
    normalizer = _field(1, b"identity") + _field(3, 0) + _field(4, 0) + _field(5, 1)
    return _encoded_model(pieces, special, has_bytes=True, more_options=_field(3, 2)) + _field(3, normalizer)


def without_normalizer(content: bytes, unknown: list[str], score: float) -> bytes:
    """A model file changed so that texts stay as they are, and that unknown characters are pieces of that score after
    the others. Of a field that stands twice in a message of Protocol Buffers, the later one counts."""
    as_it_is = _field(2, b"") + _field(3, 0) + _field(4, 0) + _field(5, 0)
    return content + b"".join(_piece(character, score, NORMAL) for character in unknown) + _field(3, as_it_is)


def without_bytes(content: bytes) -> bytes:
    """A model file changed so that what is unknown is not cut into bytes, whose pieces become control tokens."""
    kinds = rb"(<0x[0-9A-F]{2}>(?:\x15.{4})?\x18)" + bytes([BYTE]), rb"\g<1>" + bytes([CONTROL])
    return re.sub(*kinds, content, flags=re.DOTALL) + _field(2, _field(35, 0))


def _encoded_model(pieces, special, has_bytes, more_options=b""):
    """The pieces and the learner's options of a model file."""
    encoded = [_piece(*piece) for piece in pieces]
    order = {piece: index for index, (piece, _, _) in enumerate(pieces)}
    # Fields 40 to 43: the ids of unknown, beginning, end and padding; -1 if there is none.
    options = b"".join(_field(40 + place, order.get(name, -1)) for place, name in enumerate(special))
    return b"".join(encoded) + _field(2, options + _field(35, 1) * has_bytes + more_options)


def _piece(piece, score, kind):
    """A piece of a model file."""
    return _field(1, _field(1, piece.encode()) + _field(2, score) + _field(3, kind))


def _field(number, value):
    """A field of a message of Protocol Buffers: of bytes, a float or an integer."""
    if isinstance(value, bytes):
        return _varint(number << 3 | 2) + _varint(len(value)) + value
    if isinstance(value, float):
        return _varint(number << 3 | 5) + struct.pack("<f", value)
    return _varint(number << 3) + _varint(value % 2**64)


def _varint(value):
    """An integer in groups of seven bits, the lowest first."""
    groups = []
    while value > 127:
        groups.append(value & 127 | 128)
        value >>= 7
    return bytes([*groups, value])


def pipeline_of(tokenizer, hidden: Sequence[str] = ()) -> Pipeline:
    """A tokenizer over a SentencePiece model as one of the `tokenizers` library, such as Hugging Face's of the family.

    It differs where the library does: characters of Unicode that it lower-cases or decomposes otherwise, final sigma,
    and pieces that end in a digit and a comma, which it makes unlikely instead of cutting them.

    Args:
        tokenizer: a SentencePieceTokenizer.
        hidden: tokens that texts do not hold; the library would find the names of control tokens in texts.
    """
    table = character_map(tokenizer.model)
    table_steps = [{"type": "Precompiled", "precompiled_charsmap": base64.b64encode(table).decode("ascii")}]
    vocabulary = [
        (HIDING * (token in hidden) + token, score - PENALTY * tokenizer.is_cut_again(token))
        for token, score in zip(tokenizer.vocabulary, tokenizer.scores(), strict=True)
    ]
    steps = [*tokenizer.steps(**tokenizer.settings()), *(table_steps if table else [])]
    content = {
        "version": "1.0",
        "normalizer": {"type": "Sequence", "normalizers": steps},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [tokenizer.split, METASPACE]},
        "decoder": METASPACE,
        "model": {"type": "WordLevel", "vocab": {}, "unk_token": ""},
    }
    pipeline = Pipeline.from_str(json.dumps(content))
    # Not by the file: what the library reads of a number is not always the same number.
    pipeline.model = models.Unigram(vocabulary, unk_id=tokenizer.unk_id, byte_fallback=bool(tokenizer.bytes_of))
    pipeline.post_processor = tokenizer.row_processor
    return pipeline


def control_token(tokenizer, index: int) -> AddedToken:
    """A control token that is found in texts; that of masks takes the space before it along."""
    is_mask = index == tokenizer.mask_id
    return AddedToken(tokenizer.vocabulary[index], special=True, normalized=False, lstrip=is_mask)


def write_file(tokenizer, path: Path) -> None:
    """Writes a tokenizer.json as Hugging Face's tokenizer of the family has it, which finds control tokens in texts."""
    pipeline = pipeline_of(tokenizer)
    pipeline.add_special_tokens([control_token(tokenizer, index) for index in sorted(tokenizer.special_ids)])
    content = json.loads(pipeline.to_str())
    # The library leaves out add_prefix_space, which readers in other languages look for.
    content["pre_tokenizer"]["pretokenizers"][1] = content["decoder"] = METASPACE
    path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
