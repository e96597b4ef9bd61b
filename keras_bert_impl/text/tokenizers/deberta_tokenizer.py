"""The tokenizer of DeBERTa's version 1: RoBERTa's byte-level BPE in BERT's rows."""

from typing import ClassVar

from keras_bert_impl.text.tokenizers.byte_pair_tokenizer import BytePairTokenizer
from keras_bert_impl.text.tokenizers.byte_pair_vocabulary import DEBERTA
from keras_bert_impl.text.tokenizers.row_template import MODERNBERT_ROWS
from keras_bert_impl.text.tokenizers.tokenizer_json_reader import VocabularyFiles


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
    published_class = "DebertaTokenizer"
    similar_classes = ()
    settings: ClassVar[dict] = {"vocab_type": "gpt2", "bos_token": "[CLS]", "eos_token": "[SEP]"}

    @classmethod
    def is_in(cls, files: VocabularyFiles) -> bool:
        """Whether files of a checkpoint directory are those of such a tokenizer."""
        return "vocab.json" in files and "[CLS]" in files.words
