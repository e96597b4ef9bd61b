"""mmBERT's tokenizer: Gemma's byte-pair encoding of characters, over words that take the space before them along."""

from collections.abc import Sequence
from pathlib import Path

from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers
from tokenizers import Tokenizer as Pipeline

from keras_bert_impl.text.tokenizers.byte_pair_tokenizer import BytePairTokenizer
from keras_bert_impl.text.tokenizers.byte_pair_vocabulary import MMBERT, read_tokenizer_file
from keras_bert_impl.text.tokenizers.cutting_tokenizer import CuttingTokenizer, text_of_pieces
from keras_bert_impl.text.tokenizers.directory_checks import check_directory
from keras_bert_impl.text.tokenizers.modernbert_tokenizer import WHITE_SPACE
from keras_bert_impl.text.tokenizers.row_template import MODERNBERT_ROWS
from keras_bert_impl.text.tokenizers.tokenizer_json_reader import VocabularyFiles

SPACE = MMBERT.space
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
BLANKS = f" {SPACE}"


class MmBertTokenizer(CuttingTokenizer, BytePairTokenizer):
    """The tokenizer of mmBERT (Marone et al. 2025): Gemma 2's vocabulary, with a space before each text.

    Each space becomes "▁"; a text that does not begin with one gets one before it; it is divided into words, each of
    which begins with "▁"; the characters of a word are merged into the pieces that the merges give, and a character
    that is not in the vocabulary becomes the bytes that it has in UTF-8. Case, accents and further spaces stay.
    `added_tokens`, such as runs of line ends and the tags of HTML, are whole wherever they are in a text, of several at
    one place the longest, and what follows one is a text of its own. A row is `<bos> text <eos>`, of a pair
    `<bos> text <eos> pair <eos>`, always with segment 0. "<bos>" and the like within a text are ordinary text, as are
    Gemma's "<start_of_turn>" and "<end_of_turn>"; only `encode_with_masks` recognizes "<mask>" and "[MASK]".

    Args:
        vocabulary: the tokens in order of their ids.
        merges: pairs of pieces, the most important first.
        added_tokens: tokens of the vocabulary that are whole in texts.

    Raises: ValueError if one of <bos> <pad> <eos> <unk> <mask>, an added token or the token of a byte is missing, ids
        have gaps, or the merges do not belong to the vocabulary.
    """

    kind = "mmbert_byte_pair"
    files = ("tokenizer.json", "tokenizer_config.json")
    template = MODERNBERT_ROWS
    mask_texts = ("<mask>", "[MASK]")
    dialect = MMBERT
    listed_tokens = MMBERT.unread

    def __init__(self, vocabulary: Sequence[str], merges: Sequence, added_tokens: Sequence[str] = ()):
        self.added_tokens = list(added_tokens)
        super().__init__(vocabulary, merges, add_prefix_space=True)
        # In files of Gemma a character of one byte stands for that: "\t" for <0x09>.
        missing = [
            name for byte, name in enumerate(BYTES) if not {name, chr(byte) if byte < 128 else name} & self._ids.keys()
        ]
        if missing:
            raise ValueError(
                f"the vocabulary has no {missing[0]}, nor {len(missing) - 1} others of the 256 bytes: characters that "
                "it does not hold would be lost."
            )
        self.bytes_of = {self._ids[name]: bytes([byte]) for byte, name in enumerate(BYTES) if name in self._ids}

    def pipeline(self, masks: bool = False) -> Pipeline:
        control = self.dialect.control
        # Names of control tokens in a text are ordinary text, and their pieces stay apart.
        merges = [pair for pair in self.merges if "".join(pair) not in control]
        pipeline = Pipeline(models.BPE(self._ids, merges, unk_token=control[3], fuse_unk=True, byte_fallback=True))
        pipeline.normalizer = normalizers.Replace(" ", SPACE)
        pipeline.pre_tokenizer = pre_tokenizers.Metaspace(replacement=SPACE, prepend_scheme="always", split=True)
        pipeline.decoder = decoders.Sequence(
            [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
        )
        pipeline.add_tokens([AddedToken(token, normalized=False) for token in self.added_tokens])
        pipeline.post_processor = self.bert_layout()
        if masks:
            pipeline.add_special_tokens([AddedToken(control[-1], special=True, normalized=False, lstrip=True)])
        return pipeline

    def get_config(self) -> dict:
        config = {**super().get_config(), "added_tokens": self.added_tokens}
        del config["add_prefix_space"]
        return config

    def _cut(self, text):
        found = self._of_texts.encode(text, add_special_tokens=False)
        offsets = []
        for token, (start, end) in zip(found.tokens, found.offsets, strict=True):
            if token == SPACE and text[start] not in BLANKS:  # which was put before the text, and is not in it
                end = start
            while start < end and text[start] in BLANKS:
                start += 1
            while end > start and text[end - 1] in BLANKS:
                end -= 1
            offsets.append((start, end))
        return found.ids, found.tokens, offsets

    def _before_mask(self, text):
        return text.rstrip(self.stripped)

    @property
    def stripped(self) -> str:
        """The white space that a mask takes along, which a line end that is a token does not belong to."""
        return "".join(character for character in WHITE_SPACE if character not in self.added_tokens)

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = True) -> str:
        """The text of ids. Bytes that are not valid UTF-8, of a character that was cut, become U+FFFD."""
        return text_of_pieces(self, ids, skip_special_tokens).removeprefix(" ")

    def piece_text(self, index: int) -> str:
        """The characters of a token, with the space before a word; of a control token its name."""
        return text_of_pieces(self, [index], skip_special_tokens=False)

    @classmethod
    def is_in(cls, files: VocabularyFiles) -> bool:
        """Whether files of a checkpoint directory are those of such a tokenizer."""
        return files.algorithm == "BPE" and "<bos>" in files.tokens

    @classmethod
    def from_pretrained(cls, directory: str | Path) -> "MmBertTokenizer":
        """The tokenizer of a checkpoint directory of Hugging Face.

        Args:
            directory: holds a tokenizer.json, and often tokenizer_config.json.

        Raises: FileNotFoundError; ValueError as in the constructor, or if a file has steps, control tokens or added
            tokens that give other ids than mmBERT's.
        """
        found = read_tokenizer_file(Path(directory) / "tokenizer.json", cls.dialect)
        tokenizer = cls(found["vocabulary"], found["merges"], found["added_tokens"])
        check_directory(tokenizer, directory)
        return tokenizer

    def write_vocabulary_files(self, directory: Path) -> dict:
        """Writes tokenizer.json, and returns the content of tokenizer_config.json, which
        Hugging Face's AutoTokenizer opens."""
        pipeline = self.pipeline(masks=True)
        cls, pad, sep, unk, mask = self.dialect.control
        pipeline.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in (cls, pad, sep, unk)])
        (directory / "tokenizer.json").write_text(pipeline.to_str(), encoding="utf-8")
        return {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "clean_up_tokenization_spaces": False,
            "model_input_names": ["input_ids", "attention_mask"],
            **dict.fromkeys(("bos_token", "cls_token"), cls),
            **dict.fromkeys(("eos_token", "sep_token"), sep),
            "pad_token": pad,
            "unk_token": unk,
            # The mask token takes the space before it along: a masked word has lost its own.
            "mask_token": {"__type": "AddedToken", "content": mask, "lstrip": True, "normalized": False},
        }
