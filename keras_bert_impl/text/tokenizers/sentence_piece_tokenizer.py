"""Turns text into ids of SentencePiece models and character offsets, without TensorFlow: those of ALBERT and others."""

import base64
import re
import typing
import unicodedata
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer as Pipeline

from keras_bert_impl.json_files import read_json_if_there
from keras_bert_impl.text.tokenizers.directory_checks import check_directory
from keras_bert_impl.text.tokenizers.rows import BERT_ROWS, ROBERTA_ROWS, XLNET_ROWS
from keras_bert_impl.text.tokenizers.sentence_piece_model import (
    AT_SPACES,
    AT_WHITE_SPACE,
    SPACE,
    as_controls,
    character_map,
    control_token,
    first_pieces,
    library,
    model_of,
    pipeline_of,
    read_file,
    write_file,
)
from keras_bert_impl.text.tokenizers.tokenizer import Tokenizer
from keras_bert_impl.text.tokenizers.tokenizer_json import VocabularyFiles, agreed
from keras_bert_impl.text.tokenizers.words import stripped_span

# Without them, transformers 5 gives no segments for these tokenizers, and so computes pairs as single texts.
INPUTS_WITH_SEGMENTS = ["input_ids", "token_type_ids", "attention_mask"]


class SentencePieceTokenizer(Tokenizer):
    """What the tokenizers over a SentencePiece model share (Kudo and Richardson 2018).

    A text is normalized as the model says, a space is put before it, and the most probable division into pieces is
    found. Control tokens in a text are ordinary text; only `encode_with_masks` recognizes the mask token.

    Args:
        model: path of a model file, or its content.

    Raises: FileNotFoundError; ImportError without the package sentencepiece; ValueError if the file is damaged or has
        other control tokens.
    """

    # Of `files`, the first is the model.
    first: typing.ClassVar[str]  # the token of id 0, if no other kind's model has a file of that name
    # Names of the control tokens for padding, unknown, beginning, separator and mask.
    names: typing.ClassVar[tuple[str, ...]]
    # Names of control tokens that rows do not have, first those of the beginning and the end of a text.
    further_controls: typing.ClassVar[tuple[str, ...]] = ()
    # Pieces that were given to the learner, and are whole in every text; None means those of the score 0, such as
    # ALBERT's "(", which no piece has that was learnt.
    reserved: typing.ClassVar[tuple[str, ...] | None] = None
    split: typing.ClassVar[dict] = AT_WHITE_SPACE  # the step of a tokenizer.json that divides texts into words
    # The constructor's further arguments, all of them bool, and their names in tokenizer_config.json.
    options: typing.ClassVar[dict[str, str]] = {}
    further_config: typing.ClassVar[dict] = {}  # what else tokenizer_config.json holds of this tokenizer alone
    knows_bytes: typing.ClassVar[bool] = False  # whether a model may have a token for each byte
    # The bytes that tokens such as <0xE6> stand for, by their ids, and those that do not begin a character.
    bytes_of: typing.ClassVar[dict[int, bytes]] = {}
    further_bytes: typing.ClassVar[set[int]] = set()
    lowercase = False

    def __init__(self, model: str | Path | bytes):
        source = str(model) if isinstance(model, str | Path) else "model"
        self.model = self._own_model(Path(model).read_bytes() if isinstance(model, str | Path) else model)
        self.processor = library().SentencePieceProcessor(model_proto=self.model)
        self._normalizer = library().SentencePieceNormalizer(model_proto=self.model)
        self.vocabulary = self._vocabulary()
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = self._ids_of(self.names, source)

    @classmethod
    def _own_model(cls, content: bytes) -> bytes:
        """The content of the model that is used instead of that of a file."""
        return content

    def _vocabulary(self) -> list[str]:
        """The tokens in the order of our ids."""
        return [self.processor.id_to_piece(index) for index in range(self.processor.get_piece_size())]

    def scores(self) -> list[float]:
        """The log probability of each token of the vocabulary, 0 for control tokens."""
        found = [0.0] * len(self.vocabulary)
        pieces = range(self.processor.get_piece_size())
        for index, place in zip(pieces, self._our_ids(pieces), strict=True):
            if self.vocabulary[place] not in self.names:
                found[place] = self.processor.get_score(index)
        return found

    def _our_ids(self, ids: Sequence[int]) -> list[int]:
        """Our ids of the model's."""
        return list(ids)

    def scores_in_texts(self) -> dict[str, float]:
        """The score of each piece that the model finds in texts, control tokens and bytes left out."""
        found, others = self.processor, ("is_control", "is_unknown", "is_unused", "is_byte")
        pieces = [index for index in range(len(found)) if not any(getattr(found, name)(index) for name in others)]
        return {found.id_to_piece(index): found.get_score(index) for index in pieces}

    def pieces_of_model(self, index: int) -> list[tuple[int, str]]:
        """Our id and the characters of each piece that one of the model stands for, by the model's id."""
        [ours], piece = self._our_ids([index]), self.processor.id_to_piece(index)
        return [(ours, self._characters_of(ours, piece))]

    def _prepared(self, text: str) -> tuple[str, list[int] | None]:
        """The text that the model reads, and for each of its characters, and for its end, the place in `text`; None if
        these are the same."""
        return text, None

    @classmethod
    def is_cut_again(cls, piece: str) -> bool:
        """Whether a piece that the model finds is cut once more."""
        return False

    @staticmethod
    def steps() -> list[dict]:
        """What `_prepared` does, as the steps of the normalizer in a tokenizer.json."""
        return []

    def settings(self) -> dict[str, bool]:
        """The constructor's further arguments."""
        return {name: getattr(self, name) for name in self.options}

    def pipeline(self, masks: bool = False) -> Pipeline:
        """Returns the equivalent tokenizer of the `tokenizers` library, which can be saved; with `masks`, it recognizes
        the mask token in a text."""
        hidden = {*self.names, *self.further_controls} - {self.names[-1] if masks else None}
        pipeline = pipeline_of(self, hidden)
        if masks:
            pipeline.add_special_tokens([control_token(self, self.mask_id)])
        return pipeline

    def get_config(self) -> dict:
        return {"model": base64.b64encode(self.model).decode("ascii"), **self.settings()}

    @classmethod
    def from_config(cls, config: dict) -> "SentencePieceTokenizer":
        return cls(**{**config, "model": base64.b64decode(config["model"])})

    def ids_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Returns the IDs of each text without control tokens."""
        prepared = [self._prepared(text)[0] for text in texts]
        return [self._our_ids(ids) for ids in self.processor.encode(prepared, out_type=int)]

    def _cut(self, text: str) -> tuple[list[int], list[str], list[tuple[int, int]]]:
        """Ids, tokens and offsets of the pieces of a text."""
        prepared, source = self._prepared(text)
        ids, pieces = self._ids_and_pieces(prepared)
        _, places = self._normalizer.normalize(prepared, with_offsets=True)
        ends = np.cumsum([len(piece) for piece in pieces]).tolist()
        offsets, begin = [], 0
        for index, end in zip(ids, ends, strict=True):
            if offsets and index in self.further_bytes:  # which stand where the first byte of the character does
                offsets.append(offsets[-1])
                continue
            first, last = places[begin], places[end]
            if source is not None:
                first, last = source[first], source[last]
            offsets.append(stripped_span(text, first, max(first, last)))
            begin = end
        return ids, [self.vocabulary[index] for index in ids], offsets

    def _ids_and_pieces(self, prepared: str) -> tuple[list[int], list[str]]:
        """Our ids of a prepared text, and the characters of the normalized text that each stands for."""
        ids = self._our_ids(self.processor.encode(prepared, out_type=int))
        return ids, list(map(self._characters_of, ids, self.processor.encode(prepared, out_type=str)))

    def _characters_of(self, index: int, piece: str) -> str:
        """As many characters as a piece stands for: the first byte of a character for one, the others for none."""
        return "" if index in self.further_bytes else "?" if index in self.bytes_of else piece

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = True) -> str:
        """Returns the text of IDs. Normalized characters stay normalized; bytes that are no UTF-8 become U+FFFD."""
        return self._text_of_pieces(ids, skip_special_tokens).removeprefix(" ")

    @property
    def is_continuation(self) -> list[bool]:
        """For each token of the vocabulary, whether it continues the word before it, as punctuation does."""
        first = (SPACE, *self.names, *self.further_controls)
        goes_on = [not token.startswith(first) for token in self.vocabulary]
        return [one or index in self.further_bytes for index, one in enumerate(goes_on)]

    def piece_text(self, index: int) -> str:
        """Returns a token as text, with the space before a word; the name of a control token."""
        return self.id_to_token(index).replace(SPACE, " ")

    @classmethod
    def is_in(cls, files: VocabularyFiles) -> bool:
        """Whether files of a checkpoint directory are those of such a tokenizer."""
        if cls.files[0] == "spiece.model":
            return cls is _kind_of_spiece_model(files)
        if cls.files[0] == "sentencepiece.bpe.model":
            return cls is _kind_of_bpe_model(files)
        return cls.files[0] in files or files.first_pieces[:1] == [cls.first]

    @classmethod
    def from_pretrained(cls, directory: str | Path) -> "SentencePieceTokenizer":
        """Opens the tokenizer of a checkpoint directory of Hugging Face.

        Args:
            directory (str or pathlib.Path): holds the model file or a tokenizer.json, and often tokenizer_config.json.

        Raises: FileNotFoundError; ValueError and ImportError as in the constructor; ValueError if tokenizer.json has
            steps that give other IDs than the family's tokenizer, a file has other control tokens or added tokens, or
            the files contradict each other.
        """
        directory = Path(directory)
        config_path, steps_path = directory / "tokenizer_config.json", directory / "tokenizer.json"
        config = read_json_if_there(config_path)
        if config.get("add_prefix_space") is False:
            raise ValueError(
                f"{config_path}: add_prefix_space is False, but this tokenizer puts a space before each text, as the "
                "family's published models expect. Remove the entry if this model expects it as well."
            )
        said = {name: bool(config[key]) for name, key in cls.options.items() if config.get(key) is not None}
        model = directory / cls.files[0]
        if not steps_path.is_file():
            found = cls(model, **said)
        else:
            settings, pieces, table, has_bytes = read_file(steps_path, cls)
            for name, value in said.items():
                agreed(directory, name, config_path.name, settings[name], value)
            if model.is_file():
                found = cls(model, **settings)
                agreed(directory, "tokens", model.name, [token for token, _ in pieces], found.vocabulary)
                agreed(directory, "tables of characters", model.name, table, character_map(found.model))
            else:
                pieces = cls._in_model_order(pieces, steps_path)
                found = cls(model_of(cls, pieces, table, has_bytes), **settings)
        check_directory(found, directory)
        return found

    @classmethod
    def _in_model_order(cls, pieces, path):
        """Pieces in the order of our ids in that of the model's."""
        return pieces

    def write_vocabulary_files(self, directory: Path) -> dict:
        """Writes the model file, tokenizer.json, and returns the content of tokenizer_config.json, which
        Hugging Face's tokenizer of the family opens."""
        (directory / self.files[0]).write_bytes(self.model)
        # transformers prefers it: to read the model file it needs a version of protobuf that TensorFlow refuses.
        write_file(self, directory / "tokenizer.json")
        tokens = self._control_tokens_with_stripping_mask
        ends = self.further_controls[:2] or (tokens["cls_token"], tokens["sep_token"])
        ends = dict(zip(("bos_token", "eos_token"), ends, strict=True))
        own = {key: getattr(self, name) for name, key in self.options.items()}
        return {"tokenizer_class": self.published_class, **ends, **tokens, **own, **self.further_config}


class AlbertTokenizer(SentencePieceTokenizer):
    """The tokenizer of ALBERT (Lan et al. 2020, section 3.2): SentencePiece after lower-casing.

    As in Google's code, the quotation marks `` and '' become ", and accents are removed unless `keep_accents`. A token
    that ends in a digit and a comma is split once more, so that "2018," and "2018" begin alike. The inputs are
    `[CLS] text [SEP]`, and `[CLS] text [SEP] pair [SEP]` for pairs, with segments 0 and 1.

    Args:
        model (str, pathlib.Path or bytes): path of a spiece.model, or its content.
        lowercase (bool, optional): whether text is lower-cased. Default: True.
        keep_accents (bool, optional): whether accents are kept. Default: False.

    Raises: FileNotFoundError; ImportError without the package sentencepiece; ValueError if the file is damaged or has
        other control tokens.
    """

    kind = "sentence_piece"
    files = ("spiece.model", "tokenizer.json", "tokenizer_config.json")
    published_class = "AlbertTokenizer"
    template = BERT_ROWS
    names = ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]")
    mask_texts = ("[MASK]",)
    options: typing.ClassVar[dict] = {"lowercase": "do_lower_case", "keep_accents": "keep_accents"}
    further_config: typing.ClassVar[dict] = {"model_input_names": INPUTS_WITH_SEGMENTS}

    def __init__(self, model: str | Path | bytes, lowercase: bool = True, keep_accents: bool = False):
        super().__init__(model)
        self.lowercase, self.keep_accents = lowercase, keep_accents
        self._with_comma = {index for index, token in enumerate(self.vocabulary) if self.is_cut_again(token)}

    @classmethod
    def is_cut_again(cls, piece: str) -> bool:
        return len(piece) > 1 and piece[-1] == "," and piece[-2].isdigit()

    def _prepared(self, text):
        return prepare(text, self.lowercase, self.keep_accents)

    @staticmethod
    def steps(lowercase, keep_accents) -> list[dict]:
        quotes = [{"type": "Replace", "pattern": {"String": marks}, "content": '"'} for marks in ("``", "''")]
        accents = [] if keep_accents else [{"type": "NFKD"}, {"type": "StripAccents"}]
        return [*quotes, *accents, *([{"type": "Lowercase"}] if lowercase else [])]

    def ids_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Returns the IDs of each text without control tokens."""
        prepared = [self._prepared(text)[0] for text in texts]
        found = self.processor.encode(prepared, out_type=int)
        return [
            self._ids_and_pieces(text)[0] if self._with_comma & set(ids) else ids
            for text, ids in zip(prepared, found, strict=True)
        ]

    def _ids_and_pieces(self, prepared):
        ids, pieces = super()._ids_and_pieces(prepared)
        if not self._with_comma & set(ids):
            return ids, pieces
        found = []
        for index, piece in zip(ids, pieces, strict=True):
            found += self._without_comma(piece) if index in self._with_comma else [(index, piece)]
        return [index for index, _ in found], [piece for _, piece in found]

    def pieces_of_model(self, index: int) -> list[tuple[int, str]]:
        piece = self.processor.id_to_piece(index)
        return self._without_comma(piece) if index in self._with_comma else [(index, piece)]

    def _without_comma(self, piece):
        """(id, piece) of each part of a piece that ends in a digit and a comma, as `encode_pieces` of ALBERT's code."""
        cut = self.processor.encode(piece[:-1].replace(SPACE, ""), out_type=str)
        if not piece.startswith(SPACE) and cut[0].startswith(SPACE):
            cut = cut[1:] if cut[0] == SPACE else [cut[0][1:], *cut[1:]]
        return [(self.processor.piece_to_id(part), part) for part in [*cut, ","]]


class XLNetTokenizer(AlbertTokenizer):
    """The tokenizer of XLNet (Yang et al. 2019): SentencePiece after the steps of ALBERT's tokenizer.

    The inputs are `text <sep> <cls>`, and `text <sep> pair <sep> <cls>` for pairs, with segments 0 and 1, and 2 for
    <cls>. They are padded on the right here and on the left in transformers, as tokenizer_config.json says; an XLNet
    gives the same outputs for both. A text may contain <eop>, the end of a paragraph.

    Args:
        model (str, pathlib.Path or bytes): path of a spiece.model, or its content.
        lowercase (bool, optional): whether text is lower-cased. Default: False.
        keep_accents (bool, optional): whether accents are kept; transformers 5 removes them in any case.
            Default: False.
    """

    kind = "xlnet_sentence_piece"
    published_class = "XLNetTokenizer"
    template = XLNET_ROWS
    names = ("<pad>", "<unk>", "<cls>", "<sep>", "<mask>")
    mask_texts = ("<mask>", "[MASK]")
    further_controls = ("<s>", "</s>", "<eod>")
    further_config: typing.ClassVar[dict] = {**AlbertTokenizer.further_config, "padding_side": "left"}
    listed_tokens = (*further_controls, "<eop>")

    def __init__(self, model: str | Path | bytes, lowercase: bool = False, keep_accents: bool = False):
        super().__init__(model, lowercase, keep_accents)


class XLMRobertaTokenizer(SentencePieceTokenizer):
    """The tokenizer of XLM-RoBERTa (Conneau et al. 2020, section 3.1): SentencePiece with fairseq's IDs.

    fairseq puts <s>, <pad>, </s> and <unk> before the model's tokens and <mask> after them. Nothing is lower-cased. The
    inputs are `<s> text </s>`, and `<s> text </s></s> pair </s>` for pairs, always with segment 0.

    Args:
        model (str, pathlib.Path or bytes): path of a sentencepiece.bpe.model, or its content.
    """

    kind = "xlm_sentence_piece"
    files = ("sentencepiece.bpe.model", "tokenizer.json", "tokenizer_config.json")
    published_class = "XLMRobertaTokenizer"
    template = ROBERTA_ROWS
    names = ("<pad>", "<unk>", "<s>", "</s>", "<mask>")
    mask_texts = ("<mask>", "[MASK]")
    first = "<s>"

    def _vocabulary(self):
        pieces = super()._vocabulary()
        if pieces[:3] != ["<unk>", "<s>", "</s>"]:
            raise ValueError(
                f"The SentencePiece model begins with {' '.join(pieces[:3])}, but XLM-RoBERTa's with <unk> <s> </s>."
            )
        return ["<s>", "<pad>", "</s>", "<unk>", *pieces[3:], "<mask>"]

    @classmethod
    def _in_model_order(cls, pieces, path):
        tokens = [token for token, _ in pieces]
        if tokens[:4] != ["<s>", "<pad>", "</s>", "<unk>"] or tokens[-1] != "<mask>":
            raise ValueError(
                f"{path}: an XLM-RoBERTa vocabulary must begin with <s> <pad> </s> <unk> and end with <mask>."
            )
        return [pieces[3], pieces[0], pieces[2], *pieces[4:-1]]

    def _our_ids(self, ids):
        # <unk> is the only control token that a text gives.
        return [index + 1 if index else self.unk_id for index in ids]


class CamembertTokenizer(XLMRobertaTokenizer):
    """The tokenizer of CamemBERT (Martin et al. 2020): XLM-RoBERTa's, with other IDs before the model's tokens.

    Args:
        model (str, pathlib.Path or bytes): path of a sentencepiece.bpe.model, or its content.
    """

    kind = "camembert_sentence_piece"
    published_class = "CamembertTokenizer"
    first = "<s>NOTUSED"
    before = ("<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>", "<unk>NOTUSED")
    listed_tokens = ("<s>NOTUSED", "</s>NOTUSED", "<unk>NOTUSED")

    def _vocabulary(self):
        super()._vocabulary()  # which checks the model
        pieces = SentencePieceTokenizer._vocabulary(self)
        return [*self.before, *pieces[1:], "<mask>"]

    @classmethod
    def _in_model_order(cls, pieces, path):
        tokens = [token for token, _ in pieces]
        if (*tokens[:5], tokens[-1]) != (*cls.before, "<mask>"):
            raise ValueError(
                f"{path}: a CamemBERT vocabulary must begin with {' '.join(cls.before)} and end with <mask>."
            )
        return [pieces[3], *pieces[5:-1]]

    def _our_ids(self, ids):
        return [index + 4 if index else self.unk_id for index in ids]


class DebertaV2Tokenizer(SentencePieceTokenizer):
    """The tokenizer of DeBERTa versions 2 and 3 (He et al. 2021): SentencePiece, with [MASK] after its tokens.

    Nothing is lower-cased. A model with byte fallback, as in version 3, turns an unknown character into its bytes, as
    Microsoft's code does. The inputs are `[CLS] text [SEP]`, and `[CLS] text [SEP] pair [SEP]` for pairs, with segments
    0 and 1, which the encoder ignores.

    Args:
        model (str, pathlib.Path or bytes): path of an spm.model, or its content.
    """

    kind = "deberta_sentence_piece"
    files = ("spm.model", "tokenizer.json", "tokenizer_config.json")
    # That of transformers 5 would take the pieces from the file, but not its normalization.
    published_class = "PreTrainedTokenizerFast"
    similar_classes = ("DebertaV2Tokenizer",)
    template = BERT_ROWS
    names = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    mask_texts = ("[MASK]",)
    first = "[PAD]"
    knows_bytes = True

    def __init__(self, model: str | Path | bytes):
        super().__init__(model)
        # A model without byte fallback may have such pieces, too, which then stand for their characters.
        is_byte = self.processor.is_byte
        self.bytes_of = {i: bytes([int(self.vocabulary[i][3:5], 16)]) for i in range(len(self.processor)) if is_byte(i)}
        self.further_bytes = {index for index, byte in self.bytes_of.items() if b"\x80" <= byte < b"\xc0"}

    def _vocabulary(self):
        pieces = super()._vocabulary()
        return pieces if self.names[-1] in pieces else [*pieces, self.names[-1]]

    @classmethod
    def _in_model_order(cls, pieces, path):
        return pieces[:-1] if pieces[-1][0] == cls.names[-1] else pieces

    @staticmethod
    def steps() -> list[dict]:
        return [{"type": "Strip", "strip_left": True, "strip_right": True}]


class BigBirdTokenizer(SentencePieceTokenizer):
    """The tokenizer of BigBird (Zaheer et al. 2020): SentencePiece with GPT-2's tokens.

    Nothing is lower-cased or normalized, except that several spaces become one. The inputs are `[CLS] text [SEP]`, and
    `[CLS] text [SEP] pair [SEP]` for pairs, with segments 0 and 1; transformers gives segments only on request. The
    published model would recognize [CLS], [SEP], [MASK] and <s> in texts; here, and in models saved here, they are
    ordinary text. Other reserved names, such as <unused_50>, are recognized.

    Args:
        model (str, pathlib.Path or bytes): path of a spiece.model, or its content.
    """

    kind = "bigbird_sentence_piece"
    files = ("spiece.model", "tokenizer.json", "tokenizer_config.json")
    published_class = "BigBirdTokenizer"
    template = BERT_ROWS
    names = ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]")
    mask_texts = ("[MASK]",)
    further_controls = ("<s>", "</s>")
    further_config = AlbertTokenizer.further_config
    split = AT_SPACES  # the model has no table of characters: other white space is unknown to it
    # Of the published vocabulary, whose ids 3 to 99 they have, but for those of [CLS], [SEP] and [MASK].
    reserved = (
        *(f"<sep_{number}>" for number in range(5)),
        *(f"<length_{number}>" for number in (*range(21), "s", "m", "l")),
        *(f"<unused_{number}>" for number in (*range(34, 37), *range(39, 50), *range(67, 99))),
        *(f"<paraphrasing_{number}>" for number in range(9)),
        *("<no_saic_raw_sp>", "<no_query_sp>", "<no_passage_raw_sp>"),
        *("<::::>", "<space>", "<empty>", "<row>", "<cn>", "<t>", "<ans>"),
    )
    listed_tokens = (*further_controls, *reserved)

    @classmethod
    def _own_model(cls, content: bytes) -> bytes:
        return as_controls(content, (*cls.names, *cls.further_controls))


def _kind_of_spiece_model(files):
    """The class of a spiece.model in a directory, or of the vocabulary in its tokenizer.json; three have such files."""
    is_there = "spiece.model" in files
    pieces = first_pieces(files.directory / "spiece.model") if is_there else files.first_pieces
    if pieces[:1] == ["<unk>"]:
        return XLNetTokenizer
    if pieces == ["<pad>", "</s>"]:
        return BigBirdTokenizer
    return AlbertTokenizer if is_there or pieces[:1] == ["<pad>"] else None


def _kind_of_bpe_model(files):
    """The class of a sentencepiece.bpe.model in a directory, or of the vocabulary in its tokenizer.json."""
    first = files.first_pieces[:1]
    if not first and "sentencepiece.bpe.model" in files:
        read = [read_json_if_there(files.directory / name) for name in ("tokenizer_config.json", "config.json")]
        named = [*(content.get("tokenizer_class") for content in read), read[1].get("model_type")]
        is_camembert = any("camembert" in str(name).lower() for name in named)
        first = [(CamembertTokenizer if is_camembert else XLMRobertaTokenizer).first]
    return next((kind for kind in (XLMRobertaTokenizer, CamembertTokenizer) if first == [kind.first]), None)


def prepare(text: str, lowercase: bool, keep_accents: bool) -> tuple[str, list[int]]:
    """A text as ALBERT's model reads it, and for each character of it, and for its end, the place in `text`.

    As `preprocess_text` of google-research/albert's tokenization.py; several spaces are left to the model.
    """
    characters, source = [], []
    whole = re.sub("``|''", lambda quotes: '"\0', text)  # as long as before, so that characters keep their places
    if lowercase and "Σ" in whole:  # the only character whose small letter depends on its neighbours
        small = whole.lower() if len(whole.lower()) == len(whole) else whole.replace("Σ", "\u03c3")
        whole = "".join(new if old == "Σ" else old for old, new in zip(whole, small, strict=True))
    for place, character in enumerate(whole):
        if character == "\0" and text[place] != "\0":
            continue
        character = prepared_character(character, lowercase, keep_accents)
        characters.append(character)
        source += [place] * len(character)
    return "".join(characters), [*source, len(text)]


def prepared_character(character: str, lowercase: bool, keep_accents: bool) -> str:
    """What `prepare` makes of a character, whatever its neighbours are."""
    if character.isspace():
        return " "
    if not keep_accents:
        character = "".join(c for c in unicodedata.normalize("NFKD", character) if not unicodedata.combining(c))
    return character.lower() if lowercase else character
