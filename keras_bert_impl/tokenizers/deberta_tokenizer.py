"""The tokenizer of DeBERTa's version 1: RoBERTa's byte-level BPE in BERT's rows."""

from pathlib import Path

from tokenizers import AddedToken, Encoding, processors
from tokenizers import Tokenizer as Pipeline

from keras_bert_impl.tokenizers.byte_pair_tokenizer import BytePairTokenizer
from keras_bert_impl.tokenizers.byte_pair_vocabulary import DEBERTA, write_files
from keras_bert_impl.tokenizers.row_template import MODERNBERT_ROWS
from keras_bert_impl.tokenizers.tokenizer_json_reader import read_object


class DebertaTokenizer(BytePairTokenizer):
    """The tokenizer of DeBERTa's version 1 (He et al. 2021): GPT-2's byte-level BPE with BERT's control tokens.

    A row is `[CLS] text [SEP]`, of a pair `[CLS] text [SEP] pair [SEP]`, always with segment 0, as in Microsoft's code;
    transformers 5 puts a second [SEP] between the texts of a pair. "[CLS]" and the like within a text are ordinary
    text; only `encode_with_masks` recognizes "[MASK]".

    Arguments and errors are those of BytePairTokenizer, with the control tokens [CLS] [PAD] [SEP] [UNK] [MASK].
    """

    kind = "deberta_byte_pair"
    dialect = DEBERTA
    template = MODERNBERT_ROWS
    mask_texts = ("[MASK]",)

    def pipeline(self, masks: bool = False) -> Pipeline:
        pipeline = super().pipeline()
        cls, _, sep, _, mask = self.dialect.control
        layout = processors.TemplateProcessing(
            single=[cls, "$A", sep],
            pair=[cls, "$A", sep, "$B:0", f"{sep}:0"],
            special_tokens=[(cls, self.cls_id), (sep, self.sep_id)],
        )
        trim = processors.ByteLevel(trim_offsets=True, add_prefix_space=self.add_prefix_space)
        pipeline.post_processor = processors.Sequence([trim, layout])
        if masks:
            pipeline.add_special_tokens([AddedToken(mask, special=True, normalized=False, lstrip=True)])
        return pipeline

    def encode_with_masks(self, text: str) -> Encoding:
        """[CLS] text [SEP], where each upper-case "[MASK]" in the text is the mask token."""
        return self._masking.encode(text)

    @classmethod
    def is_in(cls, directory: str | Path) -> bool:
        """Whether a checkpoint directory holds the vocabulary of such a tokenizer."""
        path = Path(directory) / "vocab.json"
        return path.is_file() and "[CLS]" in read_object(path)

    def write_vocabulary_files(self, directory: Path) -> dict:
        """Writes vocab.json, merges.txt, and returns the content of tokenizer_config.json, which Hugging Face's
        DebertaTokenizer opens."""
        write_files(directory, self.vocabulary, self.merges)
        cls, pad, sep, unk, mask = self.dialect.control
        return {
            "tokenizer_class": "DebertaTokenizer",
            "vocab_type": "gpt2",
            "add_prefix_space": self.add_prefix_space,
            **dict.fromkeys(("bos_token", "cls_token"), cls),
            **dict.fromkeys(("eos_token", "sep_token"), sep),
            "pad_token": pad,
            "unk_token": unk,
            "mask_token": {
                **{"__type": "AddedToken", "content": mask, "lstrip": True, "normalized": False, "rstrip": False},
                **{"single_word": False, "special": True},
            },
        }
