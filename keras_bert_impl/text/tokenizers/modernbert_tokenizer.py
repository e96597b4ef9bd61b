"""ModernBERT's and mmBERT's tokenizers: byte-pair encoding in BERT's rows, with tokens for runs of spaces."""

import functools
import sys
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers import Tokenizer as Pipeline

from keras_bert_impl.text.tokenizers.byte_pair_tokenizer import WHITE_SPACE, BytePairTokenizer, DebertaTokenizer
from keras_bert_impl.text.tokenizers.byte_pair_vocabulary import MMBERT, MODERNBERT, NFC, read_tokenizer_file
from keras_bert_impl.text.tokenizers.directory_checks import check_directory
from keras_bert_impl.text.tokenizers.rows import MODERNBERT_ROWS
from keras_bert_impl.text.tokenizers.tokenizer_json import VocabularyFiles

# The runs of spaces that the published vocabulary has, the longest first: code is full of them.
RUNS_OF_SPACES = tuple(" " * count for count in range(24, 1, -1))
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]  # in mmBERT's vocabulary


class ModernBertTokenizer(BytePairTokenizer):
    """The tokenizer of ModernBERT and Ettin: byte-level BPE with BERT's control tokens (Warner et al. 2024).

    The vocabulary is that of OLMo (Groeneveld et al. 2024), which is GPT-NeoX's. Differences from RoBERTa's tokenizer:

    - a text is normalized to Unicode's composed form NFC;
    - `added_tokens`, such as runs of spaces, are never split; the longest is chosen, and the text after it is encoded
      on its own;
    - the inputs are `[CLS] text [SEP]`, and `[CLS] text [SEP] pair [SEP]` for pairs, always with segment 0.

    "[CLS]" and the like in a text are ordinary text, as are "<|padding|>" and "<|endoftext|>"; only `encode_with_masks`
    recognizes "[MASK]".

    Args:
        vocabulary (str, pathlib.Path or list of str): path of a vocab.json, or the tokens in the order of their IDs.
        merges (str, pathlib.Path or list): path of a merges.txt, or pairs of tokens, the most important first.
        add_prefix_space (bool, optional): whether a text that does not begin with a space gets one. Default: False.
        added_tokens (list of str, optional): tokens of the vocabulary that are never split. Default: none.

    Raises: FileNotFoundError; ValueError if one of [CLS] [PAD] [SEP] [UNK] [MASK] or an added token is missing, IDs
        have gaps, or the merges do not belong to the vocabulary.
    """

    kind = "modernbert_byte_pair"
    files = ("tokenizer.json", "tokenizer_config.json")
    template = MODERNBERT_ROWS
    mask_texts = ("[MASK]",)
    dialect = MODERNBERT
    listed_tokens = MODERNBERT.unread
    published_class = "PreTrainedTokenizerFast"
    similar_classes = ()
    settings: ClassVar[dict] = {
        "clean_up_tokenization_spaces": False,
        "model_input_names": ["input_ids", "attention_mask"],
    }
    _blanks = " "  # which are not among the characters of a piece

    def __init__(
        self,
        vocabulary: str | Path | Sequence[str],
        merges: str | Path | Sequence,
        add_prefix_space: bool = False,
        added_tokens: Sequence[str] = (),
    ):
        self.added_tokens = list(added_tokens)
        super().__init__(vocabulary, merges, add_prefix_space)
        self.added_tokens = sorted(set(self.added_tokens), key=self._ids.get)  # as files have them
        # Of which the spaces before a piece are part of it, as they are not in what other programs show.
        self._library.post_processor = processors.ByteLevel(trim_offsets=False)

    def pipeline(self, masks: bool = False) -> Pipeline:
        pipeline = super().pipeline()
        pipeline.normalizer = normalizers.NFC()
        pipeline.add_tokens([AddedToken(token, normalized=True) for token in self.added_tokens])
        # With a space before each part of a text, the library would cut a character off after an added token.
        trim = [] if self.add_prefix_space else [processors.ByteLevel(trim_offsets=True, add_prefix_space=False)]
        pipeline.post_processor = processors.Sequence([*trim, self.row_processor])
        return self._with_mask(pipeline) if masks else pipeline

    def get_config(self) -> dict:
        return {**super().get_config(), "added_tokens": self.added_tokens}

    def _cut(self, text):
        is_composed = self.dialect.normalizer == NFC
        composed, begins, ends = nfc_with_places(text) if is_composed else (text, None, None)
        found = self._library.encode(composed, add_special_tokens=False)
        offsets = []
        for token, (start, end) in zip(found.tokens, found.offsets, strict=True):
            if token == self.dialect.space and composed[start] not in self._blanks:
                end = start  # it was put before the text, and is not in it
            while start < end and composed[start] in self._blanks:
                start += 1
            while end > start and composed[end - 1] in self._blanks:
                end -= 1
            if begins is not None:
                start, end = begins[start], ends[end - 1] if end > start else begins[start]
            offsets.append((start, end))
        return found.ids, found.tokens, offsets

    @classmethod
    def is_in(cls, files: VocabularyFiles) -> bool:
        """Whether files of a checkpoint directory are those of such a tokenizer."""
        # The files of DeBERTa's version 1 hold its vocabulary beside a tokenizer.json, as transformers writes it.
        return files.algorithm == "BPE" and "[CLS]" in files.tokens and not DebertaTokenizer.is_in(files)

    def write_vocabulary_files(self, directory: Path) -> dict:
        """Writes tokenizer.json, and returns the content of tokenizer_config.json, which
        Hugging Face's AutoTokenizer opens."""
        pipeline = self.pipeline(masks=True)
        others = [AddedToken(name, special=True, normalized=False) for name in self.dialect.control[:-1]]
        pipeline.add_special_tokens(others)
        (directory / "tokenizer.json").write_text(pipeline.to_str(), encoding="utf-8")
        return self._config_for_hugging_face()


class MmBertTokenizer(ModernBertTokenizer):
    """The tokenizer of mmBERT (Marone et al. 2025): Gemma 2's vocabulary, with a space before each text.

    Each space becomes "▁", and a text that does not begin with one gets one. The text is split into words that begin
    with "▁", and the characters of a word are merged as the merges say. A character that is not in the vocabulary
    becomes its UTF-8 bytes. Case, accents and further spaces are kept. `added_tokens`, such as runs of line breaks and
    HTML tags, are never split; the longest is chosen, and the text after it is encoded on its own.

    The inputs are `<bos> text <eos>`, and `<bos> text <eos> pair <eos>` for pairs, always with segment 0. "<bos>" and
    the like in a text are ordinary text, as are Gemma's "<start_of_turn>" and "<end_of_turn>"; only `encode_with_masks`
    recognizes "<mask>" and "[MASK]".

    Args:
        vocabulary (list of str): the tokens in the order of their IDs.
        merges (list): pairs of tokens, the most important first.
        added_tokens (list of str, optional): tokens of the vocabulary that are never split. Default: none.

    Raises: ValueError if one of <bos> <pad> <eos> <unk> <mask>, an added token or the token of a byte is missing, IDs
        have gaps, or the merges do not belong to the vocabulary.
    """

    kind = "mmbert_byte_pair"
    mask_texts = ("<mask>", "[MASK]")
    dialect = MMBERT
    listed_tokens = MMBERT.unread
    similar_classes = ("GemmaTokenizer",)
    has_prefix_option = False
    settings: ClassVar[dict] = {**ModernBertTokenizer.settings, "bos_token": "<bos>", "eos_token": "<eos>"}
    _blanks = f" {MMBERT.space}"

    def __init__(self, vocabulary: Sequence[str], merges: Sequence, added_tokens: Sequence[str] = ()):
        super().__init__(vocabulary, merges, add_prefix_space=True, added_tokens=added_tokens)
        # In files of Gemma a character of one byte stands for that: "\t" for <0x09>.
        missing = [
            name for byte, name in enumerate(BYTES) if not {name, chr(byte) if byte < 128 else name} & self._ids.keys()
        ]
        if missing:
            raise ValueError(
                f"the vocabulary has no token for {len(missing)} of 256 bytes, such as {missing[0]}: characters "
                "that need them would be lost."
            )
        self.bytes_of = {self._ids[name]: bytes([byte]) for byte, name in enumerate(BYTES) if name in self._ids}

    def pipeline(self, masks: bool = False) -> Pipeline:
        control = self.dialect.control
        # Names of control tokens in a text are ordinary text, and their pieces stay apart.
        merges = [pair for pair in self.merges if "".join(pair) not in control]
        pipeline = Pipeline(models.BPE(self._ids, merges, unk_token=control[3], fuse_unk=True, byte_fallback=True))
        pipeline.normalizer = normalizers.Replace(" ", MMBERT.space)
        pipeline.pre_tokenizer = pre_tokenizers.Metaspace(replacement=MMBERT.space, prepend_scheme="always", split=True)
        pipeline.decoder = decoders.Sequence(
            [decoders.Replace(MMBERT.space, " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
        )
        pipeline.add_tokens([AddedToken(token, normalized=False) for token in self.added_tokens])
        pipeline.post_processor = self.row_processor
        return self._with_mask(pipeline) if masks else pipeline

    @property
    def stripped(self) -> str:
        """The white space that a mask takes along, which a line end that is a token does not belong to."""
        return "".join(character for character in WHITE_SPACE if character not in self.added_tokens)

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = True) -> str:
        """Returns the text of IDs. Bytes that are not valid UTF-8, of a truncated character, become U+FFFD."""
        return self._text_of_pieces(ids, skip_special_tokens).removeprefix(" ")

    def piece_text(self, index: int) -> str:
        """Returns a token as text, with the space before a word; the name of a control token."""
        return self._text_of_pieces([index], skip_special_tokens=False)

    @classmethod
    def is_in(cls, files: VocabularyFiles) -> bool:
        """Whether files of a checkpoint directory are those of such a tokenizer."""
        return files.algorithm == "BPE" and "<bos>" in files.tokens

    @classmethod
    def from_pretrained(cls, directory: str | Path) -> "MmBertTokenizer":
        """Opens the tokenizer of a checkpoint directory of Hugging Face.

        Args:
            directory (str or pathlib.Path): holds a tokenizer.json, and often tokenizer_config.json.

        Raises: FileNotFoundError; ValueError as in the constructor, or if a file has steps, control tokens or added
            tokens that give other IDs than mmBERT's.
        """
        found = read_tokenizer_file(Path(directory) / "tokenizer.json", cls.dialect)
        tokenizer = cls(found["vocabulary"], found["merges"], found["added_tokens"])
        check_directory(tokenizer, directory)
        return tokenizer


def nfc_with_places(text: str) -> tuple[str, Sequence[int] | None, Sequence[int] | None]:
    """A text in Unicode's composed form NFC, with the places in `text` where each of its characters begins and ends.

    Characters that are composed or put in order with one another all have the place of the whole. The places are None
    where nothing changes; otherwise they have one entry more, for the end of the text.
    """
    if unicodedata.is_normalized("NFC", text):
        return text, None, None
    parts = []
    for place, character in enumerate(text):
        if parts and (unicodedata.combining(character) or character in _joined_to_others()):
            parts[-1] = parts[-1][0], place + 1
        else:
            parts.append((place, place + 1))
    composed, spans = "", []
    for start, end in parts:
        part = unicodedata.normalize("NFC", text[start:end])
        is_same = part == text[start:end]
        spans += [(place, place + 1) for place in range(start, end)] if is_same else [(start, end)] * len(part)
        composed += part
    begins, ends = zip(*spans, (len(text), len(text)), strict=True)
    return composed, begins, ends


@functools.cache
def _joined_to_others():
    """The characters that are composed with the one before them though they are no combining marks: vowels and final
    consonants of Hangul, and vowel signs of Indian scripts."""
    hangul = [*range(0x1161, 0x1176), *range(0x11A8, 0x11C3)]
    pairs = (unicodedata.decomposition(chr(code)).split(" ") for code in range(sys.maxunicode + 1))
    seconds = {int(pair[1], 16) for pair in pairs if len(pair) == 2 and not pair[0].startswith("<")}
    return {chr(code) for code in (*hangul, *seconds) if not unicodedata.combining(chr(code))}
