"""ModernBERT's tokenizer: byte-level BPE in BERT's rows, over normalized text, with tokens for runs of spaces."""

import functools
import sys
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from tokenizers import AddedToken, normalizers, processors
from tokenizers import Tokenizer as Pipeline

from keras_bert_impl.text.tokenizers.byte_pair_tokenizer import BytePairTokenizer
from keras_bert_impl.text.tokenizers.byte_pair_vocabulary import MODERNBERT, NFC
from keras_bert_impl.text.tokenizers.deberta_tokenizer import DebertaTokenizer
from keras_bert_impl.text.tokenizers.row_template import MODERNBERT_ROWS
from keras_bert_impl.text.tokenizers.tokenizer_json_reader import VocabularyFiles

# The runs of spaces that the published vocabulary has, the longest first: code is full of them.
RUNS_OF_SPACES = tuple(" " * count for count in range(24, 1, -1))


class ModernBertTokenizer(BytePairTokenizer):
    """The tokenizer of ModernBERT and Ettin: byte-level BPE (Warner et al. 2024; that of OLMo, Groeneveld et al. 2024,
    which is GPT-NeoX's) with BERT's control tokens.

    Differences from RoBERTa's: a text is brought into Unicode's composed form NFC; `added_tokens`, such as runs of
    spaces, are whole wherever they are in a text, of several at one place the longest, and what follows one is a text
    of its own; a row is `[CLS] text [SEP]`, of a pair `[CLS] text [SEP] pair [SEP]`, always with segment 0. "[CLS]" and
    the like within a text are ordinary text, as are "<|padding|>" and "<|endoftext|>"; only `encode_with_masks`
    recognizes "[MASK]".

    Args:
        vocabulary: the tokens in order of their ids, or the path of a vocab.json.
        merges: pairs of pieces, the most important first, or the path of a merges.txt.
        add_prefix_space: whether a text that does not begin with a space gets one before it. ModernBERT: False.
        added_tokens: tokens of the vocabulary that are whole in texts.

    Raises: FileNotFoundError; ValueError if one of [CLS] [PAD] [SEP] [UNK] [MASK] or an added token is missing, ids
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
