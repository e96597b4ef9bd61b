"""Turns text into ids of byte-level BPE and character offsets, without TensorFlow."""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from tokenizers import AddedToken, decoders, models, pre_tokenizers, processors
from tokenizers import Tokenizer as Pipeline

from keras_bert_impl.json_files import read_json, read_json_if_there
from keras_bert_impl.text.tokenizers.byte_pair_vocabulary import (
    DEBERTA,
    ROBERTA,
    Dialect,
    Merges,
    check_byte_pairs,
    read_merges,
    read_tokenizer_file,
    write_files,
)
from keras_bert_impl.text.tokenizers.directory_checks import check_directory
from keras_bert_impl.text.tokenizers.rows import MODERNBERT_ROWS, ROBERTA_ROWS
from keras_bert_impl.text.tokenizers.tokenizer import Tokenizer
from keras_bert_impl.text.tokenizers.tokenizer_json import VocabularyFiles, agreed, tokens_by_id

# White space as the `tokenizers` library strips it before a mask.
WHITE_SPACE = "".join(chr(code) for code in range(0x3001) if chr(code).isspace() and not 0x1C <= code <= 0x1F)


class BytePairTokenizer(Tokenizer):
    """The tokenizer of RoBERTa: byte-level BPE (Liu et al. 2019, section 4.4; Radford et al. 2019, section 2.2).

    A text is split into words, numbers, punctuation and white space; a word includes the space before it. The UTF-8
    bytes of each are merged into the longest tokens that the merges give. Nothing is lower-cased, and no character is
    unknown. A word at the beginning of a text, without a space before it, has other IDs, unless `add_prefix_space`.

    The inputs are `<s> text </s>`, and `<s> text </s></s> pair </s>` for pairs, always with segment 0. "<s>" and the
    like in a text are ordinary text; only `encode_with_masks` recognizes "<mask>", and "[MASK]", which means the same.

    Args:
        vocabulary (str, pathlib.Path or list of str): path of a vocab.json, or the tokens in the order of their IDs.
        merges (str, pathlib.Path or list): path of a merges.txt, or pairs of tokens, the most important first.
        add_prefix_space (bool, optional): whether a text that does not begin with a space gets one. Default: False.

    Raises: FileNotFoundError; ValueError if one of <s> <pad> </s> <unk> <mask> is missing, IDs have gaps, or the merges
        do not belong to the vocabulary.
    """

    kind = "byte_pair"
    dialect: ClassVar[Dialect] = ROBERTA
    files = ("vocab.json", "merges.txt", "tokenizer_config.json")
    template = ROBERTA_ROWS
    mask_texts = ("<mask>", "[MASK]")
    stripped = WHITE_SPACE
    published_class = "RobertaTokenizer"
    similar_classes = ("BartTokenizer", "LongformerTokenizer")
    settings: ClassVar[dict] = {"trim_offsets": True, "bos_token": "<s>", "eos_token": "</s>"}  # for Hugging Face
    lowercase = False
    has_prefix_option: ClassVar[bool] = True  # whether `add_prefix_space` is a choice

    def __init__(
        self, vocabulary: str | Path | Sequence[str], merges: str | Path | Sequence, add_prefix_space: bool = False
    ):
        is_path = isinstance(vocabulary, str | Path)
        self.vocabulary = tokens_by_id(vocabulary, read_json(vocabulary), {}) if is_path else list(vocabulary)
        source = str(vocabulary) if is_path else "vocabulary"
        check_byte_pairs(self.vocabulary, source, self.dialect)
        self.merges: Merges = read_merges(merges) if isinstance(merges, str | Path) else [tuple(p) for p in merges]
        self.add_prefix_space = add_prefix_space
        control = self._ids_of(self.dialect.control, source)
        self.cls_id, self.pad_id, self.sep_id, self.unk_id, self.mask_id = control
        self._library = self.pipeline()

    def pipeline(self, masks: bool = False) -> Pipeline:
        """Returns the equivalent tokenizer of the `tokenizers` library, which can be saved; with `masks`, it recognizes
        the mask token in a text, together with the space before it."""
        # A byte that is not in the vocabulary would otherwise be dropped without a word.
        pipeline = Pipeline(models.BPE(self._ids, self.merges, unk_token=self.id_to_token(self.unk_id)))
        pipeline.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=self.add_prefix_space)
        pipeline.decoder = decoders.ByteLevel()
        trim = processors.ByteLevel(trim_offsets=True, add_prefix_space=self.add_prefix_space)
        pipeline.post_processor = processors.Sequence([trim, self.row_processor])
        return self._with_mask(pipeline) if masks else pipeline

    def _with_mask(self, pipeline):
        # The other control tokens are not "added" to the pipeline: the library would find added tokens in the text.
        mask = self.id_to_token(self.mask_id)
        pipeline.add_special_tokens([AddedToken(mask, special=True, normalized=False, lstrip=True)])
        return pipeline

    def get_config(self) -> dict:
        return {
            "vocabulary": self.vocabulary,
            "merges": [list(pair) for pair in self.merges],
            **self._prefix_option,
        }

    @property
    def _prefix_option(self):
        return {"add_prefix_space": self.add_prefix_space} if self.has_prefix_option else {}

    def _cut(self, text):
        found = self._library.encode(text, add_special_tokens=False)
        return found.ids, found.tokens, found.offsets

    def ids_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Returns the IDs of each text without control tokens."""
        encodings = self._library.encode_batch_fast(list(texts), add_special_tokens=False)
        return [encoding.ids for encoding in encodings]

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = True) -> str:
        """Returns the text of IDs. Bytes that are not valid UTF-8, of a truncated character, become U+FFFD."""
        return decoders.ByteLevel().decode(self._tokens(ids, skip_special_tokens))

    def in_running_text(self, sentences: Sequence[str]) -> list[str]:
        return [*sentences[:1], *(f" {sentence}" for sentence in sentences[1:])]

    @property
    def is_continuation(self) -> list[bool]:
        """For each token of the vocabulary, whether it continues the word before it, as every token without a space in
        front does, also punctuation."""
        whole = {*self.dialect.control, *(self.added_tokens or ())}
        return [not token.startswith(self.dialect.space) and token not in whole for token in self.vocabulary]

    def piece_text(self, index: int) -> str:
        """Returns a token as text, with the space before a word; the name of a control token."""
        return self.decode([index], skip_special_tokens=False)

    @classmethod
    def is_in(cls, files: VocabularyFiles) -> bool:
        """Whether files of a checkpoint directory are those of such a tokenizer."""
        if files.algorithm == "BPE":
            return (
                not {"[CLS]", "<bos>", "<|begin_of_text|>"} & files.tokens
            )  # of an unknown one RoBERTa's says what it lacks
        return "vocab.json" in files and "[CLS]" not in files.words

    @classmethod
    def from_pretrained(cls, directory: str | Path) -> "BytePairTokenizer":
        """Opens the tokenizer of a checkpoint directory of Hugging Face, or of fairseq converted to it.

        Args:
            directory (str or pathlib.Path): holds vocab.json and merges.txt, or a tokenizer.json, and often
                tokenizer_config.json.

        Raises: FileNotFoundError; ValueError as in the constructor, if a file has steps, control tokens or added tokens
            that give other IDs than RoBERTa's, or if the files disagree.
        """
        directory = Path(directory)
        config_path, steps_path = directory / "tokenizer_config.json", directory / "tokenizer.json"
        config = read_json_if_there(config_path)
        steps = read_tokenizer_file(steps_path, cls.dialect) if steps_path.is_file() else {}
        spaces = [found.get("add_prefix_space") for found in (steps, config)]
        arguments = {
            **steps,
            "add_prefix_space": bool(agreed(directory, "add_prefix_space", config_path.name, *spaces)),
        }
        if not steps or (directory / "vocab.json").is_file():
            arguments |= {"vocabulary": directory / "vocab.json", "merges": directory / "merges.txt"}
        found = cls(**arguments)
        agreed(directory, "tokens", "vocab.json", steps.get("vocabulary"), found.vocabulary)
        agreed(directory, "merges", "merges.txt", steps.get("merges"), found.merges)
        check_directory(found, directory)
        return found

    def write_vocabulary_files(self, directory: Path) -> dict:
        """Writes vocab.json, merges.txt, and returns the content of tokenizer_config.json, which Hugging Face's
        tokenizer of the family opens."""
        write_files(directory, self.vocabulary, self.merges)
        return self._config_for_hugging_face()

    def _config_for_hugging_face(self):
        own = {"tokenizer_class": self.published_class, **self._prefix_option, **self.settings}
        return {**own, **self._control_tokens_with_stripping_mask}


class DebertaTokenizer(BytePairTokenizer):
    """The tokenizer of DeBERTa version 1 (He et al. 2021): GPT-2's byte-level BPE with BERT's control tokens.

    The inputs are `[CLS] text [SEP]`, and `[CLS] text [SEP] pair [SEP]` for pairs, always with segment 0, as in
    Microsoft's code; transformers 5 puts a second [SEP] between the texts of a pair. "[CLS]" and the like in a text are
    ordinary text; only `encode_with_masks` recognizes "[MASK]".

    Args:
        vocabulary (str, pathlib.Path or list of str): path of a vocab.json, or the tokens in the order of their IDs.
        merges (str, pathlib.Path or list): path of a merges.txt, or pairs of tokens, the most important first.
        add_prefix_space (bool, optional): whether a text that does not begin with a space gets one. Default: False.

    Raises: as BytePairTokenizer, with the control tokens [CLS] [PAD] [SEP] [UNK] [MASK].
    """

    kind = "deberta_byte_pair"
    dialect = DEBERTA
    template = MODERNBERT_ROWS
    mask_texts = ("[MASK]",)
    published_class = "DebertaTokenizer"
    similar_classes = ()
    settings: ClassVar[dict] = {"vocab_type": "gpt2", "bos_token": "[CLS]", "eos_token": "[SEP]"}

    @classmethod
    def is_in(cls, files: VocabularyFiles) -> bool:
        """Whether files of a checkpoint directory are those of such a tokenizer."""
        return "vocab.json" in files and "[CLS]" in files.words
