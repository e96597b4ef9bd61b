"""Opens models of the `sentencepiece` library, which is installed only by those who use them, and learns them."""

import importlib.util
import io
import types
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

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
LONGEST_PIECE = 1 << 10  # bytes of a model file that hold its first piece
LONGEST_TEXT = 1 << 20  # bytes; the library leaves out longer ones, and by default those of 4 kB


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
    # A message of Protocol Buffers; field 1 is a piece, of which field 1 is the text.
    try:
        for _ in range(2):
            piece, content = _first_field(content)
            found.append(_first_field(piece)[0].decode())
    except (IndexError, UnicodeDecodeError):
        return []
    return found


def _first_field(message):
    """The bytes of field 1, with which a message begins, and what follows it."""
    key, place = _number(message, 0)
    length, place = _number(message, place)
    return (message[place : place + length], message[place + length :]) if key == 10 else (b"", b"")


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
    """Learns a unigram model (Kudo 2018) with a family's control tokens; the same texts give the same model.

    Args:
        texts: lines, paragraphs or documents of at most a megabyte; read once.
        vocabulary_size: number of tokens wanted, with <pad>, <unk>, [CLS], [SEP] and [MASK]. Little text gives fewer.
        prepare: what the tokenizer does to a text before the model reads it, such as lower-casing.
        not_learned: ALBERT, or XLNET or BIGBIRD for the control tokens of that family.

    Returns: the content of a model file.
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
