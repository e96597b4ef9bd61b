"""mmBERT's tokenizer: Gemma's byte-pair encoding of characters, over words that take the space before them along."""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers
from tokenizers import Tokenizer as Pipeline

from keras_bert_impl.text.tokenizers.byte_pair_tokenizer import WHITE_SPACE
from keras_bert_impl.text.tokenizers.byte_pair_vocabulary import MMBERT, read_tokenizer_file
from keras_bert_impl.text.tokenizers.cutting_tokenizer import text_of_pieces
from keras_bert_impl.text.tokenizers.directory_checks import check_directory
from keras_bert_impl.text.tokenizers.modernbert_tokenizer import ModernBertTokenizer
from keras_bert_impl.text.tokenizers.tokenizer_json_reader import VocabularyFiles

SPACE = MMBERT.space
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]


class MmBertTokenizer(ModernBertTokenizer):
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
    mask_texts = ("<mask>", "[MASK]")
    dialect = MMBERT
    listed_tokens = MMBERT.unread
    similar_classes = ("GemmaTokenizer",)
    settings: ClassVar[dict] = {**ModernBertTokenizer.settings, "bos_token": "<bos>", "eos_token": "<eos>"}
    _blanks = f" {SPACE}"

    def __init__(self, vocabulary: Sequence[str], merges: Sequence, added_tokens: Sequence[str] = ()):
        super().__init__(vocabulary, merges, add_prefix_space=True, added_tokens=added_tokens)
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
        pipeline.post_processor = self.row_processor
        return self._with_mask(pipeline) if masks else pipeline

    def get_config(self) -> dict:
        return {name: value for name, value in super().get_config().items() if name != "add_prefix_space"}

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
        config = super().write_vocabulary_files(directory)
        del config["add_prefix_space"]
        return config
